// SPDX-License-Identifier: GPL-2.0
/*
 * WQs whose device did not answer in time, or took no descriptor. A descriptor without
 * an answer still belongs to the device, and so does the memory it names. Such a WQ is
 * taken out of use; what it owes is watched for. What has not arrived after a while never
 * will: the WQ is reset, which takes the memory back and ends the requests that wait
 * for it. When nothing is owed any more, and the device passes its check again, the
 * WQ is used again. One that cannot be had back is unbound.
 */
#include <linux/jiffies.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "iaa.h"
#include "stats/trace.h"

#define LOOK_AGAIN_MS	50
#define LOOK_SELDOM_MS	1000
/* Each look has idxd write a line into the log. */
#define LOOK_BLOCKED_MS	10000
#define GIVE_UP_MS	5000
#define MAX_COMEBACKS	5
/* What has served for so long is not held against a WQ any more. */
#define FORGIVE_MS	60000

/* Finishes the request that waits for a descriptor, if one does. */
static void finish_request(struct iaa_slot *slot)
{
	struct acomp_req *req = slot->req;
	bool compress = slot->compress;
	int rc;

	slot->req = NULL;
	iaa_buffers_detach(slot);
	if (!req)
		return;
	rc = iaa_request_end(req, iaa_soft_request(req, compress, true));
	local_bh_disable();
	acomp_request_complete(req, rc);
	local_bh_enable();
}

static void look_again(struct iaa_wq *iwq, unsigned int ms)
{
	spin_lock_bh(&iwq->lost_lock);
	if (!iwq->closing)
		mod_delayed_work(iaa_workqueue, &iwq->health, msecs_to_jiffies(ms));
	spin_unlock_bh(&iwq->lost_lock);
}

/**
 * iaa_wq_look() - have a WQ's health look at it now
 * @iwq: the WQ
 */
void iaa_wq_look(struct iaa_wq *iwq)
{
	look_again(iwq, 0);
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
			"no answer in time, taken out of use; see iaa-crypto.rst, \"A WQ is taken out of use\"\n");
	spin_lock_bh(&iwq->lost_lock);
	list_add_tail(&slot->node, &iwq->lost);
	spin_unlock_bh(&iwq->lost_lock);
	look_again(iwq, 0);
}

/**
 * iaa_wq_refused() - a descriptor could not be had or submitted
 * @iwq: its WQ, which the caller holds a reference of
 * @rc: why
 *
 * As after a halt, or for a moment while idxd has stopped the WQ: its health finds out.
 */
void iaa_wq_refused(struct iaa_wq *iwq, int rc)
{
	/* ENQCMD finds a shared WQ full, which is not this one's fault. */
	if (rc == -EAGAIN)
		return;
	if (!test_and_set_bit(0, &iwq->failed))
		dev_err(idxd_wq_dev(iwq->wq), "takes no descriptors (%d), taken out of use\n", rc);
	look_again(iwq, 0);
}

/**
 * iaa_wq_finish_lost() - finish all lost requests of a WQ that was reset
 * @iwq: the WQ; its descriptors are idxd's again, or gone
 */
void iaa_wq_finish_lost(struct iaa_wq *iwq)
{
	struct iaa_slot *slot, *next;
	/* Memory may be what the requests that wait are to free. */
	unsigned int noio = memalloc_noio_save();

	list_for_each_entry_safe(slot, next, &iwq->lost, node) {
		list_del(&slot->node);
		finish_request(slot);
		/* idxd has emptied its lists. */
		slot->listed = false;
		iaa_slot_put(slot);
	}
	memalloc_noio_restore(noio);
}

/*
 * Takes in late answers. Where the device has @stopped there will not be any, and nothing
 * holds up the requests that wait; but what idxd has in its lists stays lost until
 * the reset. Returns how many are owed.
 */
