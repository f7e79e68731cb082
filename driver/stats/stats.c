// SPDX-License-Identifier: GPL-2.0
/* Counting on each CPU, and adding up. */
#include "../iaa.h"

DEFINE_PER_CPU(struct iaa_global_stats, iaa_global_stats);

static const char * const reason_names[IAA_R_COUNT] = {
	[IAA_R_NO_WQ]		= "no_wq",
	[IAA_R_WQ_FULL]		= "wq_full",
	[IAA_R_TOO_LARGE]	= "too_large",
	[IAA_R_NO_BUFFER]	= "no_buffer",
	[IAA_R_MAP]		= "dma_map",
	[IAA_R_SUBMIT]		= "submit",
	[IAA_R_STREAM]		= "stream",
	[IAA_R_TOO_SMALL]	= "too_small",
	[IAA_R_ERROR]		= "device_error",
	[IAA_R_TIMEOUT]		= "timeout",
	[IAA_R_VERIFY]		= "verify",
};

/**
 * iaa_reason_name() - a reason's name in the statistics
 * @reason: the reason
 */
const char *iaa_reason_name(enum iaa_reason reason)
{
	return reason_names[reason];
}

/**
 * iaa_count_done() - count a request that a device has done
 * @iwq: the WQ that served
 * @compress: what it did
 * @bytes: compressed bytes, on whichever side
 */
void iaa_count_done(struct iaa_wq *iwq, bool compress, u32 bytes)
{
	if (compress) {
		iaa_count(IAA_C_COMP_CALLS, 1);
		iaa_count(IAA_C_COMP_BYTES_OUT, bytes);
		this_cpu_inc(iwq->stats->comp_calls);
		this_cpu_add(iwq->stats->comp_bytes, bytes);
	} else {
		iaa_count(IAA_C_DECOMP_CALLS, 1);
		iaa_count(IAA_C_DECOMP_BYTES_IN, bytes);
		this_cpu_inc(iwq->stats->decomp_calls);
		this_cpu_add(iwq->stats->decomp_bytes, bytes);
	}
}

/**
 * iaa_stats_global() - add up the driver's counters
 * @sum: where to
 */
void iaa_stats_global(struct iaa_global_stats *sum)
{
	const struct iaa_global_stats *one;
	unsigned int i;
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		one = per_cpu_ptr(&iaa_global_stats, cpu);
		for (i = 0; i < IAA_C_COUNT; i++)
			sum->count[i] += READ_ONCE(one->count[i]);
	}
}

/**
 * iaa_stats_wq() - add up a WQ's counters
 * @iwq: the WQ
 * @sum: where to
 */
void iaa_stats_wq(struct iaa_wq *iwq, struct iaa_wq_stats *sum)
{
	const struct iaa_wq_stats *one;
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		one = per_cpu_ptr(iwq->stats, cpu);
		sum->comp_calls += READ_ONCE(one->comp_calls);
		sum->comp_bytes += READ_ONCE(one->comp_bytes);
		sum->decomp_calls += READ_ONCE(one->decomp_calls);
		sum->decomp_bytes += READ_ONCE(one->decomp_bytes);
	}
}

/**
 * iaa_stats_reset() - set all counters to zero
 *
 * A count that another CPU makes meanwhile may survive or be lost.
 */
void iaa_stats_reset(void)
{
	struct iaa_wq *iwq;
	int cpu;

	mutex_lock(&iaa_lock);
	for_each_possible_cpu(cpu) {
		memset(per_cpu_ptr(&iaa_global_stats, cpu), 0, sizeof(struct iaa_global_stats));
		list_for_each_entry(iwq, &iaa_wqs, node)
			memset(per_cpu_ptr(iwq->stats, cpu), 0, sizeof(struct iaa_wq_stats));
	}
	mutex_unlock(&iaa_lock);
}
