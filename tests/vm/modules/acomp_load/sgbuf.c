// SPDX-License-Identifier: GPL-2.0
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "pattern.h"
#include "sgbuf.h"

#define POISON 0xa5

/* Entries begin behind the front guard, at the wished offset in a page. */
static size_t sgbuf_start(const struct sgbuf *buf)
{
	return round_up(buf->guard, PAGE_SIZE) + buf->shape.offset;
}

/**
 * sgbuf_init() - allocate the memory
 * @buf: to set up
 * @shape: wished cut
 * @max: the most bytes that will be laid out
 * @guard: bytes to watch on each side of every entry
 *
 * Return: 0, or -ENOMEM with nothing left allocated.
 */
int sgbuf_init(struct sgbuf *buf, const struct shape *shape, size_t max, unsigned int guard)
{
	unsigned int i;

	*buf = (struct sgbuf){ .shape = *shape, .guard = guard };
	buf->room = shape->uneven ? max : DIV_ROUND_UP(max, shape->nents);
	buf->order = get_order(sgbuf_start(buf) + buf->room + guard);
	buf->mem = kcalloc(shape->nents, sizeof(*buf->mem), GFP_KERNEL);
	buf->sgl = kcalloc(shape->nents, sizeof(*buf->sgl), GFP_KERNEL);
	if (!buf->mem || !buf->sgl)
		goto fail;
	for (i = 0; i < shape->nents; i++) {
		buf->mem[i] = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_NOWARN, buf->order);
		if (!buf->mem[i])
			goto fail;
	}
	return 0;
fail:
	sgbuf_free(buf);
	return -ENOMEM;
}

/**
 * sgbuf_free() - give the memory back
 * @buf: set up before, or all zero
 */
void sgbuf_free(struct sgbuf *buf)
{
	unsigned int i;

	for (i = 0; buf->mem && i < buf->shape.nents; i++)
		free_pages((unsigned long)buf->mem[i], buf->order);
	kfree(buf->mem);
	kfree(buf->sgl);
	*buf = (struct sgbuf){};
}

/**
 * sgbuf_layout() - cut a scatterlist for so many bytes, and poison all memory
 * @buf: set up before
 * @len: at least 1, at most what sgbuf_init() was told
 * @rnd: for uneven shapes
 */
void sgbuf_layout(struct sgbuf *buf, size_t len, struct rnd_state *rnd)
{
	size_t start = sgbuf_start(buf), left = len;
	unsigned int i;

	buf->nents = min_t(size_t, buf->shape.nents, len);
	sg_init_table(buf->sgl, buf->nents);
	for (i = 0; i < buf->nents; i++) {
		unsigned int behind = buf->nents - 1 - i;
		size_t n = DIV_ROUND_UP(left, behind + 1);

		if (buf->shape.uneven && behind)
			n = 1 + pattern_below(rnd, left - behind);
		memset(buf->mem[i], POISON, PAGE_SIZE << buf->order);
		sg_set_buf(&buf->sgl[i], buf->mem[i] + start, n);
		left -= n;
	}
}

void sgbuf_write(struct sgbuf *buf, const u8 *data, size_t len)
{
	sg_copy_from_buffer(buf->sgl, buf->nents, data, len);
}

void sgbuf_read(struct sgbuf *buf, u8 *data, size_t len)
{
	sg_copy_to_buffer(buf->sgl, buf->nents, data, len);
}

/**
 * sgbuf_overruns() - look for bytes written beside the entries
 * @buf: laid out before
 *
 * Return: how many entries have a changed guard.
 */
unsigned int sgbuf_overruns(struct sgbuf *buf)
{
	unsigned int i, bad = 0;

	for (i = 0; i < buf->nents; i++) {
		u8 *data = sg_virt(&buf->sgl[i]);

		if (memchr_inv(data - buf->guard, POISON, buf->guard) ||
		    memchr_inv(data + buf->sgl[i].length, POISON, buf->guard))
			bad++;
	}
	return bad;
}

/**
 * sgbuf_holds() - look whether the bytes are still those that were written
 * @buf: laid out before
 * @data: to compare with
 * @len: as many as were laid out
 *
 * Return: true where they are.
 */
bool sgbuf_holds(struct sgbuf *buf, const u8 *data, size_t len)
{
	unsigned int i;
	size_t at = 0, n;

	for (i = 0; i < buf->nents && at < len; i++, at += n) {
		n = min_t(size_t, buf->sgl[i].length, len - at);
		if (memcmp(sg_virt(&buf->sgl[i]), data + at, n))
			return false;
	}
	return true;
}
