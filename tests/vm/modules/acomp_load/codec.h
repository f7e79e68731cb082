/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ACOMP_LOAD_CODEC_H
#define ACOMP_LOAD_CODEC_H

#include <linux/scatterlist.h>
#include <linux/types.h>

/*
 * One side of a round trip: an acomp algorithm by driver name, or the kernel's
 * zlib library called directly. The name "zlib" stands for a 4 KB window,
 * "zlib15" for one of 32 KB, whose streams the device cannot serve; both
 * inflate with a 32 KB window, in one call.
 */
struct codec;

/* What a request is given for source and destination. */
enum address {
	ADDRESS_SG,	/* scatterlists */
	ADDRESS_DMA,	/* virtual addresses that a device can use */
	ADDRESS_NONDMA,	/* virtual addresses that only the CPU can use */
	ADDRESS_COUNT
};

extern const char * const address_names[ADDRESS_COUNT];

/* How requests are made; zlib does not care. */
struct manner {
	bool sleep;	/* they may sleep */
	bool atomic;	/* they are made with bottom halves off */
	bool no_dst;	/* they have no destination: it is to be allocated */
	enum address address;
};

struct codec *codec_open(const char *name, const struct manner *manner);
void codec_close(struct codec *codec);

/* One operation; dlen is room before and bytes made after. May sleep for long. */
int codec_compress(struct codec *codec, struct scatterlist *src, unsigned int slen,
		   struct scatterlist *dst, unsigned int *dlen);
int codec_decompress(struct codec *codec, struct scatterlist *src, unsigned int slen,
		     struct scatterlist *dst, unsigned int *dlen);

#endif
