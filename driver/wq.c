// SPDX-License-Identifier: GPL-2.0
/* Binding and unbinding WQs: the sub-driver that idxd's bus calls. */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/slab.h>

#include "iaa.h"
#include "stats/trace.h"

/* Requests end by themselves within their time limits; past this much more, say so. */
#define DRAIN_WARN_MS 10000

static atomic64_t bindings = ATOMIC64_INIT(0);

static void iaa_wq_released(struct percpu_ref *ref)
{
	struct iaa_wq *iwq = container_of(ref, struct iaa_wq, ref);

	complete(&iwq->drained);
}

static void iaa_wq_free(struct iaa_wq *iwq)
{
	struct iaa_device *dev = iwq->dev;

	iaa_slots_free(iwq);
	percpu_ref_exit(&iwq->ref);
	free_percpu(iwq->stats);
	kfree(iwq->config.name);
	kfree(iwq);
	iaa_device_put(dev);
}

/* To enable one WQ, idxd writes the configuration of all of the device's: each must have one. */
static int enable(struct iaa_device *dev, struct idxd_wq *wq)
{
	int rc;

	mutex_lock(&dev->config_lock);
	rc = idxd_drv_enable_wq(wq);
	mutex_unlock(&dev->config_lock);
	return rc;
}

/* The device reference becomes the WQ's, unless there is an error. */
static struct iaa_wq *iaa_wq_create(struct iaa_device *dev, struct idxd_wq *wq)
{
	unsigned long flags = idxd_wq_flags(wq);
	struct iaa_wq *iwq;
	int rc = -ENOMEM;

	iwq = kzalloc(sizeof(*iwq), GFP_KERNEL);
	if (!iwq)
		return ERR_PTR(-ENOMEM);
	iwq->wq = wq;
	iwq->dev = dev;
	iwq->binding = atomic64_inc_return(&bindings);
	iwq->enabled = true;
	iwq->back_at = jiffies;
	iwq->max_len = min3(idxd_wq_max_xfer_bytes(wq), (u64)INT_MAX,
			    (u64)dma_max_mapping_size(&idxd_device_pdev(idxd_wq_idxd(wq))->dev));
	init_completion(&iwq->drained);
	spin_lock_init(&iwq->lost_lock);
	INIT_LIST_HEAD(&iwq->lost);
	INIT_DELAYED_WORK(&iwq->health, iaa_wq_health);
	INIT_DELAYED_WORK(&iwq->watch, iaa_async_watch);
	/* What ENQCMD refuses, idxd takes off its list in a way that would lose other requests. */
	iwq->irq = test_bit(WQ_FLAG_DEDICATED, &flags);
	iwq->stats = alloc_percpu(struct iaa_wq_stats);
	if (!iwq->stats)
		goto err;
	rc = percpu_ref_init(&iwq->ref, iaa_wq_released, PERCPU_REF_ALLOW_REINIT, GFP_KERNEL);
	if (rc)
		goto err_stats;
	rc = iaa_config_save(&iwq->config, wq);
	if (rc)
		goto err_ref;
	rc = iaa_slots_alloc(iwq) ?: iaa_slots_claim(iwq);
	if (rc)
		goto err_slots;
	return iwq;

err_slots:
	iaa_slots_free(iwq);
	kfree(iwq->config.name);
err_ref:
	percpu_ref_exit(&iwq->ref);
err_stats:
	free_percpu(iwq->stats);
err:
	kfree(iwq);
	return ERR_PTR(rc);
}

