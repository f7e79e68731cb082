/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which work queues a CPU uses, worked out from where CPUs and devices are.
 * No kernel calls; the unit tests compile the same files on the host.
 */
#ifndef IAA_ROUTE_MAP_H
#define IAA_ROUTE_MAP_H

#include "pure.h"

/* Work queues that one CPU tries before it turns to software. */
#define IAA_ROUTE_DEPTH		30

/**
 * struct iaa_place - where a CPU or a device is
 * @node: NUMA node, negative where it is not known
 * @package: processor package, negative where it is not known
 * @group: used by iaa_route_map()
 */
struct iaa_place {
	int node;
	int package;
	int group;
};

/**
 * struct iaa_map_device - a device and its work queues
 * @at: where it is
 * @first: index of its first work queue; the others follow
 * @count: how many it has, at least one
 */
struct iaa_map_device {
	struct iaa_place at;
	u16 first;
	u16 count;
};

/**
 * struct iaa_cpu_route - the work queues of one CPU, in order
 * @homes: the first so many are the CPU's own and take turns
 * @count: all of them; those behind the own ones serve when these are full
 * @wq: indices of work queues
 */
struct iaa_cpu_route {
	u16 homes;
	u16 count;
	u16 wq[IAA_ROUTE_DEPTH];
};

void iaa_route_map(struct iaa_place *cpus, size_t n_cpus, struct iaa_map_device *devs,
		   size_t n_devs, struct iaa_cpu_route *routes);

#endif /* IAA_ROUTE_MAP_H */
