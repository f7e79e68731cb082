// SPDX-License-Identifier: GPL-2.0
/* The path of a request: checks, route, buffers, device, and software where that ends. */
#include <linux/delay.h>
#include <linux/ktime.h>

#include "iaa.h"

/* Looks at the completion record before the clock is asked. */
#define LOOKS_AT_ONCE	1000
/* Longest pause between two looks, in steps of cpu_relax(). */
#define MAX_PAUSE	64
/* From here on, a caller that may sleep does. */
#define SPIN_NS		(50 * NSEC_PER_USEC)
/* One that may not holds its CPU all the time, and gets no more of it, whatever the limit. */
#define SPIN_MAX_MS	5000

static bool answered(struct iax_completion_record *comp)
{
	if (!comp->status)
		return false;
	/* The device writes the status last. */
	dma_rmb();
	return true;
}

static u64 time_limit(bool may_sleep)
{
	unsigned int ms = READ_ONCE(iaa_timeout_ms);

	return (u64)(may_sleep ? ms : min(ms, SPIN_MAX_MS)) * NSEC_PER_MSEC;
}

static bool wait_answer(struct iax_completion_record *comp, bool may_sleep)
{
	unsigned int i, pause = 1;
	u64 start, now;

	for (i = 0; i < LOOKS_AT_ONCE; i++) {
		if (answered(comp))
			return true;
		cpu_relax();
	}
	start = ktime_get_ns();
	do {
		now = ktime_get_ns();
		if (may_sleep && now - start > SPIN_NS) {
			usleep_range(20, 50);
		} else {
			for (i = 0; i < pause; i++)
				cpu_relax();
			pause = min(pause * 2, MAX_PAUSE);
		}
		if (answered(comp))
			return true;
	} while (now - start < time_limit(may_sleep));
	return false;
}

/**
 * iaa_run() - submit a descriptor and wait for its end
 * @iwq: the WQ
 * @desc: the descriptor, filled in
 * @may_sleep: the caller may sleep
 *
 * Return: 0 when the completion record is written; -ETIMEDOUT when it is not, and
 * descriptor and memory are the device's still; another error when nothing was
 * submitted.
 */
int iaa_run(struct iaa_wq *iwq, struct idxd_desc *desc, bool may_sleep)
{
	struct iax_completion_record *comp = idxd_desc_iax_completion(desc);
	int rc;

	/* idxd has stopped the WQ for a while, and would have us sleep until it goes on. */
	if (percpu_ref_is_dying(idxd_wq_wq_active(iwq->wq)))
		return -EBUSY;
	comp->status = 0;
	rc = idxd_submit_desc(iwq->wq, desc);
	if (rc)
		return rc == -ETIMEDOUT ? -EIO : rc;
	return wait_answer(comp, may_sleep) ? 0 : -ETIMEDOUT;
}

static bool list_holds(struct scatterlist *sg, unsigned int len)
{
	return sg->length >= len || sg_nents_for_len(sg, len) > 0;
}

/**
 * iaa_request_check() - whether a request's lengths and lists make sense
 * @req: the request; without a destination it is given one, where callers may ask that
 *
 * Return: 0, -EINVAL, or -ENOMEM.
 */
int iaa_request_check(struct acomp_req *req)
{
	if (!req->src || !req->slen)
		return -EINVAL;
	if (!iaa_acomp_src_virt(req) && !list_holds(req->src, req->slen))
		return -EINVAL;
	if (!req->dst)
		return iaa_acomp_alloc_dst(req);
	if (!req->dlen)
		return -ENOSPC;
	if (!iaa_acomp_dst_virt(req) && !list_holds(req->dst, req->dlen))
		return -EINVAL;
	return 0;
}

/**
 * iaa_request_end() - what is left to do for a request that has been dealt with
 * @req: the request
 * @rc: how that ended
 *
 * Return: @rc.
 */
int iaa_request_end(struct acomp_req *req, int rc)
{
	if (rc && rc != -EINPROGRESS)
		iaa_acomp_free_dst(req);
	return rc;
}

static void release(struct iaa_wq *iwq, struct iaa_slot *slot)
{
	iaa_buffers_detach(iwq, slot);
	idxd_free_desc(iwq->wq, slot->desc);
	percpu_ref_put(&iwq->ref);
}

/* The verdict on a descriptor that was run, as the reason for software. */
static int judge(bool compress, struct iax_completion_record *comp, enum iaa_reason *reason)
{
	switch (iaa_hw_verdict(compress, comp->status, comp->error_code)) {
	case IAA_V_OK:
		return 0;
	case IAA_V_NO_SPACE:
		iaa_count(IAA_C_OVERFLOW_ERRORS, 1);
		return -ENOSPC;
	case IAA_V_TOO_SMALL:
		*reason = IAA_R_TOO_SMALL;
		break;
	case IAA_V_STREAM:
		*reason = IAA_R_STREAM;
		break;
	case IAA_V_SLOW:
		iaa_count(IAA_C_TIMEOUT_ERRORS, 1);
		*reason = IAA_R_TIMEOUT;
		break;
	case IAA_V_ERROR:
		iaa_count(IAA_C_EINVAL_ERRORS, 1);
		*reason = IAA_R_ERROR;
		break;
	}
	return -EAGAIN;
}

/*
 * Runs the filled descriptor. Return: 0 for a completion record to be read, or
 * -EAGAIN or -ETIMEDOUT with @reason set; see iaa_run().
 */
static int run(struct iaa_wq *iwq, struct idxd_desc *desc, bool may_sleep,
	       enum iaa_reason *reason)
{
	int rc = iaa_run(iwq, desc, may_sleep);