static int iaa_wq_probe(struct idxd_dev *idxd_dev)
{
	struct idxd_wq *wq = idxd_dev_to_wq(idxd_dev);
	struct idxd_device *idxd = idxd_wq_idxd(wq);
	struct device *dev = idxd_wq_dev(wq);
	struct iaa_device *iaa_dev;
	struct iaa_wq *iwq;
	int rc;

	if (idxd_device_state(idxd) != IDXD_DEV_ENABLED)
		return -ENXIO;
	if (idxd_driver_data_type(idxd_device_data(idxd)) != IDXD_TYPE_IAX)
		return -ENODEV;

	mutex_lock(idxd_wq_wq_lock(wq));
	/* Every driver is tried for every WQ: this is how another one's is told. */
	if (strcmp(idxd_wq_driver_name(wq), iaa_driver.name)) {
		dev_dbg(dev, "WQ is for driver \"%s\"\n", idxd_wq_driver_name(wq));
		idxd_device_set_cmd_status(idxd, IDXD_SCMD_WQ_NO_DRV_NAME);
		rc = -ENODEV;
		goto out;
	}

	iaa_dev = iaa_device_get(idxd);
	if (!iaa_dev) {
		rc = -ENOMEM;
		goto out;
	}
	idxd_wq_set_type(wq, IDXD_WQT_KERNEL);
	rc = enable(iaa_dev, wq);
	if (rc) {
		dev_err(dev, "cannot be enabled: %d\n", rc);
		idxd_wq_set_type(wq, IDXD_WQT_NONE);
		iaa_device_put(iaa_dev);
		goto out;
	}

	iwq = iaa_wq_create(iaa_dev, wq);
	if (IS_ERR(iwq)) {
		rc = PTR_ERR(iwq);
		dev_err(dev, "its descriptors and buffers cannot be had: %d\n", rc);
		idxd_drv_disable_wq(wq);
		iaa_device_put(iaa_dev);
		goto out;
	}
	rc = iaa_selfcheck(iwq);
	if (rc) {
		dev_err(dev, "the device fails its known-answer check (%d) and is not used\n", rc);
		rc = -EIO;
		goto err_disable_free;
	}

	dev_set_drvdata(dev, iwq);
	mutex_lock(&iaa_lock);
	iwq->usable = true;
	trace_iaa_wq_state(iwq, "bound");
	list_add_tail(&iwq->node, &iaa_wqs);
	iaa_route_publish();
	mutex_unlock(&iaa_lock);
	mutex_unlock(idxd_wq_wq_lock(wq));
	iaa_algs_update();
	return 0;

err_disable_free:
	/* Disabling first: until then the device may write to the buffers. */
	idxd_drv_disable_wq(wq);
	iaa_wq_free(iwq);
out:
	mutex_unlock(idxd_wq_wq_lock(wq));
	return rc;
}

/*
 * Waits until no request uses the WQ, to which no route leads any more. Each of a request's
 * at most two descriptors is answered within the time limit or becomes a lost one, and then
 * the request lets go. Going on before that would free completion records under the eyes of
 * a request that looks at them.
 */
static void iaa_wq_drain(struct iaa_wq *iwq)
{
	percpu_ref_kill(&iwq->ref);
	while (!wait_for_completion_timeout(&iwq->drained,
					    msecs_to_jiffies(2 * iaa_timeout_ms + DRAIN_WARN_MS)))
		dev_warn(idxd_wq_dev(iwq->wq), "still waiting for requests to end\n");
}

/* idxd_wq_quiesce() would wait for ever where idxd has begun it itself, and nobody submits. */
static void disable(struct iaa_wq *iwq)
{
	if (iwq->enabled)
		idxd_drv_disable_wq(iwq->wq);
	iwq->enabled = false;
}

static int enable_again(struct iaa_wq *iwq)
{
	struct idxd_wq *wq = iwq->wq;
	int rc;

	rc = enable(iwq->dev, wq);
	if (!rc) {
		rc = iaa_slots_claim(iwq);
		if (rc)
			idxd_drv_disable_wq(wq);
		return rc;
	}
	/* What idxd says of a WQ that has no mode; this one has that which it had. */
	if (rc == -EINVAL && idxd_device_cmd_status(iwq->dev->idxd) == IDXD_SCMD_WQ_NO_SWQ_SUPPORT)
		return -EAGAIN;
	return rc;
}

