// SPDX-License-Identifier: GPL-2.0
/* Requests without a destination are part of the acomp interface. */
#include <crypto/internal/acompress.h>

void probe(struct acomp_alg *alg);
void probe(struct acomp_alg *alg)
{
	alg->dst_free(NULL);
}
