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

struct codec *codec_open(const char *name);
void codec_close(struct codec *codec);

/* One operation; dlen is room before and bytes made after. May sleep for long. */
int codec_compress(struct codec *codec, struct scatterlist *src, unsigned int slen,
		   struct scatterlist *dst, unsigned int *dlen);
int codec_decompress(struct codec *codec, struct scatterlist *src, unsigned int slen,
		     struct scatterlist *dst, unsigned int *dlen);

#endif
