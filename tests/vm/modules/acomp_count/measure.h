/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ACOMP_COUNT_MEASURE_H
#define ACOMP_COUNT_MEASURE_H

#include <linux/crypto.h>
#include <linux/types.h>

#define COUNT_MAX_ENTRIES	8
#define COUNT_MAX_OPERATIONS	4096

/* What is to be measured. */
struct count_case {
	char alg[CRYPTO_MAX_ALG_NAME];
	bool compress;
	unsigned int src_nents;
	unsigned int dst_nents;
	unsigned int operations;
};

/* What came of it; counts are TSC ticks, without those of reading the TSC. */
struct count_result {
	char driver_name[CRYPTO_MAX_ALG_NAME];
	unsigned int number;	/* of all cases since the module was loaded, from 1 */
	unsigned int done;	/* operations that were measured */
	u64 minimum, median, maximum, total;
	u64 overhead;		/* ticks of reading the TSC, taken off already */
	u64 compressed;		/* bytes of all streams */
};

int count_run(const struct count_case *what, const u8 *pages, size_t n_pages,
	      struct count_result *result, char *error, size_t error_size);

#endif