static unsigned int collect_late(struct iaa_wq *iwq, bool stopped)
{
	unsigned int owed = 0, unseen = 0;
	struct iaa_slot *slot, *next;
	LIST_HEAD(late);
	LIST_HEAD(keep);

	spin_lock_bh(&iwq->lost_lock);
	list_for_each_entry_safe(slot, next, &iwq->lost, node) {
		bool listed = READ_ONCE(slot->listed);

		if (!stopped && !iaa_op_answered(slot))
			owed++;
		else if (!listed)
			list_move_tail(&slot->node, &late);
		else if (stopped)
			list_move_tail(&slot->node, &keep);
		else
			unseen++;
	}
	spin_unlock_bh(&iwq->lost_lock);
	/* That the answer is there has escaped the interrupt thread. */
	if (unseen)
		iaa_wq_wake_irq(iwq);

	list_for_each_entry_safe(slot, next, &late, node) {
		list_del(&slot->node);
		finish_request(slot);
		iaa_slot_put(slot);
	}
	list_for_each_entry(slot, &keep, node)
		finish_request(slot);
	spin_lock_bh(&iwq->lost_lock);
	list_splice(&keep, &iwq->lost);
	spin_unlock_bh(&iwq->lost_lock);
	return owed + unseen;
}

static void take_out(struct iaa_wq *iwq)
{
	mutex_lock(&iaa_lock);
	if (!iwq->closing && iwq->usable) {
		iwq->usable = false;
		iwq->failed_at = jiffies;
		trace_iaa_wq_state(iwq, "out of use");
		if (time_after(jiffies, iwq->back_at + msecs_to_jiffies(FORGIVE_MS)))
			iwq->comebacks = 0;
		iaa_route_publish();
	}
	mutex_unlock(&iaa_lock);
}

static void put_back(struct iaa_wq *iwq)
{
	clear_bit(0, &iwq->failed);
	mutex_lock(&iaa_lock);
	/* Not once the WQ is on its way out for good. */
	if (!iwq->closing) {
		iwq->usable = true;
		iwq->back_at = jiffies;
		trace_iaa_wq_state(iwq, "in use");
		iaa_route_publish();
		dev_info(idxd_wq_dev(iwq->wq), "answers again and is used again\n");
	}
	mutex_unlock(&iaa_lock);
}

/**
 * struct iaa_unbind - a WQ that is to be unbound
 * @work: does it
 * @dev: the WQ's device
 * @binding: the binding that is meant
 */
struct iaa_unbind {
	struct work_struct work;
	struct device *dev;
	u64 binding;
};

static void unbind_fn(struct work_struct *work)
{
	struct iaa_unbind *unbind = container_of(work, struct iaa_unbind, work);
	struct device *dev = unbind->dev;
	struct iaa_wq *iwq = NULL;
	bool meant;

	/*
	 * Somebody may have been faster, and have bound it anew or to another driver. That this
	 * happens between the look and the release is a moment that the interface leaves open.
	 */
	device_lock(dev);
	if (dev->driver == &iaa_driver.drv)
		iwq = dev_get_drvdata(dev);
	meant = iwq && iwq->binding == unbind->binding;
	device_unlock(dev);
	if (meant)
		device_release_driver(dev);
	put_device(dev);
	kfree(unbind);
}

/*
 * A WQ that idxd does not have enabled any more is unbound, so that an administrator
 * finds it as any other disabled one. That waits for the WQ's own work, so it is done
 * from another one.
 */
static void unbind(struct iaa_wq *iwq, const char *why, int rc)
{
	struct iaa_unbind *unbind = kmalloc(sizeof(*unbind), GFP_KERNEL);

	if (!unbind) {
		look_again(iwq, LOOK_SELDOM_MS);
		return;
	}
	dev_err(idxd_wq_dev(iwq->wq), "%s (%d): is unbound\n", why, rc);
	INIT_WORK(&unbind->work, unbind_fn);
	unbind->dev = get_device(idxd_wq_dev(iwq->wq));
	unbind->binding = iwq->binding;
	queue_work(iaa_admin_workqueue, &unbind->work);
}

