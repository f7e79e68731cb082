// SPDX-License-Identifier: GPL-2.0
/*
 * A WQ's descriptors. All of them are taken from idxd when the WQ is enabled, and
 * handed out here: each CPU has one at hand, which costs an exchange, and there is a
 * pool behind. Whoever holds a slot owns all of it, and no lock is needed.
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

	iwq->at_hand = alloc_percpu(struct iaa_slot *);
	if (!iwq->at_hand)
		return -ENOMEM;
	rc = sbitmap_init_node(&iwq->pool, n, -1, GFP_KERNEL, NUMA_NO_NODE, false, true);
	if (rc)
		return rc;
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

/* What the other CPUs have at hand, before a WQ is said to be full. */
static struct iaa_slot *take_from_others(struct iaa_wq *iwq)
{
	struct iaa_slot **at_hand, *slot;
	int cpu;

	for_each_possible_cpu(cpu) {
		at_hand = per_cpu_ptr(iwq->at_hand, cpu);
		if (READ_ONCE(*at_hand)) {
			slot = xchg(at_hand, NULL);
			if (slot)
				return slot;
		}
	}
	return NULL;
}

/**
 * iaa_slot_get_slow() - take a free slot where this CPU has none at hand
 * @iwq: the WQ, which the caller has a reference of
 *
 * Return: the slot, or NULL where there is none.
 */
struct iaa_slot *iaa_slot_get_slow(struct iaa_wq *iwq)
{
	int i = sbitmap_get(&iwq->pool);

	return i >= 0 ? &iwq->slots[i] : take_from_others(iwq);
}
