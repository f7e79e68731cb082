// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that nobody polls for while they are under way.
 *
 * "async": submitted without an interrupt. A CPU's reaper, a work item, polls for all
 * that were submitted there and ends them: a caller need only wait.
 *
 * "async_irq": the interrupt thread ends them. Where the output is still to be read back
 * it submits that, with the same descriptor and another interrupt, and goes on with
 * others: it never waits. A watch looks at what is under way for long: where the device has
 * answered, an interrupt was lost, and the thread is woken by hand; where it has not,
 * the descriptor is lost.
 *
 * What is left to software is done from a work item of the request's own, so that it
 * holds up no other.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/sched/mm.h>

#include "compat/workqueue.h"
#include "iaa.h"
#include "stats/trace.h"

/* How often the watch looks, and how long an interrupt may take. */
#define WATCH_MS	20
/* What has been answered for so long past the time limit, idxd does not know any more. */
#define FORGOTTEN_MS	1000
/* How long a reaper polls without a pause when nothing happens. */
#define SPIN_NS		(50 * NSEC_PER_USEC)
/* How long before it makes way: one worker may have to do for several CPUs. */
#define SHIFT_NS	(10 * NSEC_PER_MSEC)

/**
 * struct iaa_reaper - a CPU's
 * @fresh: slots that came to be polled
 * @polled: slots that are; only @work touches them
 * @work: polls
 * @cpu: the CPU
 */
struct iaa_reaper {
	struct llist_head fresh;
	struct list_head polled;
	struct work_struct work;
	int cpu;
};

static DEFINE_PER_CPU(struct iaa_reaper, iaa_reapers);
static struct workqueue_struct *reap_workqueue;
/* Apart from that of the WQs' health, which waits for what happens here. */
static struct workqueue_struct *end_workqueue;

static void complete_request(struct acomp_req *req, int rc)
{
	iaa_request_end(req, rc);
	local_bh_disable();
	acomp_request_complete(req, rc);
	local_bh_enable();
}

static void soft_fn(struct work_struct *work)
{
	struct iaa_req_ctx *ctx = container_of(work, struct iaa_req_ctx, work);
	/* Memory may be what the request is to free. */
	unsigned int noio = memalloc_noio_save();

	complete_request(ctx->req, iaa_soft_request(ctx->req, ctx->compress, true));
	memalloc_noio_restore(noio);
}

static void start_software(struct acomp_req *req, bool compress, enum iaa_reason reason)
{
	struct iaa_req_ctx *ctx = acomp_request_ctx(req);

	iaa_count_soft(compress, reason);
	ctx->req = req;
	ctx->compress = compress;
	INIT_WORK(&ctx->work, soft_fn);
	queue_work(end_workqueue, &ctx->work);
}

/* Ends a request whose last descriptor has been answered, or could not be submitted. */
static void end(struct iaa_slot *slot, int rc, enum iaa_reason reason)
{
	struct acomp_req *req = slot->req;
	bool compress = slot->compress;

	slot->req = NULL;
	rc = iaa_request_finish(slot, req, rc, &reason);
	if (rc == -EAGAIN)
		start_software(req, compress, reason);
	else
		complete_request(req, rc);
}

/*
 * The device owns descriptor and buffers still. A request none of whose own memory is
 * among them need not wait until that is over.
 */
static void lose(struct iaa_slot *slot)
{
	bool wait = slot->src.kind == IAA_IN_PLACE || slot->dst.kind == IAA_IN_PLACE;
	struct acomp_req *req = slot->req;
	bool compress = slot->compress;
	struct iaa_wq *iwq = slot->iwq;

	iaa_count(IAA_C_TIMEOUT_ERRORS, 1);
	if (wait)
		iaa_count_soft(compress, IAA_R_TIMEOUT);
	else
		slot->req = NULL;
	iaa_wq_fail(iwq, slot);
	percpu_ref_put(&iwq->ref);
	if (!wait)
		start_software(req, compress, IAA_R_TIMEOUT);
}

static bool older(unsigned long since, unsigned int ms)
{
	return time_after(jiffies, since + msecs_to_jiffies(ms));
}

static int submit_polled(struct iaa_slot *slot)
{
	int rc;

	slot->submitted = jiffies;
	rc = iaa_op_submit(slot, false);
	if (rc)
		iaa_wq_refused(slot->iwq, rc);
	return rc;
}

