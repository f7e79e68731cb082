// SPDX-License-Identifier: GPL-2.0
/*
 * WQs whose device did not answer in time. A descriptor without an answer still
 * belongs to the device, and so does the memory it names. Such a WQ is taken out
 * of use; what it owes is watched for. When all of it has arrived, and the device
 * passes its check again, the WQ is used again. When it has not, and a request
 * waits with memory that is not the driver's, the WQ is unbound, which resets it.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "iaa.h"

#define LOOK_AGAIN_MS	50
#define LOOK_SELDOM_MS	1000
#define GIVE_UP_MS	5000
#define MAX_COMEBACKS	5

/* Finishes a request whose descriptor the device has done with. */
static void finish_slot(struct iaa_wq *iwq, struct iaa_slot *slot)
{
	struct acomp_req *req = slot->req;
	bool compress = slot->compress;
	int rc;

	slot->req = NULL;
	iaa_buffers_detach(iwq, slot);
	if (!req)
		return;
	rc = iaa_soft_request(req, compress);
	local_bh_disable();
	acomp_request_complete(req, rc);
	local_bh_enable();
}

/**
 * iaa_wq_fail() - a descriptor was not answered in time
 * @iwq: its WQ, which the caller holds a reference of
 * @slot: its slot; with a request that waits, or none
 *
 * The slot is no longer the caller's.
 */
void iaa_wq_fail(struct iaa_wq *iwq, struct iaa_slot *slot)
{
	if (!test_and_set_bit(0, &iwq->failed))
		dev_err(idxd_wq_dev(iwq->wq),
			"no answer in %u ms, taken out of use; see iaa-crypto.rst, \"A WQ is taken out of use\"\n",
			iaa_timeout_ms);
	spin_lock_bh(&iwq->lost_lock);
	list_add_tail(&slot->lost, &iwq->lost);
	if (!iwq->closing)
		mod_delayed_work(iaa_workqueue, &iwq->health, 0);
	spin_unlock_bh(&iwq->lost_lock);
}

/**
 * iaa_wq_finish_lost() - finish all lost requests of a WQ that was reset
 * @iwq: the WQ; its descriptors are idxd's again, or gone
 */
void iaa_wq_finish_lost(struct iaa_wq *iwq)
{
	struct iaa_slot *slot, *next;

	list_for_each_entry_safe(slot, next, &iwq->lost, lost) {
		list_del(&slot->lost);
		finish_slot(iwq, slot);
	}
}

/* Takes in late answers. Returns how many are owed; *waiting: requests wait. */
static unsigned int collect_late(struct iaa_wq *iwq, bool *waiting)
{
	struct iaa_slot *slot, *next;
	unsigned int owed = 0;
	LIST_HEAD(late);

	*waiting = false;
	spin_lock_bh(&iwq->lost_lock);
	list_for_each_entry_safe(slot, next, &iwq->lost, lost) {
		if (idxd_desc_iax_completion(slot->desc)->status) {
			list_move_tail(&slot->lost, &late);
			continue;
		}
		owed++;
		*waiting |= !!slot->req;
	}
	spin_unlock_bh(&iwq->lost_lock);

	list_for_each_entry_safe(slot, next, &late, lost) {
		list_del(&slot->lost);
		finish_slot(iwq, slot);
		idxd_free_desc(iwq->wq, slot->desc);
	}
	return owed;
}

/**
 * struct iaa_unbind - a WQ that is to be unbound
 * @work: does it
 * @dev: the WQ's device
 * @iwq: what it was bound as; compared only, since it may be gone
 */
struct iaa_unbind {
	struct work_struct work;
	struct device *dev;
	const struct iaa_wq *iwq;
};

static void unbind_fn(struct work_struct *work)
{
	struct iaa_unbind *unbind = container_of(work, struct iaa_unbind, work);

	/* Not if somebody was faster, and bound it anew or to another driver. */
	if (unbind->dev->driver == &iaa_driver.drv && dev_get_drvdata(unbind->dev) == unbind->iwq)
		device_release_driver(unbind->dev);
	put_device(unbind->dev);
	kfree(unbind);
}

/* Unbinding waits for the WQ's own work, so it is done from another one. */
static bool start_unbind(struct iaa_wq *iwq)
{
	struct iaa_unbind *unbind;

	unbind = kmalloc(sizeof(*unbind), GFP_KERNEL);
	if (!unbind)
		return false;
	INIT_WORK(&unbind->work, unbind_fn);
	unbind->dev = get_device(idxd_wq_dev(iwq->wq));
	unbind->iwq = iwq;
	queue_work(iaa_workqueue, &unbind->work);
	return true;
}

static void look_again(struct iaa_wq *iwq, unsigned int ms)
{
	spin_lock_bh(&iwq->lost_lock);
	if (!iwq->closing)
		mod_delayed_work(iaa_workqueue, &iwq->health, msecs_to_jiffies(ms));
	spin_unlock_bh(&iwq->lost_lock);
}

/* In or out of the routes; not once the WQ is on its way out for good. */
static void set_usable(struct iaa_wq *iwq, bool usable)
{
	mutex_lock(&iaa_lock);
	if (!iwq->closing && iwq->usable != usable) {
		iwq->usable = usable;
		if (!usable)
			iwq->failed_at = jiffies;
		iaa_route_publish();
	}
	mutex_unlock(&iaa_lock);
}

/**
 * iaa_wq_health() - look after a failed WQ
 * @work: its &iaa_wq.health
 */
void iaa_wq_health(struct work_struct *work)
{
	struct iaa_wq *iwq = container_of(to_delayed_work(work), struct iaa_wq, health);
	struct device *dev = idxd_wq_dev(iwq->wq);
	bool waiting;
	int rc;

	set_usable(iwq, false);
	if (collect_late(iwq, &waiting)) {
		if (time_before(jiffies, iwq->failed_at + msecs_to_jiffies(GIVE_UP_MS)))
			look_again(iwq, LOOK_AGAIN_MS);
		else if (waiting && start_unbind(iwq))
			dev_err(dev, "still no answer: unbound, so that requests can end\n");
		else
			look_again(iwq, LOOK_SELDOM_MS);
		return;
	}
	if (iwq->comebacks == MAX_COMEBACKS) {
		dev_err(dev, "stays out of use: it was tried again %u times\n", iwq->comebacks);
		return;
	}
	iwq->comebacks++;
	rc = iaa_selfcheck(iwq);
	if (rc == -ETIMEDOUT) {
		iwq->failed_at = jiffies;
		look_again(iwq, LOOK_AGAIN_MS);
		return;
	}
	if (rc) {
		dev_err(dev, "stays out of use: it answers, but fails its check: %d\n", rc);
		return;
	}
	clear_bit(0, &iwq->failed);
	set_usable(iwq, true);
	dev_info(dev, "answers again and is used again\n");
}
