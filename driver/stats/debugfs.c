// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics in debugfs. The first lines of both files are those that the in-tree
 * driver writes, so that scripts made for it read these; what it lacks follows.
 */
#include <linux/debugfs.h>
#include <linux/math64.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <asm/tsc.h>

#include "../iaa.h"

static struct dentry *iaa_dir;

/* Too much for a stack. To be freed with kfree(). */
static struct iaa_tables *sum_up(void)
{
	struct iaa_tables *sum = kzalloc(sizeof(*sum), GFP_KERNEL);

	if (sum)
		iaa_stats_tables(sum);
	return sum;
}

static int global_stats_show(struct seq_file *m, void *v)
{
	static const struct {
		enum iaa_counter counter;
		const char *name;
	} lines[] = {
		{ IAA_C_SW_COMP_CALLS, "total_sw_comp_calls" },
		{ IAA_C_SW_DECOMP_CALLS, "total_sw_decomp_calls" },
		{ IAA_C_COMP_BYTES_OUT, "total_comp_bytes_out" },
		{ IAA_C_DECOMP_BYTES_IN, "total_decomp_bytes_in" },
		{ IAA_C_EINVAL_ERRORS, "total_completion_einval_errors" },
		{ IAA_C_TIMEOUT_ERRORS, "total_completion_timeout_errors" },
		{ IAA_C_OVERFLOW_ERRORS, "total_completion_comp_buf_overflow_errors" },
		/* Not the in-tree driver's, from here on. */
		{ IAA_C_COMP_BYTES_IN, "total_comp_bytes_in" },
		{ IAA_C_DECOMP_BYTES_OUT, "total_decomp_bytes_out" },
		{ IAA_C_LOST_INTERRUPTS, "lost_interrupts" },
	};
	struct iaa_tables *tables = sum_up();
	struct iaa_counters sum = {};
	unsigned int i;

	if (!tables)
		return -ENOMEM;
	iaa_stats_counters(&sum);
	seq_puts(m, "global stats:\n");
	seq_printf(m, "  total_comp_calls: %llu\n", iaa_stats_calls(tables, true));
	seq_printf(m, "  total_decomp_calls: %llu\n", iaa_stats_calls(tables, false));
	kfree(tables);
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		seq_printf(m, "  %s: %llu\n", lines[i].name, sum.count[lines[i].counter]);
	for (i = 0; i < IAA_R_COUNT; i++)
		seq_printf(m, "  sw_comp_%s: %llu\n", iaa_reason_name(i),
			   sum.count[IAA_C_COMP_REASON + i]);
	for (i = 0; i < IAA_R_COUNT; i++)
		seq_printf(m, "  sw_decomp_%s: %llu\n", iaa_reason_name(i),
			   sum.count[IAA_C_DECOMP_REASON + i]);
	seq_puts(m, "\n");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(global_stats);

static const char *operation(bool compress)
{
	return compress ? "comp" : "decomp";
}

static u64 nanoseconds(u64 cycles)
{
	/* Where the kernel does not know the rate, cycles are all there is to say. */
	return tsc_khz ? mul_u64_u32_div(cycles, USEC_PER_SEC, tsc_khz) : cycles;
}

static void show_latencies(struct seq_file *m, const struct iaa_tables *sum, bool compress,
			   enum iaa_sync_mode mode)
{
	const u64 *count = sum->latency[compress][mode];
	unsigned int i;

	for (i = 0; i < IAA_BUCKETS; i++)
		if (count[i])
			seq_printf(m, "%s %s %llu: %llu\n", operation(compress),
				   iaa_sync_mode_name(mode), nanoseconds(1ull << i), count[i]);
}

static int latency_show(struct seq_file *m, void *v)
{
	struct iaa_tables *sum = sum_up();
	enum iaa_sync_mode mode;

	if (!sum)
		return -ENOMEM;
	for (mode = 0; mode < IAA_SYNC_MODES; mode++) {
		show_latencies(m, sum, true, mode);
		show_latencies(m, sum, false, mode);
	}
	kfree(sum);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(latency);

static void show_errors(struct seq_file *m, const struct iaa_tables *sum, bool compress)
{
	unsigned int i;

	for (i = 0; i < IAA_STATUSES; i++)
		if (sum->status[compress][i])
			seq_printf(m, "%s status %#04x: %llu\n", operation(compress), i,
				   sum->status[compress][i]);
	for (i = 0; i < IAA_ERROR_CODES; i++)
		if (sum->error[compress][i])
			seq_printf(m, "%s error %#04x: %llu\n", operation(compress), i,
				   sum->error[compress][i]);
}

static int errors_show(struct seq_file *m, void *v)
{
	struct iaa_tables *sum = sum_up();

	if (!sum)
		return -ENOMEM;
	show_errors(m, sum, true);
	show_errors(m, sum, false);
	kfree(sum);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(errors);

static void show_wq(struct seq_file *m, struct iaa_wq *iwq)
{
	struct iaa_wq_stats sum;

	iaa_stats_wq(iwq, &sum);
	seq_printf(m, "    name: %s\n", iwq->config.name);
	seq_printf(m, "    comp_calls: %llu\n", sum.comp_calls);
	seq_printf(m, "    comp_bytes: %llu\n", sum.comp_bytes);
	seq_printf(m, "    decomp_calls: %llu\n", sum.decomp_calls);
	seq_printf(m, "    decomp_bytes: %llu\n", sum.decomp_bytes);
	seq_printf(m, "    state: %s\n\n", iwq->usable ? "in use" : "out of use");
}

static void show_device(struct seq_file *m, struct iaa_device *dev)
{
	struct iaa_wq_stats sum = {}, one;
	struct iaa_wq *iwq;

	list_for_each_entry(iwq, &iaa_wqs, node) {
		if (iwq->dev != dev)
			continue;
		iaa_stats_wq(iwq, &one);
		sum.comp_calls += one.comp_calls;
		sum.comp_bytes += one.comp_bytes;
		sum.decomp_calls += one.decomp_calls;
		sum.decomp_bytes += one.decomp_bytes;
	}
	seq_puts(m, "iaa device:\n");
	seq_printf(m, "  id: %d\n", dev->id);
	seq_printf(m, "  n_wqs: %u\n", dev->n_wqs);
	seq_printf(m, "  comp_calls: %llu\n", sum.comp_calls);
	seq_printf(m, "  comp_bytes: %llu\n", sum.comp_bytes);
	seq_printf(m, "  decomp_calls: %llu\n", sum.decomp_calls);
	seq_printf(m, "  decomp_bytes: %llu\n", sum.decomp_bytes);
	seq_puts(m, "  wqs:\n");
	list_for_each_entry(iwq, &iaa_wqs, node)
		if (iwq->dev == dev)
			show_wq(m, iwq);
}

static int wq_stats_show(struct seq_file *m, void *v)
{
	struct iaa_device *dev;

	mutex_lock(&iaa_lock);
	list_for_each_entry(dev, &iaa_devices, node)
		show_device(m, dev);
	mutex_unlock(&iaa_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(wq_stats);

static int stats_reset_set(void *data, u64 value)
{
	iaa_stats_reset();
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(stats_reset_fops, NULL, stats_reset_set, "%llu\n");

/**
 * iaa_debugfs_create() - make the files
 *
 * Where debugfs is off or refuses, the driver works without them.
 */
void iaa_debugfs_create(void)
{
	iaa_dir = debugfs_create_dir("iaa_crypto", NULL);
	debugfs_create_file("global_stats", 0644, iaa_dir, NULL, &global_stats_fops);
	debugfs_create_file("latency", 0444, iaa_dir, NULL, &latency_fops);
	debugfs_create_file("errors", 0444, iaa_dir, NULL, &errors_fops);
	debugfs_create_file("wq_stats", 0644, iaa_dir, NULL, &wq_stats_fops);
	debugfs_create_file_unsafe("stats_reset", 0644, iaa_dir, NULL, &stats_reset_fops);
}

/** iaa_debugfs_remove() - take the files away */
void iaa_debugfs_remove(void)
{
	debugfs_remove_recursive(iaa_dir);
}
