// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs and devices are first put into groups that belong together: those of one
 * NUMA node, where a node has both, or of one package, where none of its nodes has;
 * what is left over joins the nearest group with the least to do. Inside a group
 * both are split evenly, so that every CPU has a device, every device has a CPU, and
 * shares differ by at most one.
 */
#include "route_map.h"

#define NO_GROUP (-1)

/* How far apart two places are: 0 is the same node, 2 is anywhere. */
static int distance(const struct iaa_place *a, const struct iaa_place *b)
{
	if (a->node >= 0 && a->node == b->node)
		return 0;
	if (a->package >= 0 && a->package == b->package)
		return 1;
	return 2;
}

static size_t group_cpus(const struct iaa_place *cpus, size_t n, int group)
{
	size_t i, count = 0;

	for (i = 0; i < n; i++)
		count += cpus[i].group == group;
	return count;
}

static size_t group_devs(const struct iaa_map_device *devs, size_t n, int group)
{
	size_t i, count = 0;

	for (i = 0; i < n; i++)
		count += devs[i].at.group == group;
	return count;
}

/* Device @i joins the group of its node. Return: whether it did, or a group is at most @far. */
static bool has_group(struct iaa_map_device *devs, size_t n_devs, size_t i, int far)
{
	bool found = false;
	size_t j;
	int d;

	for (j = 0; j < n_devs; j++) {
		if (devs[j].at.group == NO_GROUP)
			continue;
		d = distance(&devs[i].at, &devs[j].at);
		if (!d) {
			devs[i].at.group = devs[j].at.group;
			return true;
		}
		found |= d <= far;
	}
	return found;
}

/*
 * Groups are named by the index of the first device in them. A device makes one with
 * the CPUs of its node, or, where those of its package have no device so near, with them.
 */
static void make_groups(struct iaa_place *cpus, size_t n_cpus, struct iaa_map_device *devs,
			size_t n_devs)
{
	bool any = false;
	size_t i, j;
	int far;

	for (i = 0; i < n_cpus; i++)
		cpus[i].group = NO_GROUP;
	for (i = 0; i < n_devs; i++)
		devs[i].at.group = NO_GROUP;
	for (far = 0; far < 2; far++) {
		for (i = 0; i < n_devs; i++) {
			if (devs[i].at.group != NO_GROUP || has_group(devs, n_devs, i, far))
				continue;
			for (j = 0; j < n_cpus; j++) {
				if (cpus[j].group != NO_GROUP ||
				    distance(&devs[i].at, &cpus[j]) > far)
					continue;
				devs[i].at.group = i;
				cpus[j].group = i;
				any = true;
			}
		}
	}
	/* No device shares a package with a CPU: one group for all. */
	if (!any) {
		for (i = 0; i < n_devs; i++)
			devs[i].at.group = 0;
		for (i = 0; i < n_cpus; i++)
			cpus[i].group = 0;
	}
}

/*
 * A place that is in no group joins the nearest, as far as one is at most @limit away;
 * of such, the one where a device has the most CPUs (for a device) or the fewest (for a
 * CPU).
 */
static void join_group(struct iaa_place *at, bool for_device, int limit,
		       const struct iaa_place *cpus, size_t n_cpus,
		       const struct iaa_map_device *devs, size_t n_devs)
{
	size_t i, c, d, best_c = 0, best_d = 1;
	int best = NO_GROUP, best_far = limit, far;
	bool better;

	if (at->group != NO_GROUP)
		return;
	for (i = 0; i < n_devs; i++) {
		if (devs[i].at.group != (int)i)
			continue;
		/* As far as the one it is named by: others may have joined from anywhere. */
		far = distance(at, &devs[i].at);
		c = group_cpus(cpus, n_cpus, i);
		d = group_devs(devs, n_devs, i);
		better = for_device ? c * best_d > best_c * d : c * best_d < best_c * d;
		if (far < best_far || (far == best_far && (best == NO_GROUP || better))) {
			best = i;
			best_far = far;
			best_c = c;
			best_d = d;
		}
	}
	at->group = best;
}

