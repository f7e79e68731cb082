// SPDX-License-Identifier: GPL-2.0
/*
 * The software codec. It reads every DEFLATE stream, with the full window and in
 * one pass, whatever the segments; what it writes keeps to the 4 KB that the
 * device can read. Each CPU has its own workspace, there before it is needed, which
 * is locked while in use. What would keep it for long gets one of its own.
 */
#include <linux/cpuhotplug.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/zlib.h>

#include "iaa.h"

/* Speed counts here, and a hash that is cleared for each page must be small. */
#define SOFT_LEVEL	Z_BEST_SPEED
#define SOFT_MEM_LEVEL	6
#define SOFT_READ_BITS	15
/* So many bytes in or out are short enough to be done with the CPU held. */
#define SOFT_SHORT	(4 * PAGE_SIZE)
/* Nothing longer is handed to zlib at once, so that who may sleep can make way. */
#define SOFT_PIECE	SZ_64K

/**
 * struct soft - a CPU's workspace
 * @lock: held while in use; another CPU may hold it after its task was moved
 * @deflate: state of the compressor
 * @inflate: state of the decompressor
 */
struct soft {
	spinlock_t lock;	/* held while in use */
	struct z_stream_s deflate;
	struct z_stream_s inflate;
};

static DEFINE_PER_CPU(struct soft, soft);
static int soft_hotplug_state;

/**
 * struct cursor - what is left of a source or a destination
 * @sg: segment that comes next
 * @at: bytes of it that have been taken
 * @virt: or, where it is not NULL, where it goes on in one piece
 * @left: bytes left from there on
 */
struct cursor {
	struct scatterlist *sg;
	unsigned int at;
	const u8 *virt;
	unsigned int left;
};

/* The next piece, or NULL at the end. */
static u8 *take(struct cursor *c, unsigned int *len)
{
	unsigned int most = min_t(unsigned int, c->left, SOFT_PIECE);
	u8 *piece;

	if (!most)
		return NULL;
	if (c->virt) {
		piece = (u8 *)c->virt;
		*len = most;
		c->virt += most;
	} else {
		while (c->sg && c->at == c->sg->length) {
			c->sg = sg_next(c->sg);
			c->at = 0;
		}
		if (!c->sg)
			return NULL;
		piece = sg_virt(c->sg) + c->at;
		*len = min(c->sg->length - c->at, most);
		c->at += *len;
	}
	c->left -= *len;
	return piece;
}

static bool overlaps(struct cursor a, struct cursor b)
{
	unsigned int a_len, b_len;
	u8 *pa, *pb;

	while ((pa = take(&a, &a_len))) {
		struct cursor rest = b;

		while ((pb = take(&rest, &b_len)))
			if (pa < pb + b_len && pb < pa + a_len)
				return true;
	}
	return false;
}

/* Where the destination ends, one byte more shows whether the output does. */
static bool feed(struct z_stream_s *s, struct cursor *src, struct cursor *dst, u8 *spare,
		 bool *on_spare)
{
	unsigned int len;
	u8 *piece;

	if (!s->avail_in) {
		piece = take(src, &len);
		if (piece) {
			s->next_in = piece;
			s->avail_in = len;
		}
	}
	if (s->avail_out)
		return true;
	if (*on_spare)
		return false;
	piece = take(dst, &len);
	if (piece) {
		s->next_out = piece;
		s->avail_out = len;
	} else {
		s->next_out = spare;
		s->avail_out = 1;
		*on_spare = true;
	}
	return true;
}

static void start(struct z_stream_s *s)
{
	s->next_in = NULL;
	s->avail_in = 0;
	s->next_out = NULL;
	s->avail_out = 0;
}

/* Bytes of output, less the spare one, or -ENOSPC if that was needed. */
static int finish(struct z_stream_s *s, bool on_spare)
{
	if (on_spare && !s->avail_out)
		return -ENOSPC;
	return s->total_out;
}

