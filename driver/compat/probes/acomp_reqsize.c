// SPDX-License-Identifier: GPL-2.0
/* The size of a request's context is a member of the acomp algorithm, not of its base. */
#include <crypto/internal/acompress.h>

unsigned int probe(struct acomp_alg *alg);

unsigned int probe(struct acomp_alg *alg)
{
	return alg->reqsize;
}
