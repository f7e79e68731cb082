// SPDX-License-Identifier: GPL-2.0
/*
 * How a request's data gets to the device. What is small goes through the slot's
 * own buffers, which stay mapped: a copy costs less than mapping where an IOMMU
 * translates, takes any number of segments, and leaves nothing of the caller's in
 * the device's hands when it does not answer. What is large is mapped where it is
 * if it is in one piece, and gathered into a borrowed buffer if it is not.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "iaa.h"

static int alloc_buffer(struct iaa_device *dev, struct iaa_buffer *buf, size_t size)
{
	buf->va = dma_alloc_coherent(dev->dev, size, &buf->dma, GFP_KERNEL | __GFP_NOWARN);
	return buf->va ? 0 : -ENOMEM;
}

static void free_buffer(struct iaa_device *dev, struct iaa_buffer *buf, size_t size)
{
	if (buf->va)
		dma_free_coherent(dev->dev, size, buf->va, buf->dma);
}

static void free_large(struct iaa_device *dev, struct iaa_large *large)
{
	free_buffer(dev, &large->src, IAA_LARGE);
	free_buffer(dev, &large->dst, IAA_LARGE);
}

/**
 * iaa_buffers_alloc_large() - make a device's large buffers
 * @dev: the device
 *
 * Fewer of them than wished for, even none, only mean more software.
 */
void iaa_buffers_alloc_large(struct iaa_device *dev)
{
	struct iaa_large *large;

	for (large = dev->large; dev->n_large < IAA_LARGE_COUNT; large++, dev->n_large++) {
		if (alloc_buffer(dev, &large->src, IAA_LARGE) ||
		    alloc_buffer(dev, &large->dst, IAA_LARGE)) {
			free_large(dev, large);
			return;
		}
	}
}

/**
 * iaa_buffers_free_large() - free a device's large buffers, which nobody has borrowed
 * @dev: the device
 */
void iaa_buffers_free_large(struct iaa_device *dev)
{
	while (dev->n_large)
		free_large(dev, &dev->large[--dev->n_large]);
}

/**
 * iaa_buffers_alloc() - make a slot's own buffers
 * @slot: the slot
 *
 * Return: 0 or -ENOMEM; what there is then is freed by iaa_buffers_free().
 */
int iaa_buffers_alloc(struct iaa_slot *slot)
{
	struct iaa_device *dev = slot->iwq->dev;

	return alloc_buffer(dev, &slot->small_src, IAA_SMALL) ?:
	       alloc_buffer(dev, &slot->small_dst, IAA_SMALL_OUT);
}

/**
 * iaa_buffers_free() - free a slot's own buffers, as far as there are any
 * @slot: the slot; the device does not write any more
 */
void iaa_buffers_free(struct iaa_slot *slot)
{
	struct iaa_device *dev = slot->iwq->dev;

	free_buffer(dev, &slot->small_src, IAA_SMALL);
	free_buffer(dev, &slot->small_dst, IAA_SMALL_OUT);
}

/* Each CPU begins at another pair, so that they meet only where there are too few. */
static struct iaa_large *borrow(struct iaa_device *dev, struct iaa_slot *slot)
{
	unsigned int first = raw_smp_processor_id(), i, k;

	for (i = 0; !slot->large && i < dev->n_large; i++) {
		k = (first + i) % dev->n_large;
		if (!test_bit(k, &dev->large_busy) && !test_and_set_bit_lock(k, &dev->large_busy))
			slot->large = &dev->large[k];
	}
	return slot->large;
}

static void use_buffer(struct iaa_side *side, const struct iaa_buffer *buf, u32 len)
{
	side->kind = IAA_IN_BUFFER;
	side->buf = buf->va;
	side->dma = buf->dma;
	side->len = len;
}

static int use_place(struct device *dev, struct iaa_side *side, struct scatterlist *sg, u32 len,
		     enum dma_data_direction dir)
{
	/* Where it cannot be mapped, software serves: no reason to write into the log. */
	side->dma = dma_map_page_attrs(dev, sg_page(sg), sg->offset, len, dir,
				       DMA_ATTR_NO_WARN);
	if (dma_mapping_error(dev, side->dma))
		return -EIO;
	side->kind = IAA_IN_PLACE;
	side->len = len;
	side->dir = dir;
	side->attrs = 0;
	return 0;
}

/*
 * Verification names the source as its destination, so that the device must have the
 * right to write there. It does not: nothing is to be copied back at the end.
 */
static int use_source(struct device *dev, struct iaa_side *side, struct scatterlist *sg, u32 len,
		      bool verify)
{
	int rc = use_place(dev, side, sg, len, verify ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE);

	if (verify)
		side->attrs = DMA_ATTR_SKIP_CPU_SYNC;
	return rc;
}

static bool in_one_piece(struct scatterlist *sg, u32 len)
{
	return sg->length >= len;
}