static int soft_deflate(struct z_stream_s *s, struct cursor src, struct cursor dst, bool may_sleep)
{
	bool on_spare = false;
	u8 spare;
	int ret;

	start(s);
	if (zlib_deflateReset(s) != Z_OK)
		return -EINVAL;
	while (feed(s, &src, &dst, &spare, &on_spare)) {
		if (may_sleep)
			cond_resched();
		ret = zlib_deflate(s, src.left ? Z_NO_FLUSH : Z_FINISH);
		if (ret == Z_STREAM_END)
			return finish(s, on_spare);
		if (ret != Z_OK && !(ret == Z_BUF_ERROR && !s->avail_out))
			return -EINVAL;
	}
	return -ENOSPC;
}

static int soft_inflate(struct z_stream_s *s, struct cursor src, struct cursor dst, bool may_sleep)
{
	bool on_spare = false;
	u8 spare;
	int ret;

	start(s);
	if (zlib_inflateReset(s) != Z_OK)
		return -EINVAL;
	while (feed(s, &src, &dst, &spare, &on_spare)) {
		if (may_sleep)
			cond_resched();
		ret = zlib_inflate(s, Z_SYNC_FLUSH);
		if (ret == Z_STREAM_END)
			return finish(s, on_spare);
		if (ret != Z_OK && ret != Z_BUF_ERROR)
			return -EINVAL;
		/* Room for more and nothing left to read: the stream is cut off. */
		if (s->avail_out && !s->avail_in && !src.left)
			return -EINVAL;
		if (s->avail_out && s->avail_in)
			return -EINVAL;
	}
	return -ENOSPC;
}

static size_t workspace_size(bool compress)
{
	return compress ? zlib_deflate_workspacesize(-IAA_WINDOW_BITS, SOFT_MEM_LEVEL) :
			  zlib_inflate_workspacesize();
}

static int start_deflate(struct z_stream_s *s)
{
	return zlib_deflateInit2(s, SOFT_LEVEL, Z_DEFLATED, -IAA_WINDOW_BITS, SOFT_MEM_LEVEL,
				 Z_DEFAULT_STRATEGY);
}

static int start_inflate(struct z_stream_s *s)
{
	return zlib_inflateInit2(s, -SOFT_READ_BITS);
}

static void *alloc_temporary(size_t size, bool may_sleep)
{
	return kvmalloc(size, may_sleep ? GFP_KERNEL : GFP_ATOMIC | __GFP_NOWARN);
}

/* With a workspace of its own, and nothing locked. */
static int soft_run_long(struct cursor src, struct cursor dst, bool compress, bool may_sleep,
			 void *workspace)
{
	struct z_stream_s s = { .workspace = workspace };

	if ((compress ? start_deflate(&s) : start_inflate(&s)) != Z_OK)
		return -EINVAL;
	return compress ? soft_deflate(&s, src, dst, may_sleep) :
			  soft_inflate(&s, src, dst, may_sleep);
}

static int soft_run(struct cursor src, struct cursor dst, bool compress, bool may_sleep)
{
	unsigned int most = compress ? src.left : max(src.left, dst.left);
	void *workspace = NULL;
	struct soft *my;
	int rc;

	if (most > SOFT_SHORT)
		workspace = alloc_temporary(workspace_size(compress), may_sleep);
	if (workspace) {
		rc = soft_run_long(src, dst, compress, may_sleep, workspace);
		kvfree(workspace);
		return rc;
	}
	my = raw_cpu_ptr(&soft);
	spin_lock_bh(&my->lock);
	rc = compress ? soft_deflate(&my->deflate, src, dst, false) :
			soft_inflate(&my->inflate, src, dst, false);
	spin_unlock_bh(&my->lock);
	return rc;
}

