// SPDX-License-Identifier: GPL-2.0
/* Runs the operations of a case, and counts the TSC's ticks of each. */
#include <crypto/acompress.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "mark.h"
#include "measure.h"

#define POISON		0xa5
/* Takes what a page becomes at worst. */
#define STREAM_ROOM	(2 * PAGE_SIZE)

/* A source or a destination: every entry lies in memory of its own. */
struct side {
	unsigned int nents;
	u8 *mem[COUNT_MAX_ENTRIES];
	struct scatterlist sgl[COUNT_MAX_ENTRIES];
};

struct bench {
	struct crypto_acomp *tfm;
	struct acomp_req *req;
	struct crypto_wait wait;
	struct side src, dst, flat_src, flat_dst;
	u8 *stream;
	u64 *ticks;
};

static void side_free(struct side *side)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(side->mem); i++)
		free_pages((unsigned long)side->mem[i], get_order(STREAM_ROOM));
}

static int side_init(struct side *side, unsigned int nents)
{
	unsigned int i;

	side->nents = nents;
	for (i = 0; i < nents; i++) {
		side->mem[i] = (u8 *)__get_free_pages(GFP_KERNEL, get_order(STREAM_ROOM));
		if (!side->mem[i])
			return -ENOMEM;
	}
	return 0;
}

/* Equal parts of @len bytes, all poisoned. */
static void side_layout(struct side *side, unsigned int len)
{
	unsigned int i, part;

	sg_init_table(side->sgl, side->nents);
	for (i = 0; i < side->nents; i++) {
		part = DIV_ROUND_UP(len, side->nents - i);
		memset(side->mem[i], POISON, STREAM_ROOM);
		sg_set_buf(&side->sgl[i], side->mem[i], part);
		len -= part;
	}
}

static void side_fill(struct side *side, const void *data, unsigned int len)
{
	side_layout(side, len);
	sg_copy_from_buffer(side->sgl, side->nents, data, len);
}

static bool side_holds(struct side *side, const void *data, unsigned int len)
{
	unsigned int i, part;

	for (i = 0; i < side->nents && len; i++, data += part, len -= part) {
		part = min(side->sgl[i].length, len);
		if (memcmp(side->mem[i], data, part))
			return false;
	}
	return !len;
}

static __always_inline u64 finish(u64 start)
{
	set_mark(MARK_END);
	return rdtsc_ordered() - start;
}

/*
 * The measured pieces, alike but for what lies between the marks. The counter leaves
 * out what is outside a case.
 */
static noinline void measure_nothing(u64 *ticks)
{
	u64 start = rdtsc_ordered();

	set_mark(MARK_BEGIN);
	*ticks = finish(start);
}

static noinline int measure_compress(struct bench *bench, u64 *ticks)
{
	u64 start = rdtsc_ordered();
	int err;

	set_mark(MARK_BEGIN);
	err = crypto_wait_req(crypto_acomp_compress(bench->req), &bench->wait);
	*ticks = finish(start);
	return err;
}

static noinline int measure_decompress(struct bench *bench, u64 *ticks)
{
	u64 start = rdtsc_ordered();
	int err;

	set_mark(MARK_BEGIN);
	err = crypto_wait_req(crypto_acomp_decompress(bench->req), &bench->wait);
	*ticks = finish(start);
	return err;
}

/* An operation that is not measured, between buffers of one entry. */
static int convert(struct bench *bench, bool compress, const void *from, unsigned int len,
		   unsigned int *out_len)
{
	int err;

	side_fill(&bench->flat_src, from, len);
	side_layout(&bench->flat_dst, *out_len);
	acomp_request_set_params(bench->req, bench->flat_src.sgl, bench->flat_dst.sgl, len,
				 *out_len);
	err = compress ? crypto_acomp_compress(bench->req) : crypto_acomp_decompress(bench->req);
	err = crypto_wait_req(err, &bench->wait);
	*out_len = bench->req->dlen;
	return err;
}

static int measure_one(struct bench *bench, const struct count_case *what, const u8 *page,
		       u64 *ticks, u64 *compressed, const char **failed)
{
	unsigned int in_len = PAGE_SIZE, room = STREAM_ROOM;
	const void *in = page;
	int err;

	if (!what->compress) {
		*failed = "the stream to decompress cannot be made";
		in_len = STREAM_ROOM;
		err = convert(bench, true, page, PAGE_SIZE, &in_len);
		if (err)
			return err;
		memcpy(bench->stream, bench->flat_dst.mem[0], in_len);
		in = bench->stream;
		room = PAGE_SIZE;
	}
	side_fill(&bench->src, in, in_len);
	side_layout(&bench->dst, room);
	acomp_request_set_params(bench->req, bench->src.sgl, bench->dst.sgl, in_len, room);

	*failed = "the operation fails";
	err = what->compress ? measure_compress(bench, ticks) : measure_decompress(bench, ticks);
	if (err)
		return err;
	*compressed += what->compress ? bench->req->dlen : in_len;

	if (what->compress) {
		*failed = "what was compressed cannot be decompressed";
		in_len = bench->req->dlen;
		room = PAGE_SIZE;
		sg_copy_to_buffer(bench->dst.sgl, bench->dst.nents, bench->stream, in_len);
		err = convert(bench, false, bench->stream, in_len, &room);
		if (err)
			return err;
		*failed = "what was compressed decompresses to other bytes";
		return room == PAGE_SIZE && side_holds(&bench->flat_dst, page, room) ? 0 : -EBADMSG;
	}
	*failed = "what was decompressed are other bytes";
	return bench->req->dlen == PAGE_SIZE && side_holds(&bench->dst, page, PAGE_SIZE) ?
		0 : -EBADMSG;
}

