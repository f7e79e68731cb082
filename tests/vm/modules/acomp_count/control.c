// SPDX-License-Identifier: GPL-2.0
/*
 * Test module: counts what an operation of an acomp algorithm takes, for a guest
 * whose TSC counts instructions. Below debugfs, acomp_count/:
 *   pages    the bytes to compress, whole pages
 *   control  "alg=NAME op=compress|decompress [src_nents=N] [dst_nents=N] [operations=N]"
 *            measures; the write ends with it
 *   result   key=value lines of the last case
 */
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "measure.h"

#define MAX_COMMAND	1024
#define MAX_PAGES	(16UL << 20)

static DEFINE_MUTEX(lock);	/* all below */
static struct dentry *root;
static u8 *pages;
static size_t pages_len;
static struct count_result last;
static char error[128];

static int parse_number(const char *value, unsigned int max, unsigned int *field)
{
	int err = kstrtouint(value, 0, field);

	return err ?: *field < 1 || *field > max ? -ERANGE : 0;
}

static int parse_word(struct count_case *what, const char *key, const char *value)
{
	if (!strcmp(key, "alg"))
		return strscpy(what->alg, value) > 0 ? 0 : -EINVAL;
	if (!strcmp(key, "op")) {
		what->compress = !strcmp(value, "compress");
		return what->compress || !strcmp(value, "decompress") ? 0 : -EINVAL;
	}
	if (!strcmp(key, "src_nents"))
		return parse_number(value, COUNT_MAX_ENTRIES, &what->src_nents);
	if (!strcmp(key, "dst_nents"))
		return parse_number(value, COUNT_MAX_ENTRIES, &what->dst_nents);
	if (!strcmp(key, "operations"))
		return parse_number(value, COUNT_MAX_OPERATIONS, &what->operations);
	return -ENOENT;
}

static int parse(struct count_case *what, char *text)
{
	char *word;

	*what = (struct count_case){ .src_nents = 1, .dst_nents = 1, .operations = 512 };
	while ((word = strsep(&text, " \t\n"))) {
		char *value = word;
		char *key;
		int err;

		if (!*word)
			continue;
		key = strsep(&value, "=");
		err = value ? parse_word(what, key, value) : -EINVAL;
		if (err) {
			snprintf(error, sizeof(error), "%s: %s (%d)", key,
				 err == -ENOENT ? "no such word" : "value not possible", err);
			return -EINVAL;
		}
	}
	if (!what->alg[0]) {
		strscpy(error, "alg= is missing");
		return -EINVAL;
	}
	if (!pages_len || pages_len % PAGE_SIZE) {
		strscpy(error, "write whole pages into the file pages first");
		return -ENODATA;
	}
	return 0;
}

static ssize_t control_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct count_case what;
	char *text;
	int err;

	if (len > MAX_COMMAND)
		return -E2BIG;
	text = memdup_user_nul(from, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&lock);
	error[0] = '\0';
	last = (struct count_result){};
	err = parse(&what, text);
	if (!err)
		err = count_run(&what, pages, pages_len / PAGE_SIZE, &last, error, sizeof(error));
	mutex_unlock(&lock);
	kfree(text);
	return err ?: len;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = control_write,
};

static int result_show(struct seq_file *seq, void *unused)
{
	mutex_lock(&lock);
	seq_printf(seq, "number=%u\ndriver_name=%s\noperations=%u\n", last.number,
		   last.driver_name, last.done);
	seq_printf(seq, "minimum=%llu\nmedian=%llu\nmaximum=%llu\ntotal=%llu\n", last.minimum,
		   last.median, last.maximum, last.total);
	seq_printf(seq, "overhead=%llu\ncompressed=%llu\nerror=%s\n", last.overhead,
		   last.compressed, error);
	mutex_unlock(&lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

/* A write at the start replaces what was there; the others go on behind it. */
static ssize_t pages_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	ssize_t ret = len;

	if (*pos < 0 || *pos > MAX_PAGES || len > MAX_PAGES - *pos)
		return -EFBIG;
	mutex_lock(&lock);
	if (*pos && *pos != pages_len)
		ret = -ESPIPE;
	else if (copy_from_user(pages + *pos, from, len))
		ret = -EFAULT;
	if (ret > 0) {
		*pos += len;
		pages_len = *pos;
	}
	mutex_unlock(&lock);
	return ret;
}

static const struct file_operations pages_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = pages_write,
};

static int __init acomp_count_init(void)
{
	pages = kvmalloc(MAX_PAGES, GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	root = debugfs_create_dir("acomp_count", NULL);
	if (IS_ERR(root)) {
		kvfree(pages);
		return PTR_ERR(root);
	}
	debugfs_create_file("control", 0200, root, NULL, &control_fops);
	debugfs_create_file("result", 0400, root, NULL, &result_fops);
	debugfs_create_file("pages", 0200, root, NULL, &pages_fops);
	return 0;
}

static void __exit acomp_count_exit(void)
{
	debugfs_remove(root);
	kvfree(pages);
}

module_init(acomp_count_init);
module_exit(acomp_count_exit);
MODULE_DESCRIPTION("Counts what operations of acomp algorithms take");
MODULE_LICENSE("GPL");