/* Source and destination share memory: read from a copy. */
static int soft_run_copy(struct cursor src, struct cursor dst, bool compress, bool may_sleep)
{
	struct cursor copy = { .left = src.left };
	unsigned int len, at = 0;
	u8 *buf, *piece;
	int rc;

	buf = alloc_temporary(src.left, may_sleep);
	if (!buf)
		return -ENOMEM;
	while ((piece = take(&src, &len))) {
		memcpy(buf + at, piece, len);
		at += len;
	}
	copy.virt = buf;
	rc = soft_run(copy, dst, compress, may_sleep);
	kvfree(buf);
	return rc;
}

/**
 * iaa_soft_request() - do a request in software, without sleeping unless it may
 * @req: the request, its lengths checked
 * @compress: what it asks for
 * @may_sleep: the caller may sleep
 *
 * Return: 0 with the destination length set, -ENOSPC, -EINVAL; -ENOMEM only where
 * source and destination overlap.
 */
int iaa_soft_request(struct acomp_req *req, bool compress, bool may_sleep)
{
	struct cursor src = { .virt = iaa_acomp_src_virt(req), .left = req->slen };
	struct cursor dst = { .virt = iaa_acomp_dst_virt(req), .left = req->dlen };
	int rc;

	if (!src.virt)
		src.sg = req->src;
	if (!dst.virt)
		dst.sg = req->dst;
	iaa_count(compress ? IAA_C_SW_COMP_CALLS : IAA_C_SW_DECOMP_CALLS, 1);
	if (overlaps(src, dst))
		rc = soft_run_copy(src, dst, compress, may_sleep);
	else
		rc = soft_run(src, dst, compress, may_sleep);
	if (rc < 0)
		return rc;
	req->dlen = rc;
	return 0;
}

/**
 * iaa_soft_inflate() - decompress a buffer in software
 * @from: the stream
 * @slen: its bytes
 * @to: the output
 * @dlen: bytes it may take; set to those that it took
 */
int iaa_soft_inflate(const void *from, unsigned int slen, void *to, unsigned int *dlen)
{
	struct cursor src = { .virt = from, .left = slen };
	struct cursor dst = { .virt = to, .left = *dlen };
	int rc = soft_run(src, dst, false, true);

	if (rc < 0)
		return rc;
	*dlen = rc;
	return 0;
}

static void free_soft(struct soft *my)
{
	vfree(my->deflate.workspace);
	vfree(my->inflate.workspace);
	my->deflate.workspace = NULL;
	my->inflate.workspace = NULL;
}

/* A CPU's workspace stays when it goes, since a moved task may still use it. */
static int soft_prepare_cpu(unsigned int cpu)
{
	struct soft *my = per_cpu_ptr(&soft, cpu);
	int node = cpu_to_node(cpu);

	if (my->inflate.workspace)
		return 0;
	spin_lock_init(&my->lock);
	my->deflate.workspace = vzalloc_node(workspace_size(true), node);
	my->inflate.workspace = vzalloc_node(workspace_size(false), node);
	if (my->deflate.workspace && my->inflate.workspace &&
	    start_deflate(&my->deflate) == Z_OK && start_inflate(&my->inflate) == Z_OK)
		return 0;
	free_soft(my);
	return -ENOMEM;
}

static void free_all(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		free_soft(per_cpu_ptr(&soft, cpu));
}

/** iaa_soft_init() - make the workspaces of all CPUs, now and as they come */
int iaa_soft_init(void)
{
	int rc;

	BUILD_BUG_ON(IS_ENABLED(CONFIG_HIGHMEM));
	rc = cpuhp_setup_state(CPUHP_BP_PREPARE_DYN, "crypto/iaa:prepare", soft_prepare_cpu, NULL);
	if (rc < 0) {
		free_all();
		return rc;
	}
	soft_hotplug_state = rc;
	return 0;
}

/** iaa_soft_exit() - free the workspaces */
void iaa_soft_exit(void)
{
	cpuhp_remove_state_nocalls(soft_hotplug_state);
	free_all();
}
