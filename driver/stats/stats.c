// SPDX-License-Identifier: GPL-2.0
/* Counting on each CPU, and adding up. */
#include <linux/sched/clock.h>

#include "../iaa.h"
#include "trace.h"

struct iaa_stats __percpu *iaa_stats;

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
	iaa_stats = alloc_percpu(struct iaa_stats);
	return iaa_stats ? 0 : -ENOMEM;
}

/** iaa_stats_exit() - free the counters */
void iaa_stats_exit(void)
{
	free_percpu(iaa_stats);
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

static void count_failure(bool compress, const struct iax_completion_record *comp)
{
	u8 status = comp->status % IAA_STATUSES;

	this_cpu_inc(iaa_stats->status[compress][status]);
	if (status == IAA_STATUS_ANALYTICS)
		this_cpu_inc(iaa_stats->error[compress][comp->error_code]);
}

/**
 * iaa_count_answer() - count the end of a descriptor, where it is not a success
 * @compress: what the request asks for
 * @comp: the completion record
 */
void iaa_count_answer(bool compress, const struct iax_completion_record *comp)
{
	if (unlikely(comp->status != IAA_STATUS_SUCCESS))
		count_failure(compress, comp);
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
	/* Clocks of two CPUs may be apart by a little. */
	s64 took = local_clock() - slot->started;
	unsigned int bucket = took > 0 ? min(fls64(took), IAA_BUCKETS - 1) : 0;

	this_cpu_inc(iaa_stats->latency[slot->compress][slot->mode][bucket]);
	if (slot->compress) {
		iaa_count(IAA_C_COMP_CALLS, 1);
		iaa_count(IAA_C_COMP_BYTES_IN, in);
		iaa_count(IAA_C_COMP_BYTES_OUT, out);
		this_cpu_inc(wq->comp_calls);
		this_cpu_add(wq->comp_bytes, out);
	} else {
		iaa_count(IAA_C_DECOMP_CALLS, 1);
		iaa_count(IAA_C_DECOMP_BYTES_IN, in);
		iaa_count(IAA_C_DECOMP_BYTES_OUT, out);
		this_cpu_inc(wq->decomp_calls);
		this_cpu_add(wq->decomp_bytes, in);
	}
}

/**
 * iaa_stats_sum() - add up the driver's counters
 * @sum: where to; comes zeroed
 */
void iaa_stats_sum(struct iaa_stats *sum)
{
	const u64 *one;
	unsigned int i;
	int cpu;

	BUILD_BUG_ON(sizeof(*sum) % sizeof(u64));
	for_each_possible_cpu(cpu) {
		one = (const u64 *)per_cpu_ptr(iaa_stats, cpu);
		for (i = 0; i < sizeof(*sum) / sizeof(u64); i++)
			((u64 *)sum)[i] += READ_ONCE(one[i]);
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
		memset(per_cpu_ptr(iaa_stats, cpu), 0, sizeof(struct iaa_stats));
		list_for_each_entry(iwq, &iaa_wqs, node)
			memset(per_cpu_ptr(iwq->stats, cpu), 0, sizeof(struct iaa_wq_stats));
	}
	mutex_unlock(&iaa_lock);
}
