// SPDX-License-Identifier: GPL-2.0
/*
 * A WQ's descriptors. All of them are taken from idxd when the WQ is enabled, and
 * handed out here. Each CPU keeps some for itself, and what it has taken comes back to it:
 * no other CPU's memory is touched as long as there are descriptors enough. Behind that is
 * a pool. Whoever holds a slot owns all of it.
 */
#include <linux/percpu.h>
#include <linux/slab.h>

#include "iaa.h"

/**
 * iaa_slots_alloc() - make a WQ's slots, and their buffers
 * @iwq: the WQ, enabled
 *
 * Return: 0 or -ENOMEM; what there is then is freed by iaa_slots_free().
 */
int iaa_slots_alloc(struct iaa_wq *iwq)
{
	unsigned int i, n = idxd_wq_num_descs(iwq->wq);
	struct iaa_slot *slot;
	int rc;

	iwq->at_hand = alloc_percpu(struct iaa_at_hand);
	if (!iwq->at_hand)
		return -ENOMEM;
	rc = sbitmap_init_node(&iwq->pool, n, -1, GFP_KERNEL, NUMA_NO_NODE, false, true);
	if (rc) {
		/* It has freed a part, and not forgotten it. */
		memset(&iwq->pool, 0, sizeof(iwq->pool));
		return rc;
	}
	iwq->slots = kvcalloc(n, sizeof(*iwq->slots), GFP_KERNEL);
	if (!iwq->slots)
		return -ENOMEM;
	iwq->n_slots = n;
	for (i = 0; i < n; i++) {
		slot = &iwq->slots[i];
		slot->iwq = iwq;
		slot->index = i;
	}
	for (i = 0; i < n; i++) {
		rc = iaa_buffers_alloc(&iwq->slots[i]);
		if (rc)
			return rc;
	}
	return 0;
}

/**
 * iaa_slots_free() - free a WQ's slots, as far as there are any
 * @iwq: the WQ; the device does not write any more
 */
void iaa_slots_free(struct iaa_wq *iwq)
{
	unsigned int i;

	for (i = 0; i < iwq->n_slots; i++)
		iaa_buffers_free(&iwq->slots[i]);
	kvfree(iwq->slots);
	iwq->slots = NULL;
	iwq->n_slots = 0;
	sbitmap_free(&iwq->pool);
	free_percpu(iwq->at_hand);
}

/**
 * iaa_slots_claim() - take all descriptors of a WQ that has just been enabled
 * @iwq: the WQ, with all slots free
 *
 * They go back as a whole, when the WQ is disabled.
 *
 * Return: 0, or an error where there are not as many as there are slots.
 */
int iaa_slots_claim(struct iaa_wq *iwq)
{
	struct idxd_desc *desc;
	unsigned int i;

	if (idxd_wq_num_descs(iwq->wq) != iwq->n_slots)
		return -ENXIO;
	for (i = 0; i < iwq->n_slots; i++) {
		desc = idxd_alloc_desc(iwq->wq, IDXD_OP_NONBLOCK);
		if (IS_ERR(desc))
			return PTR_ERR(desc);
		iwq->slots[idxd_desc_id(desc)].desc = desc;
	}
	return 0;
}

static struct iaa_slot *take(struct iaa_at_hand *from)
{
	struct iaa_slot *slot;
	unsigned int i;

	for (i = 0; i < IAA_AT_HAND; i++) {
		if (READ_ONCE(from->slot[i])) {
			slot = xchg(&from->slot[i], NULL);
			if (slot)
				return slot;
		}
	}
	return NULL;
}

/* What other CPUs have at hand, before a WQ is said to be full. */
static struct iaa_slot *take_from_others(struct iaa_wq *iwq, int cpu)
{
	struct iaa_slot *slot;
	int other;

	for_each_cpu_wrap(other, cpu_possible_mask, cpu + 1) {
		slot = take(per_cpu_ptr(iwq->at_hand, other));
		if (slot)
			return slot;
	}
	return NULL;
}

/**
 * iaa_slot_get_slow() - take a free slot where the first at hand has gone
 * @iwq: the WQ, which the caller has a reference of
 * @cpu: the CPU
 *
 * Return: the slot, or NULL where there is none.
 */
struct iaa_slot *iaa_slot_get_slow(struct iaa_wq *iwq, int cpu)
{
	struct iaa_slot *slot = take(per_cpu_ptr(iwq->at_hand, cpu));
	int i;

	if (slot)
		return slot;
	i = sbitmap_get(&iwq->pool);
	return i >= 0 ? &iwq->slots[i] : take_from_others(iwq, cpu);
}

/**
 * iaa_slot_put_slow() - give a slot back where the first place is taken
 * @slot: the slot
 * @mine: what the CPU that took it has at hand
 */
void iaa_slot_put_slow(struct iaa_slot *slot, struct iaa_at_hand *mine)
{
	unsigned int i;

	for (i = 1; i < IAA_AT_HAND; i++)
		if (!READ_ONCE(mine->slot[i]) && !cmpxchg(&mine->slot[i], NULL, slot))
			return;
	sbitmap_put(&slot->iwq->pool, slot->index);
}