static void append(struct iaa_cpu_route *route, u16 wq)
{
	if (route->count < IAA_ROUTE_DEPTH)
		route->wq[route->count++] = wq;
}

/* The @round-th queue of a device; each CPU (@turn) begins with another one. */
static void append_nth(struct iaa_cpu_route *route, const struct iaa_map_device *dev, size_t turn,
		       u16 round)
{
	if (round < dev->count)
		append(route, dev->first + (turn + round) % dev->count);
}

/*
 * The own devices of CPU @nth_cpu of the @c in group @g, which has @d devices: one
 * queue of each, then the next of each, so that the depth leaves no device out.
 */
static void append_homes(struct iaa_cpu_route *route, size_t g, size_t nth_cpu, size_t c, size_t d,
			 size_t turn, const struct iaa_map_device *devs, size_t n_devs)
{
	size_t j, nth_dev;
	u16 round, most = 1;
	bool mine;

	for (round = 0; round < most; round++) {
		for (j = 0, nth_dev = 0; j < n_devs; j++) {
			if (devs[j].at.group != (int)g)
				continue;
			mine = c >= d ? nth_cpu * d / c == nth_dev : nth_dev * c / d == nth_cpu;
			if (mine) {
				append_nth(route, &devs[j], turn, round);
				if (devs[j].count > most)
					most = devs[j].count;
			}
			nth_dev++;
		}
	}
	route->homes = route->count;
}

/* The rest of the devices behind the own ones, the near ones first. */
static void append_others(struct iaa_cpu_route *route, const struct iaa_place *cpu, size_t turn,
			  const struct iaa_map_device *devs, size_t n_devs)
{
	const struct iaa_map_device *dev;
	int far, d;
	size_t i;
	u16 k;

	for (far = -1; far <= 2; far++) {
		for (i = 0; i < n_devs; i++) {
			dev = &devs[(turn + i) % n_devs];
			d = dev->at.group == cpu->group ? -1 : distance(cpu, &dev->at);
			if (d != far)
				continue;
			for (k = 0; k < route->homes; k++)
				if (route->wq[k] >= dev->first &&
				    route->wq[k] < dev->first + dev->count)
					break;
			if (k < route->homes)
				continue;
			for (k = 0; k < dev->count; k++)
				append_nth(route, dev, turn, k);
		}
	}
}

/**
 * iaa_route_map() - work out the routes of all CPUs
 * @cpus: where the CPUs are; groups are filled in
 * @n_cpus: how many there are
 * @devs: the devices; groups are filled in
 * @n_devs: how many there are
 * @routes: one for each of @cpus, to be filled
 *
 * Every CPU gets at least one work queue as its own as long as there is a device,
 * and every device is some CPU's own as long as there is a CPU.
 */
void iaa_route_map(struct iaa_place *cpus, size_t n_cpus, struct iaa_map_device *devs,
		   size_t n_devs, struct iaa_cpu_route *routes)
{
	size_t i, g, c, d, nth_cpu;
	int far;

	memset(routes, 0, n_cpus * sizeof(*routes));
	if (!n_devs)
		return;

	make_groups(cpus, n_cpus, devs, n_devs);
	/*
	 * CPUs first: devices then go where they are needed most. What may go anywhere
	 * waits for what may not.
	 */
	for (far = 1; far <= 2; far++)
		for (i = 0; i < n_cpus; i++)
			join_group(&cpus[i], false, far, cpus, n_cpus, devs, n_devs);
	for (far = 1; far <= 2; far++)
		for (i = 0; i < n_devs; i++)
			join_group(&devs[i].at, true, far, cpus, n_cpus, devs, n_devs);

	for (g = 0; g < n_devs; g++) {
		if (devs[g].at.group != (int)g)
			continue;
		c = group_cpus(cpus, n_cpus, g);
		d = group_devs(devs, n_devs, g);
		for (i = 0, nth_cpu = 0; i < n_cpus; i++) {
			if (cpus[i].group != (int)g)
				continue;
			append_homes(&routes[i], g, nth_cpu, c, d, i, devs, n_devs);
			append_others(&routes[i], &cpus[i], i, devs, n_devs);
			nth_cpu++;
		}
	}
}
