// SPDX-License-Identifier: GPL-2.0
/* Counting on each CPU, and adding up. */
#include <linux/timex.h>

#include "../iaa.h"
#include "trace.h"

DEFINE_PER_CPU(struct iaa_counters, iaa_counters);
struct iaa_tables __percpu *iaa_tables;

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

/** iaa_stats_init() - make the counters */
int iaa_stats_init(void)
{
	iaa_tables = alloc_percpu(struct iaa_tables);
	return iaa_tables ? 0 : -ENOMEM;
}

/** iaa_stats_exit() - free the counters */
void iaa_stats_exit(void)
{
	free_percpu(iaa_tables);
}

/**
 * iaa_count_soft() - count a request that software is to do
 * @compress: what is asked for
 * @reason: why
 */
void iaa_count_soft(bool compress, enum iaa_reason reason)
{
	trace_iaa_fallback(compress, reason);
	iaa_count((compress ? IAA_C_COMP_REASON : IAA_C_DECOMP_REASON) + reason, 1);
}

/**
 * iaa_count_failure() - count the end of a descriptor that was not a success
 * @compress: what the request asks for
 * @comp: the completion record
 */
void iaa_count_failure(bool compress, const struct iax_completion_record *comp)
{
	u8 status = comp->status % IAA_STATUSES;

	this_cpu_inc(iaa_tables->status[compress][status]);
	if (status == IAA_STATUS_ANALYTICS)
		this_cpu_inc(iaa_tables->error[compress][comp->error_code]);
}

/**
 * iaa_count_done() - count a request that a device has done
 * @slot: its slot
 * @in: bytes of input
 * @out: bytes of output
 */
void iaa_count_done(struct iaa_slot *slot, u32 in, u32 out)
{
	struct iaa_wq_stats __percpu *wq = slot->iwq->stats;
	/* Counters of two CPUs may be apart by a little. */
	s64 took = get_cycles() - slot->started;
	unsigned int bucket = took > 0 ? min(fls64(took), IAA_BUCKETS - 1) : 0;

	this_cpu_inc(iaa_tables->latency[slot->compress][slot->mode][bucket]);
	if (slot->compress) {
		iaa_count(IAA_C_COMP_BYTES_IN, in);
		iaa_count(IAA_C_COMP_BYTES_OUT, out);
		this_cpu_inc(wq->comp_calls);
		this_cpu_add(wq->comp_bytes, out);
	} else {
		iaa_count(IAA_C_DECOMP_BYTES_IN, in);
		iaa_count(IAA_C_DECOMP_BYTES_OUT, out);
		this_cpu_inc(wq->decomp_calls);
		this_cpu_add(wq->decomp_bytes, in);
	}
}

/* Adds up the @n counters that each CPU has at @at. */
static void add_up(u64 *sum, const u64 __percpu *at, size_t n)
{
	const u64 *one;
	size_t i;
	int cpu;

	for_each_possible_cpu(cpu) {
		one = per_cpu_ptr(at, cpu);
		for (i = 0; i < n; i++)
			sum[i] += READ_ONCE(one[i]);
	}
}

/**
 * iaa_stats_counters() - add up the driver's counters
 * @sum: where to; comes zeroed
 */
void iaa_stats_counters(struct iaa_counters *sum)
{
	add_up(sum->count, iaa_counters.count, IAA_C_COUNT);
}

/**
 * iaa_stats_tables() - add up the distributions
 * @sum: where to; comes zeroed
 */
void iaa_stats_tables(struct iaa_tables *sum)
{
	BUILD_BUG_ON(sizeof(*sum) % sizeof(u64));
	add_up((u64 *)sum, (const u64 __percpu *)iaa_tables, sizeof(*sum) / sizeof(u64));
}

/**
 * iaa_stats_calls() - requests that a device has done
 * @sum: the distributions
 * @compress: which
 */
u64 iaa_stats_calls(const struct iaa_tables *sum, bool compress)
{
	u64 calls = 0;
	unsigned int mode, i;

	for (mode = 0; mode < IAA_SYNC_MODES; mode++)
		for (i = 0; i < IAA_BUCKETS; i++)
			calls += sum->latency[compress][mode][i];
	return calls;
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
		memset(per_cpu_ptr(&iaa_counters, cpu), 0, sizeof(struct iaa_counters));
		memset(per_cpu_ptr(iaa_tables, cpu), 0, sizeof(struct iaa_tables));
		list_for_each_entry(iwq, &iaa_wqs, node)
			memset(per_cpu_ptr(iwq->stats, cpu), 0, sizeof(struct iaa_wq_stats));
	}
	mutex_unlock(&iaa_lock);
}
