// SPDX-License-Identifier: GPL-2.0
/* Compiles with every kernel; where it does not, no other probe means anything. */
#include <crypto/internal/acompress.h>
#include <linux/module.h>

static struct acomp_alg alg = { .base.cra_name = "probe" };

void *probe(void);
void *probe(void)
{
	return &alg;
}
