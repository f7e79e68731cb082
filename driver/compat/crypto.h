/* SPDX-License-Identifier: GPL-2.0 */
/* What the crypto core exports and no header in a headers package declares. */
#ifndef IAA_COMPAT_CRYPTO_H
#define IAA_COMPAT_CRYPTO_H

#include <crypto/algapi.h>
#include <linux/rwsem.h>

/* Held for reading by whoever looks an algorithm up and takes a reference of it. */
extern struct rw_semaphore crypto_alg_sem;

#endif /* IAA_COMPAT_CRYPTO_H */