/* Return: whether the slot is to be polled no more. */
static bool reap(struct iaa_slot *slot)
{
	enum iaa_reason reason;
	int rc;

	if (iaa_op_answered(slot)) {
		rc = iaa_op_step(slot, &reason);
		if (rc == -EINPROGRESS) {
			if (!submit_polled(slot))
				return false;
			reason = IAA_R_SUBMIT;
			rc = -EAGAIN;
		}
	} else if (older(slot->submitted, READ_ONCE(iaa_timeout_ms))) {
		list_del(&slot->node);
		lose(slot);
		return true;
	} else {
		return false;
	}
	list_del(&slot->node);
	end(slot, rc, reason);
	return true;
}

static void take_fresh(struct iaa_reaper *reaper)
{
	struct iaa_slot *slot, *next;
	struct llist_node *fresh;

	fresh = llist_reverse_order(llist_del_all(&reaper->fresh));
	llist_for_each_entry_safe(slot, next, fresh, reap)
		list_add_tail(&slot->node, &reaper->polled);
}

static void reap_fn(struct work_struct *work)
{
	struct iaa_reaper *reaper = container_of(work, struct iaa_reaper, work);
	u64 begun = ktime_get_ns(), since = begun, now = begun;
	struct iaa_slot *slot, *next;
	bool moved;

	while (now - begun < SHIFT_NS) {
		take_fresh(reaper);
		if (list_empty(&reaper->polled))
			return;
		moved = false;
		list_for_each_entry_safe(slot, next, &reaper->polled, node)
			moved |= reap(slot);
		now = ktime_get_ns();
		if (moved) {
			since = now;
			cond_resched();
		} else if (now - since < SPIN_NS) {
			cpu_relax();
		} else {
			usleep_range(20, 50);
		}
	}
	queue_work_on(reaper->cpu, reap_workqueue, &reaper->work);
}

/* The slot is the reaper's from here on. */
static void hand_to_reaper(struct iaa_slot *slot)
{
	int cpu = slot->cpu;
	struct iaa_reaper *reaper = per_cpu_ptr(&iaa_reapers, cpu);

	if (llist_add(&slot->reap, &reaper->fresh))
		queue_work_on(cpu, reap_workqueue, &reaper->work);
}

static void keep_watch(struct iaa_wq *iwq)
{
	if (!test_bit(0, &iwq->watched) && !test_and_set_bit(0, &iwq->watched))
		queue_delayed_work(end_workqueue, &iwq->watch, msecs_to_jiffies(WATCH_MS));
}

/*
 * Once it is submitted, the slot is whoever's that ends it, and with it the request's reference
 * of the WQ. The watch leaves it alone before: it would take what is not submitted for lost.
 */
static int start_irq(struct iaa_slot *slot)
{
	int use = (atomic_read(&slot->state) & ~IAA_SLOT_STATE_MASK) + IAA_SLOT_USE;
	struct iaa_wq *iwq = slot->iwq;
	int rc;

	slot->submitted = jiffies;
	WRITE_ONCE(slot->listed, true);
	percpu_ref_get(&iwq->ref);
	atomic_set_release(&slot->state, use + IAA_SLOT_STARTING);
	rc = iaa_op_submit(slot, true);
	if (rc) {
		/* It has not got as far as idxd's list. */
		WRITE_ONCE(slot->listed, false);
		atomic_set(&slot->state, use + IAA_SLOT_OWNED);
		iaa_wq_refused(iwq, rc);
	} else {
		/* Either the watch sees the slot, or its bit is seen cleared here. */
		atomic_cmpxchg(&slot->state, use + IAA_SLOT_STARTING, use + IAA_SLOT_RUNNING);
		keep_watch(iwq);
	}
	percpu_ref_put(&iwq->ref);
	return rc;
}

/**
 * iaa_async_start() - submit a request that is completed later
 * @slot: the slot, its descriptor filled in
 * @req: the request
 *
 * Return: -EINPROGRESS, or -EAGAIN when software has to do it. Either way the slot is
 * not the caller's any more.
 */
int iaa_async_start(struct iaa_slot *slot, struct acomp_req *req)
{
	int rc;

	slot->req = req;
	if (slot->mode == IAA_ASYNC_IRQ && !slot->iwq->irq)
		slot->mode = IAA_ASYNC;
	if (slot->mode == IAA_ASYNC_IRQ) {
		rc = start_irq(slot);
	} else {
		rc = submit_polled(slot);
		if (!rc)
			hand_to_reaper(slot);
	}
	if (!rc)
		return -EINPROGRESS;
	slot->req = NULL;
	iaa_request_release(slot);
	return -EAGAIN;
}

/**
 * iaa_async_irq() - an interrupt has told of a descriptor's end
 * @desc: the descriptor, which idxd has taken off its list
 * @type: how it has ended, which the completion record says as well
 * @free_desc: of no use here
 * @ctx: likewise
 * @status: likewise
 *
 * Called in idxd's interrupt thread.
 */
