// SPDX-License-Identifier: GPL-2.0
#include <crypto/acompress.h>
#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/crypto.h>
#include <linux/err.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/zlib.h>

#include "codec.h"

#define INFLATE_BITS 15
#define DEFLATE_LEVEL 6

const char * const address_names[ADDRESS_COUNT] = {
	[ADDRESS_SG] = "no",
	[ADDRESS_DMA] = "dma",
	[ADDRESS_NONDMA] = "nondma",
};

struct codec {
	/* acomp */
	struct crypto_acomp *tfm;
	struct acomp_req *req;
	struct completion done;
	int result;
	struct manner manner;
	/* zlib */
	int deflate_bits;
	void *deflate_space;
	void *inflate_space;
};

static void codec_done(void *data, int err)
{
	struct codec *codec = data;

	/* Only says that a backlogged request has been taken up. */
	if (err == -EINPROGRESS)
		return;
	codec->result = err;
	complete(&codec->done);
}

static int codec_open_acomp(struct codec *codec, const char *name)
{
#ifndef CRYPTO_ACOMP_REQ_SRC_VIRT
	if (codec->manner.address)
		return -EOPNOTSUPP;
#endif
	codec->tfm = crypto_alloc_acomp(name, 0, 0);
	if (IS_ERR(codec->tfm)) {
		int err = PTR_ERR(codec->tfm);

		codec->tfm = NULL;
		return err;
	}
	codec->req = acomp_request_alloc(codec->tfm);
	if (!codec->req)
		return -ENOMEM;
	init_completion(&codec->done);
	acomp_request_set_callback(codec->req, CRYPTO_TFM_REQ_MAY_BACKLOG |
				   (codec->manner.sleep ? CRYPTO_TFM_REQ_MAY_SLEEP : 0),
				   codec_done, codec);
	return 0;
}

static int codec_open_zlib(struct codec *codec, int bits)
{
	codec->deflate_bits = bits;
	codec->deflate_space = vzalloc(zlib_deflate_workspacesize(-bits, DEF_MEM_LEVEL));
	codec->inflate_space = vzalloc(zlib_inflate_workspacesize());
	return codec->deflate_space && codec->inflate_space ? 0 : -ENOMEM;
}

/**
 * codec_open() - open an algorithm
 * @name: its driver name, or zlib, or zlib15
 * @manner: of its requests; -EOPNOTSUPP where the kernel does not have that
 *
 * Return: the codec, or the crypto API's error as an error pointer.
 */
struct codec *codec_open(const char *name, const struct manner *manner)
{
	struct codec *codec = kzalloc(sizeof(*codec), GFP_KERNEL);
	int err;

	if (!codec)
		return ERR_PTR(-ENOMEM);
	codec->manner = *manner;
	if (!strcmp(name, "zlib"))
		err = codec_open_zlib(codec, 12);
	else if (!strcmp(name, "zlib15"))
		err = codec_open_zlib(codec, 15);
	else
		err = codec_open_acomp(codec, name);
	if (err) {
		codec_close(codec);
		return ERR_PTR(err);
	}
	return codec;
}

/**
 * codec_close() - the other end of codec_open()
 * @codec: with no operation in flight
 */
void codec_close(struct codec *codec)
{
	if (IS_ERR_OR_NULL(codec))
		return;
	if (codec->req)
		acomp_request_free(codec->req);
	if (codec->tfm)
		crypto_free_acomp(codec->tfm);
	vfree(codec->deflate_space);
	vfree(codec->inflate_space);
	kfree(codec);
}

static void codec_set_params(struct codec *codec, struct scatterlist *src, unsigned int slen,
			     struct scatterlist *dst, unsigned int dlen)
{
	struct acomp_req *req = codec->req;

	acomp_request_set_params(req, src, codec->manner.no_dst ? NULL : dst, slen, dlen);
#ifdef CRYPTO_ACOMP_REQ_SRC_VIRT
	if (codec->manner.address == ADDRESS_DMA) {
		acomp_request_set_src_dma(req, sg_virt(src), slen);
		acomp_request_set_dst_dma(req, sg_virt(dst), dlen);
	} else if (codec->manner.address == ADDRESS_NONDMA) {
		acomp_request_set_src_nondma(req, sg_virt(src), slen);
		acomp_request_set_dst_nondma(req, sg_virt(dst), dlen);
	}
#endif
}