/* Whether any of a list's first @len bytes lie in @place, which is in one piece. */
static bool overlaps(struct scatterlist *sg, u32 len, struct scatterlist *place, u32 place_len)
{
	u32 part;

	for (; sg && len; sg = sg_next(sg)) {
		part = min(sg->length, len);
		if (sg_phys(sg) < sg_phys(place) + place_len &&
		    sg_phys(place) < sg_phys(sg) + part)
			return true;
		len -= part;
	}
	return false;
}

/* Memory is mapped as a whole here (see iaa_soft_init()): a segment is in one piece. */
static void copy_in(void *to, struct scatterlist *sg, u32 len)
{
	u32 part;

	for (;;) {
		part = min(sg->length, len);
		memcpy(to, sg_virt(sg), part);
		len -= part;
		if (!len)
			return;
		to += part;
		sg = sg_next(sg);
	}
}

static void copy_out(struct scatterlist *sg, const void *from, u32 len)
{
	u32 part;

	for (;;) {
		part = min(sg->length, len);
		memcpy(sg_virt(sg), from, part);
		len -= part;
		if (!len)
			return;
		from += part;
		sg = sg_next(sg);
	}
}

/**
 * iaa_buffers_attach() - give the device a request's data
 * @slot: the slot; what is asked for is in it
 * @req: the request, its lengths checked
 *
 * The device may get less room than the request has.
 *
 * Return: 0, -ENOBUFS where there is no buffer to gather in, -EFBIG where it would
 * not hold the source, -EIO where mapping failed. Nothing is attached then.
 */
int iaa_buffers_attach(struct iaa_slot *slot, struct acomp_req *req)
{
	struct iaa_device *dev = slot->iwq->dev;
	struct scatterlist *src = req->src, *dst = req->dst;
	u32 src_len = req->slen, dst_len = min(req->dlen, slot->iwq->max_len);
	bool src_here, dst_here;
	int rc;

	if (slot->compress && src_len <= IAA_SMALL)
		dst_len = min_t(u32, dst_len, IAA_SMALL_OUT);
	src_here = src_len > IAA_SMALL && in_one_piece(src, src_len);
	dst_here = dst_len > IAA_SMALL_OUT && in_one_piece(dst, dst_len);
	/*
	 * The device refuses buffers that overlap, and a source that it has written
	 * over before it failed is of no use to software.
	 */
	if (dst_here && overlaps(src, src_len, dst, dst_len))
		dst_here = false;

	rc = src_len > IAA_LARGE ? -EFBIG : -ENOBUFS;
	if (src_len <= IAA_SMALL)
		use_buffer(&slot->src, &slot->small_src, src_len);
	else if (src_here)
		rc = use_source(dev->dev, &slot->src, src, src_len, slot->check);
	else if (src_len <= IAA_LARGE && borrow(dev, slot))
		use_buffer(&slot->src, &slot->large->src, src_len);
	if (slot->src.kind == IAA_IN_NONE)
		goto err;

	rc = -ENOBUFS;
	if (dst_len <= IAA_SMALL_OUT)
		use_buffer(&slot->dst, &slot->small_dst, dst_len);
	else if (dst_here)
		rc = use_place(dev->dev, &slot->dst, dst, dst_len,
			       slot->check ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE);
	else if (borrow(dev, slot))
		use_buffer(&slot->dst, &slot->large->dst, min_t(u32, dst_len, IAA_LARGE));
	if (slot->dst.kind == IAA_IN_NONE)
		goto err;

	if (slot->src.kind == IAA_IN_BUFFER)
		copy_in(slot->src.buf, src, src_len);
	return 0;
err:
	iaa_buffers_detach(slot);
	return rc;
}

static void detach_side(struct device *dev, struct iaa_side *side)
{
	if (side->kind == IAA_IN_PLACE)
		dma_unmap_page_attrs(dev, side->dma, side->len, side->dir, side->attrs);
	side->kind = IAA_IN_NONE;
}

/**
 * iaa_buffers_detach() - take a request's data back from the device
 * @slot: the slot
 */
void iaa_buffers_detach(struct iaa_slot *slot)
{
	struct iaa_device *dev = slot->iwq->dev;

	detach_side(dev->dev, &slot->src);
	detach_side(dev->dev, &slot->dst);
	if (slot->large) {
		clear_bit_unlock(slot->large - dev->large, &dev->large_busy);
		slot->large = NULL;
	}
}

/**
 * iaa_buffers_copy_out() - hand the output to the caller where it is not there yet
 * @slot: the slot, before it is detached
 * @req: the request
 * @len: bytes of output
 */
void iaa_buffers_copy_out(struct iaa_slot *slot, struct acomp_req *req, u32 len)
{
	if (slot->dst.kind == IAA_IN_BUFFER && len)
		copy_out(req->dst, slot->dst.buf, len);
}
