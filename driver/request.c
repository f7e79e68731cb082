// SPDX-License-Identifier: GPL-2.0
/* The path of a request: checks, route, buffers, device, and software where that ends. */
#include <linux/timex.h>

#include "iaa.h"
#include "stats/trace.h"

static bool list_holds(struct scatterlist *sg, unsigned int len)
{
	return sg->length >= len || sg_nents_for_len(sg, len) > 0;
}

static __always_inline int check(struct acomp_req *req)
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
 * iaa_request_check() - whether a request's lengths and lists make sense
 * @req: the request; without a destination it is given one, where callers may ask that
 *
 * Return: 0, -EINVAL, -ENOSPC or -ENOMEM.
 */
int iaa_request_check(struct acomp_req *req)
{
	return check(req);
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

/**
 * iaa_request_release() - a device has done with a request
 * @slot: the slot, which is not the caller's any more
 */
void iaa_request_release(struct iaa_slot *slot)
{
	struct iaa_wq *iwq = slot->iwq;

	iaa_buffers_detach(slot);
	iaa_slot_put(slot);
	percpu_ref_put(&iwq->ref);
}

/**
 * iaa_request_finish() - hand the outcome to the caller and let the slot go
 * @slot: the slot, which is not the caller's any more
 * @req: the request
 * @rc: what iaa_op_step() said last
 * @reason: why software has to do it
 *
 * Return: 0, -ENOSPC, or -EAGAIN when software has to do it.
 */
int iaa_request_finish(struct iaa_slot *slot, struct acomp_req *req, int rc,
		       enum iaa_reason *reason)
{
	/* The device had less room than there is. */
	if (rc == -ENOSPC && slot->dst.len < req->dlen) {
		*reason = IAA_R_TOO_LARGE;
		rc = -EAGAIN;
	}
	if (rc >= 0) {
		iaa_buffers_copy_out(slot, req, rc);
		iaa_count_done(slot, req->slen, rc);
		req->dlen = rc;
		rc = 0;
	}
	trace_iaa_complete(slot, rc);
	iaa_request_release(slot);
	return rc;
}

static int in_software(struct acomp_req *req, bool compress, enum iaa_reason reason)
{
	iaa_count_soft(compress, reason);
	return iaa_soft_request(req, compress, req->base.flags & CRYPTO_TFM_REQ_MAY_SLEEP);
}

/*
 * The device owns descriptor and buffers still. Where none of the caller's memory
 * is among them, the caller need not wait; otherwise it is told when the WQ's
 * health has got the memory back.
 */
static int timed_out(struct iaa_slot *slot, struct acomp_req *req)
{
	bool wait = slot->src.kind == IAA_IN_PLACE || slot->dst.kind == IAA_IN_PLACE;
	bool compress = slot->compress;
	struct iaa_wq *iwq = slot->iwq;

	slot->req = wait ? req : NULL;
	if (wait)
		iaa_count_soft(compress, IAA_R_TIMEOUT);
	iaa_wq_fail(iwq, slot);
	percpu_ref_put(&iwq->ref);
	return wait ? -EINPROGRESS : in_software(req, compress, IAA_R_TIMEOUT);
}

/* The caller polls. Return: 0, -ENOSPC or -EINVAL; -EINPROGRESS where it is told later. */
static int serve_sync(struct iaa_slot *slot, struct acomp_req *req)
{
	bool may_sleep = req->base.flags & CRYPTO_TFM_REQ_MAY_SLEEP, compress = slot->compress;
	enum iaa_reason reason;
	int rc;

	do {
		rc = iaa_op_submit(slot, false);
		if (rc) {
			iaa_wq_refused(slot->iwq, rc);
			reason = rc == -EAGAIN ? IAA_R_WQ_FULL : IAA_R_SUBMIT;
			rc = -EAGAIN;
			break;
		}
		if (!iaa_op_wait(slot, may_sleep)) {
			iaa_count(IAA_C_TIMEOUT_ERRORS, 1);
			return timed_out(slot, req);
		}
		rc = iaa_op_step(slot, &reason);
	} while (rc == -EINPROGRESS);

	rc = iaa_request_finish(slot, req, rc, &reason);
	return rc == -EAGAIN ? in_software(req, compress, reason) : rc;
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
	enum iaa_reason reason;
	struct iaa_slot *slot;
	int rc;

	slot = iaa_route_get(compress, req->slen, &reason);
	if (!slot)
		return in_software(req, compress, reason);

	slot->started = get_cycles();
	slot->compress = compress;
	slot->check = compress && READ_ONCE(iaa_verify_compress);
	slot->mode = READ_ONCE(iaa_sync_mode);
	rc = iaa_buffers_attach(slot, req);
	if (rc) {
		iaa_request_release(slot);
		return in_software(req, compress, unattached(rc));
	}
	iaa_op_begin(slot);
	if (slot->mode == IAA_SYNC)
		return serve_sync(slot, req);
	rc = iaa_async_start(slot, req);
	return rc == -EAGAIN ? in_software(req, compress, IAA_R_SUBMIT) : rc;
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
	int rc = check(req);

	return iaa_request_end(req, rc ? rc : serve(req, compress));
}
