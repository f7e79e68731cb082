/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ACOMP_LOAD_PATTERN_H
#define ACOMP_LOAD_PATTERN_H

#include <linux/prandom.h>
#include <linux/types.h>

/* What the buffers hold before they are compressed. */
enum pattern {
	PATTERN_TEXT,	/* words, compresses well */
	PATTERN_ZERO,
	PATTERN_RANDOM,	/* does not compress */
	PATTERN_MIXED,	/* 64 to 512 byte runs of the others */
	PATTERN_FAR,	/* every match lies 2049 to 4096 bytes back */
	PATTERN_PERIOD,	/* one group of three bytes, repeated */
	PATTERN_HIGH,	/* random bytes of 144 and above: fixed codes of 9 bits */
	PATTERN_DATA,	/* taken from the data file of the slot */
	PATTERN_COUNT
};

extern const char * const pattern_names[PATTERN_COUNT];

void pattern_fill(enum pattern kind, u8 *buf, size_t len, struct rnd_state *rnd);
u32 pattern_below(struct rnd_state *rnd, u32 limit);

#endif
