/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ACOMP_LOAD_SETTINGS_H
#define ACOMP_LOAD_SETTINGS_H

#include <linux/cpumask.h>
#include <linux/crypto.h>
#include <linux/types.h>

#include "codec.h"
#include "pattern.h"
#include "sgbuf.h"

#define LOAD_MAX_THREADS 64
#define LOAD_MAX_BYTES (4U << 20)

enum load_mode {
	MODE_ROUNDTRIP,		/* compress, decompress, compare */
	MODE_COMPRESS,		/* compress only */
	MODE_DECOMPRESS,	/* streams made at the start; decompress, compare */
	MODE_STREAM,		/* decompress what the slot's stream file holds */
	MODE_COUNT
};

extern const char * const mode_names[MODE_COUNT];

/* What a job is asked to do; see settings_parse() for the words. */
struct settings {
	char comp[CRYPTO_MAX_ALG_NAME];
	char decomp[CRYPTO_MAX_ALG_NAME];
	enum load_mode mode;
	enum pattern pattern;
	unsigned int threads;
	unsigned int count;		/* rounds a thread; 0: until the time is up */
	unsigned int seconds;		/* 0: until the count is reached */
	unsigned int size_min, size_max;
	unsigned int room;		/* for compressed bytes; 0: what always fits */
	unsigned int streams;		/* prepared by a thread, for MODE_DECOMPRESS */
	unsigned int pause_us;		/* between rounds */
	unsigned int stuck_ms;		/* an operation that takes longer is stuck */
	unsigned int guard;
	unsigned int slen_lie;		/* bytes claimed beyond the source's end */
	unsigned int dlen_lie;		/* the same for the destination */
	u64 seed;
	bool hold;			/* wait for "go" when all is prepared */
	struct manner manner;		/* of the requests */
	bool pinned;
	struct cpumask cpus;		/* the threads' CPUs in turn, where pinned */
	struct shape src, dst;
};

int settings_parse(struct settings *set, char *text, char *error, size_t error_size);

#endif