static int codec_start(struct codec *codec, int (*op)(struct acomp_req *req))
{
	int err;

	if (codec->manner.atomic)
		local_bh_disable();
	err = op(codec->req);
	if (codec->manner.atomic)
		local_bh_enable();
	return err;
}

/* Where the destination was to be allocated: takes what is in it. */
static int codec_take_dst(struct codec *codec, struct scatterlist *dst, int err)
{
	struct scatterlist *made = codec->req->dst;
	u8 *bytes;

	if (err)
		return made ? -EBADE : err;	/* nobody would free it */
	bytes = kvmalloc(codec->req->dlen, GFP_KERNEL);
	if (!bytes)
		return -ENOMEM;
	sg_copy_to_buffer(made, sg_nents(made), bytes, codec->req->dlen);
	sg_copy_from_buffer(dst, sg_nents(dst), bytes, codec->req->dlen);
	kvfree(bytes);
	sgl_free(made);
	codec->req->dst = NULL;
	return 0;
}

static int codec_acomp(struct codec *codec, int (*op)(struct acomp_req *req),
		       struct scatterlist *src, unsigned int slen,
		       struct scatterlist *dst, unsigned int *dlen)
{
	int err;

	reinit_completion(&codec->done);
	codec_set_params(codec, src, slen, dst, *dlen);
	err = codec_start(codec, op);
	if (err == -EINPROGRESS || err == -EBUSY) {
		/*
		 * The buffers are the device's until it answers, however long
		 * that takes. Sleeping interruptibly keeps the hung-task check
		 * quiet; the job's result tells how long a thread has waited.
		 */
		while (wait_for_completion_interruptible_timeout(&codec->done, HZ) <= 0)
			;
		err = codec->result;
	}
	if (codec->manner.no_dst)
		err = codec_take_dst(codec, dst, err);
	*dlen = codec->req->dlen;
	return err;
}

static int op_compress(struct acomp_req *req)
{
	return crypto_acomp_compress(req);
}

static int op_decompress(struct acomp_req *req)
{
	return crypto_acomp_decompress(req);
}

/* zlib takes linear memory: gather, run, scatter. */
static int codec_zlib(struct codec *codec, bool deflate, struct scatterlist *src,
		      unsigned int slen, struct scatterlist *dst, unsigned int *dlen)
{
	struct z_stream_s stream = {};
	u8 *in = kvmalloc(slen, GFP_KERNEL);
	u8 *out = kvmalloc(*dlen, GFP_KERNEL);
	int err = -ENOMEM, ret;

	if (!in || !out)
		goto out;
	sg_copy_to_buffer(src, sg_nents(src), in, slen);
	stream.workspace = deflate ? codec->deflate_space : codec->inflate_space;
	if (deflate)
		ret = zlib_deflateInit2(&stream, DEFLATE_LEVEL, Z_DEFLATED, -codec->deflate_bits,
					DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY);
	else
		ret = zlib_inflateInit2(&stream, -INFLATE_BITS);
	err = -EINVAL;
	if (ret != Z_OK)
		goto out;
	stream.next_in = in;
	stream.avail_in = slen;
	stream.next_out = out;
	stream.avail_out = *dlen;
	ret = deflate ? zlib_deflate(&stream, Z_FINISH) : zlib_inflate(&stream, Z_FINISH);
	if (ret == Z_STREAM_END) {
		err = 0;
		*dlen = stream.total_out;
		sg_copy_from_buffer(dst, sg_nents(dst), out, *dlen);
	} else if (!stream.avail_out) {
		err = -ENOSPC;
	}
out:
	kvfree(in);
	kvfree(out);
	return err;
}

int codec_compress(struct codec *codec, struct scatterlist *src, unsigned int slen,
		   struct scatterlist *dst, unsigned int *dlen)
{
	if (!codec->tfm)
		return codec_zlib(codec, true, src, slen, dst, dlen);
	return codec_acomp(codec, op_compress, src, slen, dst, dlen);
}

int codec_decompress(struct codec *codec, struct scatterlist *src, unsigned int slen,
		     struct scatterlist *dst, unsigned int *dlen)
{
	if (!codec->tfm)
		return codec_zlib(codec, false, src, slen, dst, dlen);
	return codec_acomp(codec, op_decompress, src, slen, dst, dlen);
}
