/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ACOMP_LOAD_SGBUF_H
#define ACOMP_LOAD_SGBUF_H

#include <linux/scatterlist.h>
#include <linux/types.h>

struct rnd_state;

/* How a buffer is cut into scatterlist entries. */
struct shape {
	unsigned int nents;	/* entries, fewer where there are fewer bytes */
	unsigned int offset;	/* of every entry in its first page */
	bool uneven;		/* random lengths instead of equal ones */
};

/*
 * A buffer in a scatterlist of a chosen shape. Every entry lies in memory of
 * its own, with guard bytes before and behind it, so that a byte written
 * outside the entries is noticed.
 */
struct sgbuf {
	struct shape shape;
	unsigned int guard;	/* bytes watched on each side of an entry */
	unsigned int order;	/* of one entry's memory */
	size_t room;		/* the longest entry */
	unsigned int nents;	/* in the current layout */
	u8 **mem;
	struct scatterlist *sgl;
};

int sgbuf_init(struct sgbuf *buf, const struct shape *shape, size_t max, unsigned int guard);
void sgbuf_free(struct sgbuf *buf);
void sgbuf_layout(struct sgbuf *buf, size_t len, struct rnd_state *rnd);
void sgbuf_write(struct sgbuf *buf, const u8 *data, size_t len);
void sgbuf_read(struct sgbuf *buf, u8 *data, size_t len);
unsigned int sgbuf_overruns(struct sgbuf *buf);
bool sgbuf_holds(struct sgbuf *buf, const u8 *data, size_t len);

#endif
