// SPDX-License-Identifier: GPL-2.0
/* A request may give virtual addresses in place of scatterlists. */
#include <crypto/internal/acompress.h>

const void *probe(struct acomp_req *req);
const void *probe(struct acomp_req *req)
{
	req->base.tfm->__crt_alg->cra_flags |= CRYPTO_ALG_REQ_VIRT;
	return acomp_request_src_isvirt(req) ? req->svirt : req->dvirt;
}
