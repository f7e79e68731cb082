// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs and devices are first put into groups that belong together: those of one
 * NUMA node, where a node has both; what is left over joins the nearest group
 * with the least to do. Inside a group both are split evenly, so that every CPU
 * has a device, every device has a CPU, and shares differ by at most one.
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

/* Groups are named by the index of the first device in them. */
static void make_groups(struct iaa_place *cpus, size_t n_cpus, struct iaa_map_device *devs,
			size_t n_devs)
{
	bool any = false;
	size_t i, j;

	for (i = 0; i < n_cpus; i++)
		cpus[i].group = NO_GROUP;
	for (i = 0; i < n_devs; i++) {
		devs[i].at.group = NO_GROUP;
		for (j = 0; j < i; j++) {
			if (devs[j].at.group != NO_GROUP &&
			    !distance(&devs[i].at, &devs[j].at)) {
				devs[i].at.group = devs[j].at.group;
				break;
			}
		}
		if (devs[i].at.group != NO_GROUP)
			continue;
		for (j = 0; j < n_cpus; j++) {
			if (distance(&devs[i].at, &cpus[j]))
				continue;
			devs[i].at.group = i;
			cpus[j].group = i;
			any = true;
		}
	}
	/* No device shares a node with a CPU: one group for all. */
	if (!any) {
		for (i = 0; i < n_devs; i++)
			devs[i].at.group = 0;
		for (i = 0; i < n_cpus; i++)
			cpus[i].group = 0;
	}
}

/* The distance from @at to the nearest device that was in @group from the start. */
static int group_distance(const struct iaa_place *at, const struct iaa_map_device *devs,
			  size_t n_devs, int group)
{
	size_t i;
	int best = 2, d;

	for (i = 0; i < n_devs; i++) {
		if (devs[i].at.group != group)
			continue;
		d = distance(at, &devs[i].at);
		if (d < best)
			best = d;
	}
	return best;
}

/*
 * The group for a place that is in none: the nearest, then the one where a
 * device has the most CPUs (for a device) or the fewest (for a CPU).
 */
static int choose_group(const struct iaa_place *at, bool for_device, const struct iaa_place *cpus,
			size_t n_cpus, const struct iaa_map_device *devs, size_t n_devs)
{
	size_t i, c, d, best_c = 0, best_d = 1;
	int best = NO_GROUP, best_far = 0, far;
	bool better;

	for (i = 0; i < n_devs; i++) {
		if (devs[i].at.group != (int)i)
			continue;
		far = group_distance(at, devs, n_devs, i);
		c = group_cpus(cpus, n_cpus, i);
		d = group_devs(devs, n_devs, i);
		better = for_device ? c * best_d > best_c * d : c * best_d < best_c * d;
		if (best == NO_GROUP || far < best_far || (far == best_far && better)) {
			best = i;
			best_far = far;
			best_c = c;
			best_d = d;
		}
	}
	return best;
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

	memset(routes, 0, n_cpus * sizeof(*routes));
	if (!n_devs)
		return;

	make_groups(cpus, n_cpus, devs, n_devs);
	/* CPUs first: devices then go where they are needed most. */
	for (i = 0; i < n_cpus; i++)
		if (cpus[i].group == NO_GROUP)
			cpus[i].group = choose_group(&cpus[i], false, cpus, n_cpus, devs, n_devs);
	for (i = 0; i < n_devs; i++)
		if (devs[i].at.group == NO_GROUP)
			devs[i].at.group = choose_group(&devs[i].at, true, cpus, n_cpus, devs,
							n_devs);

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
