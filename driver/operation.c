// SPDX-License-Identifier: GPL-2.0
/*
 * What a device does for a request: one descriptor, or two where a compression is
 * read back. Whoever waits for the end of each goes on with the next step.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "iaa.h"
#include "stats/trace.h"

/* Looks at the completion record before the clock is asked. */
#define LOOKS_AT_ONCE	1000
/* Longest pause between two looks, in steps of cpu_relax(). */
#define MAX_PAUSE	64
/* From here on, a caller that may sleep does. */
#define SPIN_NS		(50 * NSEC_PER_USEC)
/* One that may not holds its CPU all the time, and gets no more of it, whatever the limit. */
#define SPIN_MAX_MS	5000

static void fill_job(struct iaa_slot *slot, struct iaa_job *job)
{
	job->src = slot->src.dma;
	job->dst = slot->dst.dma;
	job->aecs = slot->iwq->dev->aecs_dma;
	job->completion = idxd_desc_compl_dma(slot->desc);
	job->src_len = slot->src.len;
	job->dst_len = slot->dst.len;
}

/**
 * iaa_op_begin() - fill in the first descriptor
 * @slot: the slot, with its data attached
 */
void iaa_op_begin(struct iaa_slot *slot)
{
	struct iaa_job job;

	fill_job(slot, &job);
	slot->stage = IAA_STAGE_RUN;
	if (slot->compress)
		iaa_hw_compress(idxd_desc_iax_hw(slot->desc), &job);
	else
		iaa_hw_decompress(idxd_desc_iax_hw(slot->desc), &job);
}

/**
 * iaa_op_submit() - submit the descriptor that is filled in
 * @slot: the slot
 * @irq: an interrupt is to tell of its end
 *
 * With an interrupt, the slot may be somebody else's on return.
 *
 * Return: 0, or an error when nothing was submitted.
 */
int iaa_op_submit(struct iaa_slot *slot, bool irq)
{
	struct iax_hw_desc *hw = idxd_desc_iax_hw(slot->desc);
	struct idxd_wq *wq = slot->iwq->wq;
	int rc;

	/* idxd has stopped the WQ for a while, and would have us sleep until it goes on. */
	if (percpu_ref_is_dying(idxd_wq_wq_active(wq)))
		return -EBUSY;
	if (slot->stage == IAA_STAGE_TO_VERIFY)
		slot->stage = IAA_STAGE_VERIFY;
	if (irq)
		hw->flags |= IDXD_OP_FLAG_RCI;
	idxd_desc_iax_completion(slot->desc)->status = 0;
	trace_iaa_submit(slot);
	rc = idxd_submit_desc(wq, slot->desc);
	return rc == -ETIMEDOUT ? -EIO : rc;
}

/**
 * iaa_op_answered() - whether the descriptor that was submitted has ended
 * @slot: the slot
 */
bool iaa_op_answered(struct iaa_slot *slot)
{
	if (!READ_ONCE(idxd_desc_iax_completion(slot->desc)->status))
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

/**
 * iaa_op_wait() - poll until the descriptor that was submitted has ended
 * @slot: the slot
 * @may_sleep: the caller may sleep
 *
 * Return: false when it has not within the time limit: descriptor and memory are
 * the device's still.
 */
bool iaa_op_wait(struct iaa_slot *slot, bool may_sleep)
{
	unsigned int i, pause = 1;
	u64 start, now;

	for (i = 0; i < LOOKS_AT_ONCE; i++) {
		if (iaa_op_answered(slot))
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
		if (iaa_op_answered(slot))
			return true;
	} while (now - start < time_limit(may_sleep));
	return false;
}

/* The end of what was asked for. Return: as iaa_op_step(). */
static int ran(struct iaa_slot *slot, struct iax_completion_record *comp, enum iaa_reason *reason)
{
	struct iaa_job job;

	switch (iaa_hw_verdict(slot->compress, comp->status, comp->error_code)) {
	case IAA_V_OK:
		break;
	case IAA_V_NO_SPACE:
		iaa_count(IAA_C_OVERFLOW_ERRORS, 1);
		return -ENOSPC;
	case IAA_V_TOO_SMALL:
		*reason = IAA_R_TOO_SMALL;
		return -EAGAIN;
	case IAA_V_STREAM:
		*reason = IAA_R_STREAM;
		return -EAGAIN;
	case IAA_V_SLOW:
		iaa_count(IAA_C_TIMEOUT_ERRORS, 1);
		*reason = IAA_R_TIMEOUT;
		return -EAGAIN;
	case IAA_V_ERROR:
		iaa_count(IAA_C_EINVAL_ERRORS, 1);
		*reason = IAA_R_ERROR;
		return -EAGAIN;
	}
	slot->out_len = READ_ONCE(comp->output_size);
	if (slot->out_len > slot->dst.len || (slot->compress && !slot->out_len)) {
		iaa_count(IAA_C_EINVAL_ERRORS, 1);
		*reason = IAA_R_ERROR;
		return -EAGAIN;
	}
	if (!slot->check)
		return slot->out_len;

	fill_job(slot, &job);
	slot->crc = comp->crc;
	iaa_hw_verify(idxd_desc_iax_hw(slot->desc), &job, slot->out_len);
	comp->crc = ~slot->crc;
	slot->stage = IAA_STAGE_TO_VERIFY;
	return -EINPROGRESS;
}

/**
 * iaa_op_step() - go on when a descriptor has ended
 * @slot: the slot
 * @reason: set to why software has to do it
 *
 * Return: bytes of output; -EINPROGRESS when another descriptor is filled in, to be
 * submitted; -ENOSPC when the output does not fit; -EAGAIN when software has to do it.
 */
int iaa_op_step(struct iaa_slot *slot, enum iaa_reason *reason)
{
	struct iax_completion_record *comp = idxd_desc_iax_completion(slot->desc);

	if (unlikely(comp->status != IAA_STATUS_SUCCESS))
		iaa_count_failure(slot->compress, comp);
	if (slot->stage == IAA_STAGE_RUN)
		return ran(slot, comp, reason);
	if (comp->status == IAA_STATUS_SUCCESS && comp->crc == slot->crc)
		return slot->out_len;
	*reason = IAA_R_VERIFY;
	return -EAGAIN;
}