void iaa_async_irq(struct idxd_desc *desc, enum idxd_complete_type type, bool free_desc,
		   void *ctx, u32 *status)
{
	struct iaa_wq *iwq = dev_get_drvdata(idxd_wq_dev(idxd_desc_wq(desc)));
	struct iaa_slot *slot = &iwq->slots[idxd_desc_id(desc)];
	int state = atomic_read(&slot->state);
	enum iaa_reason reason;
	int now, rc;

	WRITE_ONCE(slot->listed, false);
	/* The submitter may be about to say that it has done its part. */
	do {
		now = state & IAA_SLOT_STATE_MASK;
		if (now != IAA_SLOT_STARTING && now != IAA_SLOT_RUNNING) {
			/* A lost one: there is something to collect. */
			iaa_wq_look(iwq);
			return;
		}
	} while (!atomic_try_cmpxchg(&slot->state, &state, state & ~IAA_SLOT_STATE_MASK));
	/* The device writes the status last. */
	dma_rmb();
	rc = iaa_op_step(slot, &reason);
	if (rc == -EINPROGRESS) {
		if (!start_irq(slot))
			return;
		reason = IAA_R_SUBMIT;
		rc = -EAGAIN;
	}
	end(slot, rc, reason);
}

/*
 * Looks at one slot. What was answered at the last look already has had its interrupt lost; where
 * waking the thread does not help for long, idxd has emptied its lists, as before a reset.
 * Return: whether an interrupt is still to come for it.
 */
static bool watch_slot(struct iaa_slot *slot, bool *missed)
{
	int state = atomic_read_acquire(&slot->state);
	unsigned long submitted = READ_ONCE(slot->submitted);
	unsigned int limit = READ_ONCE(iaa_timeout_ms);

	if ((state & IAA_SLOT_STATE_MASK) != IAA_SLOT_RUNNING)
		return (state & IAA_SLOT_STATE_MASK) == IAA_SLOT_STARTING;
	if (iaa_op_answered(slot)) {
		*missed |= slot->seen == state;
		slot->seen = state;
		limit += FORGOTTEN_MS;
	}
	if (!older(submitted, limit) ||
	    atomic_cmpxchg(&slot->state, state,
			   state - IAA_SLOT_RUNNING + IAA_SLOT_LOST) != state)
		return true;
	lose(slot);
	return false;
}

/**
 * iaa_async_watch() - look for interrupts that do not come
 * @work: the &iaa_wq.watch of the WQ
 */
void iaa_async_watch(struct work_struct *work)
{
	struct iaa_wq *iwq = container_of(to_delayed_work(work), struct iaa_wq, watch);
	bool missed = false, more = false;
	unsigned int i;

	clear_bit(0, &iwq->watched);
	smp_mb__after_atomic();		/* pairs with start_irq() */
	for (i = 0; i < iwq->n_slots; i++)
		more |= watch_slot(&iwq->slots[i], &missed);
	if (missed) {
		iaa_count(IAA_C_LOST_INTERRUPTS, 1);
		iaa_wq_wake_irq(iwq);
	}
	if (more)
		keep_watch(iwq);
}

/**
 * iaa_async_unwatch() - have the watch look no more
 * @iwq: the WQ; no request uses it. The next one that does starts the watch anew.
 */
void iaa_async_unwatch(struct iaa_wq *iwq)
{
	cancel_delayed_work_sync(&iwq->watch);
	clear_bit(0, &iwq->watched);
}

/** iaa_async_init() - make the reapers */
int iaa_async_init(void)
{
	struct iaa_reaper *reaper;
	int cpu;

	reap_workqueue = alloc_workqueue("iaa_reap", IAA_WQ_PERCPU | WQ_MEM_RECLAIM |
					 WQ_HIGHPRI | WQ_CPU_INTENSIVE, 0);
	end_workqueue = alloc_workqueue("iaa_end", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!reap_workqueue || !end_workqueue) {
		iaa_async_exit();
		return -ENOMEM;
	}
	for_each_possible_cpu(cpu) {
		reaper = per_cpu_ptr(&iaa_reapers, cpu);
		init_llist_head(&reaper->fresh);
		INIT_LIST_HEAD(&reaper->polled);
		INIT_WORK(&reaper->work, reap_fn);
		reaper->cpu = cpu;
	}
	return 0;
}

/** iaa_async_exit() - take the reapers away; no request is under way */
void iaa_async_exit(void)
{
	/* In this order: what is reaped may end in software. */
	if (reap_workqueue)
		destroy_workqueue(reap_workqueue);
	if (end_workqueue)
		destroy_workqueue(end_workqueue);
}
