/* SPDX-License-Identifier: GPL-2.0 */
/* Counters, one set a CPU: nothing that two CPUs share is written on the request path. */
#ifndef IAA_STATS_H
#define IAA_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

#include "../sync_mode.h"

struct iax_completion_record;
struct iaa_slot;
struct iaa_wq;

/* Latencies by powers of two of TSC cycles; the last one has all that took longer. */
#define IAA_BUCKETS	40
/* Statuses of completion records, without the bits that qualify them. */
#define IAA_STATUSES	64
#define IAA_ERROR_CODES	256

/**
 * enum iaa_reason - why software did a request, or the device's part of it
 * @IAA_R_NO_WQ: no WQ is bound and usable
 * @IAA_R_WQ_FULL: every WQ of the route was full
 * @IAA_R_TOO_LARGE: larger than the WQ's transfer limit
 * @IAA_R_NO_BUFFER: many segments, and no buffer to gather them in
 * @IAA_R_MAP: DMA mapping failed
 * @IAA_R_SUBMIT: the descriptor could not be submitted
 * @IAA_R_STREAM: the device cannot take the stream
 * @IAA_R_TOO_SMALL: the device says that the destination is too small
 * @IAA_R_ERROR: the device ended with another error
 * @IAA_R_TIMEOUT: the device did not answer in time, or its watchdog ended it
 * @IAA_R_VERIFY: what the device compressed did not verify
 * @IAA_R_COUNT: number of reasons
 */
enum iaa_reason {
	IAA_R_NO_WQ,
	IAA_R_WQ_FULL,
	IAA_R_TOO_LARGE,
	IAA_R_NO_BUFFER,
	IAA_R_MAP,
	IAA_R_SUBMIT,
	IAA_R_STREAM,
	IAA_R_TOO_SMALL,
	IAA_R_ERROR,
	IAA_R_TIMEOUT,
	IAA_R_VERIFY,
	IAA_R_COUNT,
};

/**
 * enum iaa_counter - what is counted for the whole driver
 * @IAA_C_SW_COMP_CALLS: compressions done in software
 * @IAA_C_SW_DECOMP_CALLS: decompressions done in software
 * @IAA_C_COMP_BYTES_IN: bytes that devices compressed from
 * @IAA_C_COMP_BYTES_OUT: bytes that devices compressed to
 * @IAA_C_DECOMP_BYTES_IN: bytes that devices decompressed from
 * @IAA_C_DECOMP_BYTES_OUT: bytes that devices decompressed to
 * @IAA_C_EINVAL_ERRORS: completions with an error not named elsewhere
 * @IAA_C_TIMEOUT_ERRORS: descriptors not answered in time
 * @IAA_C_OVERFLOW_ERRORS: compressions that did not fit
 * @IAA_C_LOST_INTERRUPTS: times that an interrupt was found missing
 * @IAA_C_COMP_REASON: software compressions by reason, IAA_R_COUNT of them
 * @IAA_C_DECOMP_REASON: software decompressions, likewise
 * @IAA_C_COUNT: number of counters
 */
enum iaa_counter {
	IAA_C_SW_COMP_CALLS,
	IAA_C_SW_DECOMP_CALLS,
	IAA_C_COMP_BYTES_IN,
	IAA_C_COMP_BYTES_OUT,
	IAA_C_DECOMP_BYTES_IN,
	IAA_C_DECOMP_BYTES_OUT,
	IAA_C_EINVAL_ERRORS,
	IAA_C_TIMEOUT_ERRORS,
	IAA_C_OVERFLOW_ERRORS,
	IAA_C_LOST_INTERRUPTS,
	IAA_C_COMP_REASON,
	IAA_C_DECOMP_REASON = IAA_C_COMP_REASON + IAA_R_COUNT,
	IAA_C_COUNT = IAA_C_DECOMP_REASON + IAA_R_COUNT,
};

/**
 * struct iaa_counters - what is counted for nearly each request on one CPU
 * @count: by &enum iaa_counter
 */
struct iaa_counters {
	u64 count[IAA_C_COUNT];
};

/**
 * struct iaa_tables - distributions on one CPU
 * @latency: requests that a device has done, by operation (1: compression), &enum
 *	iaa_sync_mode, and the power of two of TSC cycles that they took less than
 * @status: descriptors that did not succeed, by operation and status
 * @error: those whose status is an analytics error, by operation and error code
 */
struct iaa_tables {
	u64 latency[2][IAA_SYNC_MODES][IAA_BUCKETS];
	u64 status[2][IAA_STATUSES];
	u64 error[2][IAA_ERROR_CODES];
};

/**
 * struct iaa_wq_stats - counters of one WQ on one CPU
 * @comp_calls: compressions
 * @comp_bytes: bytes they produced
 * @decomp_calls: decompressions
 * @decomp_bytes: bytes they consumed
 */
struct iaa_wq_stats {
	u64 comp_calls;
	u64 comp_bytes;
	u64 decomp_calls;
	u64 decomp_bytes;
};

DECLARE_PER_CPU(struct iaa_counters, iaa_counters);
extern struct iaa_tables __percpu *iaa_tables;

static inline void iaa_count(enum iaa_counter counter, u64 by)
{
	this_cpu_add(iaa_counters.count[counter], by);
}

int iaa_stats_init(void);
void iaa_stats_exit(void);
void iaa_count_soft(bool compress, enum iaa_reason reason);
void iaa_count_failure(bool compress, const struct iax_completion_record *comp);
void iaa_count_done(struct iaa_slot *slot, u32 in, u32 out);
void iaa_stats_counters(struct iaa_counters *sum);
void iaa_stats_tables(struct iaa_tables *sum);
u64 iaa_stats_calls(const struct iaa_tables *sum, bool compress);
void iaa_stats_wq(struct iaa_wq *iwq, struct iaa_wq_stats *sum);
void iaa_stats_reset(void);
const char *iaa_reason_name(enum iaa_reason reason);

void iaa_debugfs_create(void);
void iaa_debugfs_remove(void);

#endif /* IAA_STATS_H */
