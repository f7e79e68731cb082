// SPDX-License-Identifier: GPL-2.0
/*
 * Which WQ a request takes: a snapshot that says it for every possible CPU, made
 * anew whenever something changes and replaced as a whole.
 */
#include <linux/cpuhotplug.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "iaa.h"
#include "route_map.h"

#define BUILD_AGAIN_MS 1000

/**
 * struct iaa_snapshot - the routes of all CPUs
 * @rcu: frees it
 * @wqs: the WQs that routes name by index
 * @routes: by CPU
 */
struct iaa_snapshot {
	struct rcu_head rcu;
	struct iaa_wq **wqs;
	struct iaa_cpu_route routes[];
};

static struct iaa_snapshot __rcu *iaa_snapshot;
/* Whose turn it is, apart for the two: they may alternate, and would take turns with it. */
static DEFINE_PER_CPU(unsigned int [2], iaa_turn);
static int iaa_hotplug_state;
/* CPUs that run. The mask of online ones is wrong while one goes. */
static struct cpumask iaa_running;

static void rebuild_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(rebuild_work, rebuild_fn);

/* The package of a node's CPUs, as far as one of them is there to be asked. */
static int node_package(int node)
{
	int cpu;

	if (node < 0)
		return -1;
	for_each_cpu(cpu, &iaa_running)
		if (cpu_to_node(cpu) == node)
			return topology_physical_package_id(cpu);
	return -1;
}

static size_t place_cpus(struct iaa_place *cpus, const struct cpumask *which)
{
	size_t n = 0;
	int cpu;

	for_each_cpu(cpu, which) {
		cpus[n].node = cpu_to_node(cpu);
		cpus[n].package = cpumask_test_cpu(cpu, &iaa_running) ?
					  topology_physical_package_id(cpu) :
					  node_package(cpus[n].node);
		n++;
	}
	return n;
}

static size_t place_devices(struct iaa_map_device *devs, struct iaa_wq **wqs)
{
	struct iaa_device *dev;
	struct iaa_wq *iwq;
	size_t n = 0;
	u16 index = 0;

	list_for_each_entry(dev, &iaa_devices, node) {
		devs[n].first = index;
		list_for_each_entry(iwq, &iaa_wqs, node) {
			if (iwq->dev != dev || !iwq->usable)
				continue;
			wqs[index] = iwq;
			iwq->index = index++;
		}
		devs[n].count = index - devs[n].first;
		if (!devs[n].count)
			continue;
		devs[n].at.node = dev_to_node(dev->dev);
		devs[n].at.package = node_package(devs[n].at.node);
		n++;
	}
	return n;
}

/* Space to work the routes out in. */
struct iaa_draft {
	struct iaa_place *cpus;
	struct iaa_cpu_route *routes;
	struct iaa_map_device *devs;
	size_t n_devs;
};

/* Splits the devices among these CPUs. */
static void route_cpus(struct iaa_snapshot *snap, struct iaa_draft *draft,
		       const struct cpumask *which)
{
	size_t i = 0;
	int cpu;

	iaa_route_map(draft->cpus, place_cpus(draft->cpus, which), draft->devs, draft->n_devs,
		      draft->routes);
	for_each_cpu(cpu, which)
		snap->routes[cpu] = draft->routes[i++];
}

static struct iaa_snapshot *build(void)
{
	size_t n_wqs = list_count_nodes(&iaa_wqs), n_devs = list_count_nodes(&iaa_devices);
	/* Of its own, since CPUs come and go meanwhile; there is one builder at a time. */
	static struct cpumask running;
	struct iaa_snapshot *snap = NULL;
	struct iaa_draft draft;

	draft.cpus = kvcalloc(num_possible_cpus(), sizeof(*draft.cpus), GFP_KERNEL);
	draft.routes = kvcalloc(num_possible_cpus(), sizeof(*draft.routes), GFP_KERNEL);
	draft.devs = kvcalloc(n_devs, sizeof(*draft.devs), GFP_KERNEL);
	if (draft.cpus && draft.routes && draft.devs)
		snap = kvzalloc(struct_size(snap, routes, nr_cpu_ids) +
				n_wqs * sizeof(snap->wqs[0]), GFP_KERNEL);
	if (!snap)
		goto out;
	snap->wqs = (struct iaa_wq **)&snap->routes[nr_cpu_ids];
	draft.n_devs = place_devices(draft.devs, snap->wqs);
	/*
	 * A CPU that does not run must take no device from those that do. It has a route
	 * as well, since it may be there before the snapshot that counts it in.
	 */
	route_cpus(snap, &draft, cpu_possible_mask);
	cpumask_copy(&running, &iaa_running);
	route_cpus(snap, &draft, &running);
out:
	kvfree(draft.devs);
	kvfree(draft.routes);
	kvfree(draft.cpus);
	return snap;
}