static bool patient(struct iaa_wq *iwq)
{
	return time_before(jiffies, iwq->failed_at + msecs_to_jiffies(GIVE_UP_MS));
}

static void give_up(struct iaa_wq *iwq)
{
	struct device *dev = idxd_wq_dev(iwq->wq);
	bool first = iwq->enabled;
	int rc;

	if (first)
		dev_err(dev, "still no answer: is reset\n");
	trace_iaa_wq_state(iwq, "reset");
	rc = iaa_wq_reset(iwq);
	if (first || !rc)
		iwq->failed_at = jiffies;
	if (rc != -EAGAIN)
		iwq->blocked = false;
	if (!rc) {
		look_again(iwq, 0);
	} else if (idxd_device_state(iwq->dev->idxd) != IDXD_DEV_ENABLED) {
		unbind(iwq, "its device is not enabled any more", rc);
	} else if (rc == -EAGAIN) {
		/* Nothing is wrong with this one, and only an administrator can help. */
		if (!iwq->blocked)
			dev_err(dev,
				"waits to be enabled until the disabled WQs of its device have a mode; see iaa-crypto.rst, \"A WQ is taken out of use\"\n");
		iwq->blocked = true;
		look_again(iwq, patient(iwq) ? LOOK_SELDOM_MS : LOOK_BLOCKED_MS);
	} else if (patient(iwq)) {
		look_again(iwq, LOOK_SELDOM_MS);
	} else {
		unbind(iwq, "cannot be enabled after its reset", rc);
	}
}

static void try_again(struct iaa_wq *iwq)
{
	struct device *dev = idxd_wq_dev(iwq->wq);
	int rc;

	if (iwq->comebacks == MAX_COMEBACKS) {
		dev_err(dev, "stays out of use: it was tried again %u times\n", iwq->comebacks);
		return;
	}
	rc = iaa_selfcheck(iwq);
	if (rc != -EAGAIN)
		iwq->comebacks++;
	switch (rc) {
	case 0:
		put_back(iwq);
		break;
	case -EILSEQ:
		dev_err(dev, "stays out of use: it answers, and wrongly\n");
		break;
	case -ETIMEDOUT:
		iwq->failed_at = jiffies;
		look_again(iwq, LOOK_AGAIN_MS);
		break;
	case -EAGAIN:
		if (patient(iwq))
			look_again(iwq, LOOK_SELDOM_MS);
		else
			unbind(iwq, "takes no descriptors", rc);
		break;
	default:
		look_again(iwq, LOOK_SELDOM_MS);
	}
}

static void look_after(struct iaa_wq *iwq)
{
	unsigned int owed = 0;

	/* First of all, and before anything that may wait: requests may wait for this. */
	if (iwq->enabled)
		owed = collect_late(iwq, idxd_device_state(iwq->dev->idxd) != IDXD_DEV_ENABLED);
	if (owed)
		set_bit(0, &iwq->failed);
	else if (!test_bit(0, &iwq->failed))
		return;	/* the last of several, and all is well again */
	take_out(iwq);
	/* What was owed has come: what is tried now has all the time again. */
	if (iwq->owes && !owed)
		iwq->failed_at = jiffies;
	iwq->owes = owed;
	if (!iwq->enabled)
		give_up(iwq);
	else if (!owed)
		try_again(iwq);
	else if (patient(iwq))
		look_again(iwq, LOOK_AGAIN_MS);
	else
		give_up(iwq);
}

/**
 * iaa_wq_health() - look after a failed WQ
 * @work: its &iaa_wq.health
 */
void iaa_wq_health(struct work_struct *work)
{
	/* Memory may be what the requests that wait are to free. */
	unsigned int noio = memalloc_noio_save();

	look_after(container_of(to_delayed_work(work), struct iaa_wq, health));
	memalloc_noio_restore(noio);
}
