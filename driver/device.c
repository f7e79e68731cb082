// SPDX-License-Identifier: GPL-2.0
/* IAA devices: there from their first bound WQ to their last. */
#include <linux/dma-mapping.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "iaa.h"

static struct iaa_device *create(struct idxd_device *idxd)
{
	struct iaa_device *dev;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return NULL;
	mutex_init(&dev->config_lock);
	dev->idxd = idxd;
	dev->dev = &idxd_device_pdev(idxd)->dev;
	dev->id = idxd_device_id(idxd);
	dev->aecs = dma_alloc_coherent(dev->dev, sizeof(*dev->aecs), &dev->aecs_dma, GFP_KERNEL);
	if (!dev->aecs) {
		kfree(dev);
		return NULL;
	}
	memset(dev->aecs, 0, sizeof(*dev->aecs));
	iaa_mode_fixed.fill(dev->aecs);
	iaa_buffers_alloc_large(dev);
	return dev;
}

/**
 * iaa_device_get() - the object of a device, made for its first WQ
 * @idxd: the device
 *
 * Return: the device with one more WQ, or NULL where there is no memory.
 */
struct iaa_device *iaa_device_get(struct idxd_device *idxd)
{
	struct iaa_device *dev;
	unsigned int noio;

	mutex_lock(&iaa_lock);
	/* Requests may be waiting for whoever takes the lock next. */
	noio = memalloc_noio_save();
	list_for_each_entry(dev, &iaa_devices, node)
		if (dev->idxd == idxd)
			goto found;
	dev = create(idxd);
	if (!dev)
		goto out;
	list_add_tail(&dev->node, &iaa_devices);
found:
	dev->n_wqs++;
out:
	memalloc_noio_restore(noio);
	mutex_unlock(&iaa_lock);
	return dev;
}

/**
 * iaa_device_put() - a WQ is gone; with the last the device goes
 * @dev: the device, which no request uses through that WQ any more
 */
void iaa_device_put(struct iaa_device *dev)
{
	mutex_lock(&iaa_lock);
	if (!--dev->n_wqs) {
		list_del(&dev->node);
		iaa_buffers_free_large(dev);
		dma_free_coherent(dev->dev, sizeof(*dev->aecs), dev->aecs, dev->aecs_dma);
		mutex_destroy(&dev->config_lock);
		kfree(dev);
	}
	mutex_unlock(&iaa_lock);
}