static int measure_all(struct bench *bench, const struct count_case *what, const u8 *pages,
		       size_t n_pages, struct count_result *result, char *error, size_t error_size)
{
	const char *failed = "";
	unsigned int i;
	size_t page;
	int err;

	for (i = 0; i < what->operations; i++) {
		page = div_u64((u64)i * n_pages, what->operations);
		err = measure_one(bench, what, pages + page * PAGE_SIZE, &bench->ticks[i],
				  &result->compressed, &failed);
		if (err) {
			snprintf(error, error_size, "page %zu: %s (%d)", page, failed, err);
			return err;
		}
		result->done++;
		cond_resched();
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void summarize(u64 *ticks, unsigned int n, struct count_result *result)
{
	unsigned int i;
	u64 sum = 0;

	sort(ticks, n, sizeof(*ticks), compare, NULL);
	for (i = 0; i < n; i++)
		sum += ticks[i];
	result->minimum = ticks[0] - result->overhead;
	result->median = ticks[n / 2] - result->overhead;
	result->maximum = ticks[n - 1] - result->overhead;
	result->total = sum - n * result->overhead;
}

/* What reading the TSC itself takes, between two readings. */
static u64 overhead(void)
{
	u64 ticks, least = U64_MAX;
	unsigned int i;

	for (i = 0; i < 16; i++) {
		measure_nothing(&ticks);
		least = min(least, ticks);
	}
	return least;
}

static int bench_init(struct bench *bench, const struct count_case *what)
{
	int err;

	bench->ticks = kvcalloc(what->operations, sizeof(*bench->ticks), GFP_KERNEL);
	bench->stream = kmalloc(STREAM_ROOM, GFP_KERNEL);
	if (!bench->ticks || !bench->stream)
		return -ENOMEM;
	err = side_init(&bench->src, what->src_nents) ?: side_init(&bench->dst, what->dst_nents) ?:
	      side_init(&bench->flat_src, 1) ?: side_init(&bench->flat_dst, 1);
	if (err)
		return err;
	bench->tfm = crypto_alloc_acomp(what->alg, 0, 0);
	if (IS_ERR(bench->tfm)) {
		err = PTR_ERR(bench->tfm);
		bench->tfm = NULL;
		return err;
	}
	bench->req = acomp_request_alloc(bench->tfm);
	if (!bench->req)
		return -ENOMEM;
	crypto_init_wait(&bench->wait);
	acomp_request_set_callback(bench->req, CRYPTO_TFM_REQ_MAY_BACKLOG, crypto_req_done,
				   &bench->wait);
	return 0;
}

static void bench_free(struct bench *bench)
{
	if (bench->req)
		acomp_request_free(bench->req);
	if (bench->tfm)
		crypto_free_acomp(bench->tfm);
	side_free(&bench->src);
	side_free(&bench->dst);
	side_free(&bench->flat_src);
	side_free(&bench->flat_dst);
	kfree(bench->stream);
	kvfree(bench->ticks);
	kfree(bench);
}

/**
 * count_run() - measure a case
 * @what: the case
 * @pages: bytes to compress, pages of them one behind the other
 * @n_pages: how many; operations spread over all of them
 * @result: number and algorithm are filled in, the rest as far as it came
 * @error: says what went wrong, if something did
 * @error_size: room in @error
 *
 * Return: 0 where all operations succeeded and every byte was right.
 */
int count_run(const struct count_case *what, const u8 *pages, size_t n_pages,
	      struct count_result *result, char *error, size_t error_size)
{
	static unsigned int number;
	struct bench *bench = kzalloc(sizeof(*bench), GFP_KERNEL);
	int err;

	if (!bench)
		return -ENOMEM;
	err = bench_init(bench, what);
	if (err) {
		snprintf(error, error_size, "%s cannot be had (%d)", what->alg, err);
		goto out;
	}
	*result = (struct count_result){ .number = ++number };
	strscpy(result->driver_name,
		crypto_tfm_alg_driver_name(crypto_acomp_tfm(bench->tfm)));
	result->overhead = overhead();
	set_mark(MARK_CASE);
	err = measure_all(bench, what, pages, n_pages, result, error, error_size);
	set_mark(MARK_CASE_END);
	if (result->done)
		summarize(bench->ticks, result->done, result);
out:
	bench_free(bench);
	return err;
}