/**
 * iaa_route_publish() - make routes of what is usable now
 *
 * The caller holds iaa_lock. Without memory there are no routes, since an old snapshot
 * might name a WQ that goes away: software does everything until a later try succeeds.
 */
void iaa_route_publish(void)
{
	struct iaa_snapshot *new = NULL, *old;
	/* Freeing memory may take requests, and these the lock. */
	unsigned int noio = memalloc_noio_save();

	lockdep_assert_held(&iaa_lock);
	if (!list_empty(&iaa_wqs)) {
		new = build();
		if (!new) {
			pr_err("iaa_crypto: no memory for routes: software serves until there is\n");
			mod_delayed_work(iaa_workqueue, &rebuild_work,
					 msecs_to_jiffies(BUILD_AGAIN_MS));
		}
	}
	old = rcu_replace_pointer(iaa_snapshot, new, lockdep_is_held(&iaa_lock));
	if (old)
		kvfree_rcu(old, rcu);
	memalloc_noio_restore(noio);
}

/**
 * iaa_route_get() - find a WQ that takes a request now
 * @compress: what it asks for
 * @len: the longest run that the request moves
 * @reason: set to why there is none
 *
 * Return: a slot of the WQ, with a reference of that held, or NULL.
 */
struct iaa_slot *iaa_route_get(bool compress, u32 len, enum iaa_reason *reason)
{
	const struct iaa_cpu_route *route;
	struct iaa_slot *slot = NULL;
	struct iaa_snapshot *snap;
	unsigned int i, first = 0;
	struct iaa_wq *iwq;

	*reason = IAA_R_NO_WQ;
	rcu_read_lock();
	snap = rcu_dereference(iaa_snapshot);
	if (!snap)
		goto out;
	route = &snap->routes[raw_smp_processor_id()];
	if (route->homes > 1)
		first = this_cpu_inc_return(iaa_turn[compress]) % route->homes;
	for (i = 0; i < route->count; i++) {
		unsigned int k = i < route->homes ? (first + i) % route->homes : i;

		iwq = snap->wqs[route->wq[k]];
		if (len > iwq->max_len) {
			if (*reason == IAA_R_NO_WQ)
				*reason = IAA_R_TOO_LARGE;
			continue;
		}
		if (test_bit(0, &iwq->failed) || !percpu_ref_tryget_live_rcu(&iwq->ref))
			continue;
		slot = iaa_slot_get(iwq);
		if (slot)
			goto out;
		*reason = IAA_R_WQ_FULL;
		percpu_ref_put(&iwq->ref);
	}
out:
	rcu_read_unlock();
	return slot;
}

static void rebuild_fn(struct work_struct *work)
{
	mutex_lock(&iaa_lock);
	iaa_route_publish();
	mutex_unlock(&iaa_lock);
}

/* Where CPUs are is known in full only once they are online. */
static int cpu_comes(unsigned int cpu)
{
	cpumask_set_cpu(cpu, &iaa_running);
	mod_delayed_work(iaa_workqueue, &rebuild_work, 0);
	return 0;
}

static int cpu_goes(unsigned int cpu)
{
	cpumask_clear_cpu(cpu, &iaa_running);
	mod_delayed_work(iaa_workqueue, &rebuild_work, 0);
	return 0;
}

/** iaa_route_init() - begin to follow CPUs that come and go */
int iaa_route_init(void)
{
	int rc;

	rc = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "crypto/iaa:online", cpu_comes, cpu_goes);
	if (rc < 0)
		return rc;
	iaa_hotplug_state = rc;
	return 0;
}

/** iaa_route_exit() - no WQ is left and no CPU is followed any more */
void iaa_route_exit(void)
{
	cpuhp_remove_state_nocalls(iaa_hotplug_state);
	cancel_delayed_work_sync(&rebuild_work);
}
