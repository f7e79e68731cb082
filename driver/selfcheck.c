// SPDX-License-Identifier: GPL-2.0
/*
 * The known-answer check that a device passes before it is used: it decompresses
 * a stream whose content is known, compresses that content so that software can
 * read it, and reads its own output back, each with the right CRC.
 */
#include "iaa.h"

static const u8 plain[] = "known answer, known answer, known answer: 0123456789 \x00\x80\x90\xff";
#define PLAIN_LEN (sizeof(plain) - 1)
#define PLAIN_CRC 0xca21512d

/* Return: 0 when it has answered, -ETIMEDOUT when not, -EAGAIN when it was not asked. */
static int ask(struct iaa_slot *slot)
{
	if (iaa_op_submit(slot, false))
		return -EAGAIN;
	return iaa_op_wait(slot, true) ? 0 : -ETIMEDOUT;
}

/* Two blocks, so that a device that stops at the first one's end is found out. */
static const u8 stream[] = {
	0xca, 0xce, 0xcb, 0x2f, 0xcf, 0x53, 0x48, 0xcc, 0x2b, 0x2e, 0x4f, 0x2d,
	0xd2, 0x51, 0xc8, 0x46, 0xe1, 0x01, 0x86, 0xcc, 0xb3, 0x52, 0x30, 0x30,
	0x34, 0x32, 0x36, 0x31, 0x35, 0x33, 0xb7, 0xb0, 0x54, 0x60, 0x68, 0x98,
	0xf0, 0x1f, 0x00,
};

static int judge(struct iaa_wq *iwq, const char *what, struct idxd_desc *desc)
{
	struct iax_completion_record *comp = idxd_desc_iax_completion(desc);

	if (comp->status == IAA_STATUS_SUCCESS && comp->crc == PLAIN_CRC)
		return 0;
	dev_err(idxd_wq_dev(iwq->wq),
		"known-answer %s: status %#x, error code %#x, CRC %#x (expected 0x1, 0, %#x)\n",
		what, comp->status, comp->error_code, comp->crc, PLAIN_CRC);
	return comp->status == IAA_STATUS_SUCCESS ? -EILSEQ : -EIO;
}

static int check_decompress(struct iaa_wq *iwq, struct iaa_slot *slot, struct iaa_job *job)
{
	struct idxd_desc *desc = slot->desc;
	int rc;

	memcpy(slot->small_src.va, stream, sizeof(stream));
	memset(slot->small_dst.va, 0xa5, job->dst_len);
	job->src_len = sizeof(stream);
	iaa_hw_decompress(idxd_desc_iax_hw(desc), job);
	rc = ask(slot) ?: judge(iwq, "decompression", desc);
	if (rc)
		return rc;
	if (idxd_desc_iax_completion(desc)->output_size == PLAIN_LEN &&
	    !memcmp(slot->small_dst.va, plain, PLAIN_LEN))
		return 0;
	dev_err(idxd_wq_dev(iwq->wq), "known-answer decompression: wrong data\n");
	return -EILSEQ;
}

static int check_compress(struct iaa_wq *iwq, struct iaa_slot *slot, struct iaa_job *job)
{
	struct idxd_desc *desc = slot->desc;
	u8 back[PLAIN_LEN];
	unsigned int back_len = sizeof(back);
	u32 out_len;
	int rc;

	memcpy(slot->small_src.va, plain, PLAIN_LEN);
	memset(slot->small_dst.va, 0xa5, job->dst_len);
	job->src_len = PLAIN_LEN;
	iaa_hw_compress(idxd_desc_iax_hw(desc), job);
	rc = ask(slot) ?: judge(iwq, "compression", desc);
	if (rc)
		return rc;
	out_len = idxd_desc_iax_completion(desc)->output_size;
	if (out_len > job->dst_len ||
	    iaa_soft_inflate(slot->small_dst.va, out_len, back, &back_len) ||
	    back_len != PLAIN_LEN || memcmp(back, plain, PLAIN_LEN)) {
		dev_err(idxd_wq_dev(iwq->wq), "known-answer compression: wrong data\n");
		return -EILSEQ;
	}

	iaa_hw_verify(idxd_desc_iax_hw(desc), job, out_len);
	return ask(slot) ?: judge(iwq, "verification", desc);
}

/**
 * iaa_selfcheck() - whether a WQ's device gives the known answers
 * @iwq: the WQ, which no request uses
 *
 * Return: 0; -ETIMEDOUT when the device does not answer, which makes the descriptor a
 * lost one; -EAGAIN when it could not be asked; -EIO when it answers with an error;
 * -EILSEQ when it says that all is well, and the answer is wrong.
 */
int iaa_selfcheck(struct iaa_wq *iwq)
{
	struct iaa_job job = {
		.aecs = iwq->dev->aecs_dma,
		.dst_len = min_t(u32, IAA_SMALL, iwq->max_len),
	};
	struct iaa_slot *slot;
	int rc;

	slot = iaa_slot_get(iwq);
	if (!slot)
		return -EAGAIN;
	job.src = slot->small_src.dma;
	job.dst = slot->small_dst.dma;
	job.completion = idxd_desc_compl_dma(slot->desc);

	rc = check_decompress(iwq, slot, &job);
	if (!rc)
		rc = check_compress(iwq, slot, &job);
	if (rc != -ETIMEDOUT) {
		iaa_slot_put(slot);
		return rc;
	}
	slot->req = NULL;
	spin_lock_bh(&iwq->lost_lock);
	list_add_tail(&slot->node, &iwq->lost);
	spin_unlock_bh(&iwq->lost_lock);
	return rc;
}
