/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between kernels in the acomp interface. */
#ifndef IAA_COMPAT_ACOMP_H
#define IAA_COMPAT_ACOMP_H

#include <crypto/internal/acompress.h>
#include <linux/scatterlist.h>

#include "probed.h"

#ifdef IAA_HAVE_ACOMP_DST_FREE
/* A request without a destination asks for one to be allocated. */
#define IAA_ACOMP_DST_FREE .dst_free = sgl_free,

static inline int iaa_acomp_alloc_dst(struct acomp_req *req)
{
	gfp_t gfp = req->base.flags & CRYPTO_TFM_REQ_MAY_SLEEP ? GFP_KERNEL : GFP_ATOMIC;

	if (!req->dlen)
		req->dlen = CRYPTO_ACOMP_DST_MAX;
	req->dst = sgl_alloc(req->dlen, gfp, NULL);
	return req->dst ? 0 : -ENOMEM;
}

/* What was allocated for a request that has failed: its owner does not look for it. */
static inline void iaa_acomp_free_dst(struct acomp_req *req)
{
	if (!(req->flags & CRYPTO_ACOMP_ALLOC_OUTPUT) || !req->dst)
		return;
	sgl_free(req->dst);
	req->dst = NULL;
}
#else
#define IAA_ACOMP_DST_FREE

static inline int iaa_acomp_alloc_dst(struct acomp_req *req)
{
	return -EINVAL;
}

static inline void iaa_acomp_free_dst(struct acomp_req *req)
{
}
#endif

/* What each request has room for beside its own members. */
static inline void iaa_acomp_set_reqsize(struct acomp_alg *alg, unsigned int size)
{
#ifdef IAA_HAVE_ACOMP_REQSIZE
	alg->reqsize = size;
#else
	alg->base.cra_reqsize = size;
#endif
}

/* Requests that give virtual addresses reach only algorithms that say so. */
#ifdef IAA_HAVE_ACOMP_VIRT
#define IAA_ACOMP_TAKES_VIRT CRYPTO_ALG_REQ_VIRT

static inline const u8 *iaa_acomp_src_virt(struct acomp_req *req)
{
	return acomp_request_src_isvirt(req) ? req->svirt : NULL;
}

static inline u8 *iaa_acomp_dst_virt(struct acomp_req *req)
{
	return acomp_request_dst_isvirt(req) ? req->dvirt : NULL;
}
#else
#define IAA_ACOMP_TAKES_VIRT 0

static inline const u8 *iaa_acomp_src_virt(struct acomp_req *req)
{
	return NULL;
}

static inline u8 *iaa_acomp_dst_virt(struct acomp_req *req)
{
	return NULL;
}
#endif

#endif /* IAA_COMPAT_ACOMP_H */