	if (rc == -ETIMEDOUT) {
		iaa_count(IAA_C_TIMEOUT_ERRORS, 1);
		*reason = IAA_R_TIMEOUT;
	} else if (rc) {
		iaa_wq_refused(iwq, rc);
		*reason = IAA_R_SUBMIT;
		rc = -EAGAIN;
	}
	return rc;
}

/* Has the device read its output back. Return: as run(). */
static int verify(struct iaa_wq *iwq, struct idxd_desc *desc, const struct iaa_job *job,
		  u32 out_len, bool may_sleep, enum iaa_reason *reason)
{
	struct iax_completion_record *comp = idxd_desc_iax_completion(desc);
	u32 crc = comp->crc;
	int rc;

	iaa_hw_verify(idxd_desc_iax_hw(desc), job, out_len);
	comp->crc = ~crc;
	rc = run(iwq, desc, may_sleep, reason);
	if (rc)
		return rc;
	if (comp->status != IAA_STATUS_SUCCESS || comp->crc != crc) {
		*reason = IAA_R_VERIFY;
		return -EAGAIN;
	}
	return 0;
}

/* The device's part. Return: bytes of output, or as run() with -ENOSPC besides. */
static int operate(struct iaa_wq *iwq, struct iaa_slot *slot, struct acomp_req *req,
		   bool compress, bool check, enum iaa_reason *reason)
{
	struct idxd_desc *desc = slot->desc;
	struct iax_completion_record *comp = idxd_desc_iax_completion(desc);
	bool may_sleep = req->base.flags & CRYPTO_TFM_REQ_MAY_SLEEP;
	struct iaa_job job = {
		.src = slot->src.dma,
		.dst = slot->dst.dma,
		.aecs = iwq->dev->aecs_dma,
		.completion = idxd_desc_compl_dma(desc),
		.src_len = slot->src.len,
		.dst_len = slot->dst.len,
	};
	u32 out_len;
	int rc;

	if (compress)
		iaa_hw_compress(idxd_desc_iax_hw(desc), &job);
	else
		iaa_hw_decompress(idxd_desc_iax_hw(desc), &job);
	rc = run(iwq, desc, may_sleep, reason);
	if (rc)
		return rc;
	rc = judge(compress, comp, reason);
	if (rc)
		return rc;
	out_len = comp->output_size;
	if (out_len > job.dst_len || (compress && !out_len)) {
		iaa_count(IAA_C_EINVAL_ERRORS, 1);
		*reason = IAA_R_ERROR;
		return -EAGAIN;
	}
	if (compress && check) {
		rc = verify(iwq, desc, &job, out_len, may_sleep, reason);
		if (rc)
			return rc;
	}
	return out_len;
}

static int in_software(struct acomp_req *req, bool compress, enum iaa_reason reason)
{
	iaa_count_soft(compress, reason);
	return iaa_soft_request(req, compress);
}

/*
 * The device owns descriptor and buffers still. Where none of the caller's memory
 * is among them, the caller need not wait; otherwise it is told when the WQ's
 * health has got the memory back.
 */
static int timed_out(struct iaa_wq *iwq, struct iaa_slot *slot, struct acomp_req *req,
		     bool compress)
{
	bool wait = slot->src.kind == IAA_IN_PLACE || slot->dst.kind == IAA_IN_PLACE;

	slot->req = wait ? req : NULL;
	slot->compress = compress;
	if (wait)
		iaa_count_soft(compress, IAA_R_TIMEOUT);
	iaa_wq_fail(iwq, slot);
	percpu_ref_put(&iwq->ref);
	return wait ? -EINPROGRESS : in_software(req, compress, IAA_R_TIMEOUT);
}

/* Why software serves where iaa_buffers_attach() has failed. */
static enum iaa_reason unattached(int rc)
{
	switch (rc) {
	case -EIO:
		return IAA_R_MAP;
	case -EFBIG:
		return IAA_R_TOO_LARGE;
	default:
		return IAA_R_NO_BUFFER;
	}
}

static int serve(struct acomp_req *req, bool compress)
{
	bool check = compress && iaa_verify_enabled();
	enum iaa_reason reason;
	struct idxd_desc *desc;
	struct iaa_slot *slot;
	struct iaa_wq *iwq;
	int rc;

	iwq = iaa_route_get(compress, req->slen, &desc, &reason);
	if (!iwq)
		return in_software(req, compress, reason);

	slot = &iwq->slots[idxd_desc_id(desc)];
	slot->desc = desc;
	rc = iaa_buffers_attach(iwq, slot, req, compress, check);
	if (rc) {
		release(iwq, slot);
		return in_software(req, compress, unattached(rc));
	}

	rc = operate(iwq, slot, req, compress, check, &reason);
	if (rc == -ETIMEDOUT)
		return timed_out(iwq, slot, req, compress);
	if (rc == -ENOSPC && slot->dst.len < req->dlen) {
		reason = IAA_R_TOO_LARGE;
		rc = -EAGAIN;
	}
	if (rc >= 0) {
		iaa_buffers_copy_out(slot, req, rc);
		iaa_count_done(iwq, compress, compress ? rc : req->slen);
	}
	release(iwq, slot);
	if (rc == -EAGAIN)
		return in_software(req, compress, reason);
	if (rc < 0)
		return rc;
	req->dlen = rc;
	return 0;
}

/**
 * iaa_request() - compress or decompress, with a device where that is possible
 * @req: the request
 * @compress: what it asks for
 *
 * Return: 0 with the destination length set; -ENOSPC when the output does not fit;
 * -EINVAL when the request or the stream is wrong; -EINPROGRESS when the request
 * completes later.
 */
int iaa_request(struct acomp_req *req, bool compress)
{
	int rc = iaa_request_check(req);

	return iaa_request_end(req, rc ? rc : serve(req, compress));
}
