// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics in debugfs. The first lines of both files are those that the in-tree
 * driver writes, so that scripts made for it read these; what it lacks follows.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "../iaa.h"

static struct dentry *iaa_dir;

static int global_stats_show(struct seq_file *m, void *v)
{
	static const struct {
		enum iaa_counter counter;
		const char *name;
	} lines[] = {
		{ IAA_C_COMP_CALLS, "total_comp_calls" },
		{ IAA_C_DECOMP_CALLS, "total_decomp_calls" },
		{ IAA_C_SW_COMP_CALLS, "total_sw_comp_calls" },
		{ IAA_C_SW_DECOMP_CALLS, "total_sw_decomp_calls" },
		{ IAA_C_COMP_BYTES_OUT, "total_comp_bytes_out" },
		{ IAA_C_DECOMP_BYTES_IN, "total_decomp_bytes_in" },
		{ IAA_C_EINVAL_ERRORS, "total_completion_einval_errors" },
		{ IAA_C_TIMEOUT_ERRORS, "total_completion_timeout_errors" },
		{ IAA_C_OVERFLOW_ERRORS, "total_completion_comp_buf_overflow_errors" },
	};
	struct iaa_global_stats sum;
	unsigned int i;

	iaa_stats_global(&sum);
	seq_puts(m, "global stats:\n");
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
	debugfs_create_file("wq_stats", 0644, iaa_dir, NULL, &wq_stats_fops);
	debugfs_create_file_unsafe("stats_reset", 0644, iaa_dir, NULL, &stats_reset_fops);
}

/** iaa_debugfs_remove() - take the files away */
void iaa_debugfs_remove(void)
{
	debugfs_remove_recursive(iaa_dir);
}