/**
 * iaa_wq_reset() - disable a WQ and enable it again; requests that wait for it end
 * @iwq: the WQ, out of use; the caller is its health
 *
 * Return: 0, or an error where it stays disabled: -EAGAIN where that is for another WQ
 * of the device, which has no mode. It may be called again, then.
 */
int iaa_wq_reset(struct iaa_wq *iwq)
{
	struct idxd_wq *wq = iwq->wq;
	int rc;

	if (!percpu_ref_is_dying(&iwq->ref))
		iaa_wq_drain(iwq);
	iaa_async_unwatch(iwq);

	mutex_lock(idxd_wq_wq_lock(wq));
	mutex_lock(&iwq->dev->config_lock);
	disable(iwq);
	iaa_config_restore(&iwq->config, wq);
	mutex_unlock(&iwq->dev->config_lock);
	mutex_unlock(idxd_wq_wq_lock(wq));

	/* The WQ is reset: nothing writes to the memory of lost requests any more. */
	iaa_wq_finish_lost(iwq);

	mutex_lock(idxd_wq_wq_lock(wq));
	rc = enable_again(iwq);
	if (!rc) {
		iwq->enabled = true;
		reinit_completion(&iwq->drained);
		percpu_ref_reinit(&iwq->ref);
	}
	mutex_unlock(idxd_wq_wq_lock(wq));
	return rc;
}

/* No new request finds the WQ, and those that have found it end. */
static void iaa_wq_close(struct iaa_wq *iwq)
{
	mutex_lock(&iaa_lock);
	spin_lock_bh(&iwq->lost_lock);
	iwq->closing = true;
	spin_unlock_bh(&iwq->lost_lock);
	iwq->usable = false;
	trace_iaa_wq_state(iwq, "unbound");
	list_del(&iwq->node);
	iaa_route_publish();
	mutex_unlock(&iaa_lock);

	cancel_delayed_work_sync(&iwq->health);
	/* A reset that did not get to its end has left the WQ drained. */
	if (!percpu_ref_is_dying(&iwq->ref))
		iaa_wq_drain(iwq);
	iaa_async_unwatch(iwq);
	/* A snapshot that some CPU still reads may name the WQ. */
	synchronize_rcu();
}

static void iaa_wq_remove(struct idxd_dev *idxd_dev)
{
	struct idxd_wq *wq = idxd_dev_to_wq(idxd_dev);
	struct iaa_wq *iwq = dev_get_drvdata(idxd_wq_dev(wq));

	iaa_wq_close(iwq);
	mutex_lock(idxd_wq_wq_lock(wq));
	disable(iwq);
	mutex_unlock(idxd_wq_wq_lock(wq));
	iaa_wq_finish_lost(iwq);
	dev_set_drvdata(idxd_wq_dev(wq), NULL);
	iaa_wq_free(iwq);
	iaa_algs_update();
}

/**
 * iaa_wq_wake_irq() - have idxd's interrupt thread look for what has ended
 * @iwq: the WQ
 *
 * What an interrupt is to end is in a list of idxd's until the thread has seen its end, and is
 * not to be used again before.
 */
void iaa_wq_wake_irq(struct iaa_wq *iwq)
{
	struct idxd_irq_entry *ie = idxd_wq_ie(iwq->wq);

	irq_wake_thread(idxd_irq_entry_vector(ie), ie);
}

static enum idxd_dev_type dev_types[] = {
	IDXD_DEV_WQ,
	IDXD_DEV_NONE,
};

struct idxd_device_driver iaa_driver = {
	.name = "crypto",
	.type = dev_types,
	.probe = iaa_wq_probe,
	.remove = iaa_wq_remove,
	.desc_complete = iaa_async_irq,
	.drv = {
		.groups = iaa_driver_groups,
	},
};
