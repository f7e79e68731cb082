// SPDX-License-Identifier: GPL-2.0
/*
 * Test module: drives any acomp algorithm from kernel threads and checks every
 * byte that comes back. Below debugfs, acomp_load/0 to acomp_load/7 are slots,
 * each for one job at a time:
 *   control  "start WORD=VALUE ...", "go", "stop"
 *   result   key=value lines, at any time
 *   data, stream, expect   bytes for the next job
 */
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "job.h"

#define SLOTS 8
#define MAX_COMMAND 1024

struct slot;

/* Which bytes a file of a slot takes. */
struct bytes_file {
	struct slot *slot;
	struct blob *blob;
};

struct slot {
	struct bytes_file files[3];
	struct mutex lock;	/* all below */
	struct job *job;
	struct blob data, stream, expect;
	char error[128];	/* of the last command; empty: none */
};

static struct slot slots[SLOTS];
static struct dentry *root;

static int slot_start(struct slot *slot, char *words)
{
	struct settings *set;
	struct job *job;
	int err;

	if (slot->job && !job_done(slot->job)) {
		strscpy(slot->error, "a job still runs in this slot");
		return -EBUSY;
	}
	set = kzalloc(sizeof(*set), GFP_KERNEL);
	if (!set)
		return -ENOMEM;
	err = settings_parse(set, words, slot->error, sizeof(slot->error));
	if (err)
		goto out;
	job = job_start(set, &slot->data, &slot->stream, &slot->expect);
	if (IS_ERR(job)) {
		err = PTR_ERR(job);
		snprintf(slot->error, sizeof(slot->error), "the job did not start: %s (%d)",
			 err == -ENODATA ? "data or stream is not there, or too short" :
			 err == -ENXIO ? "none of the CPUs is online" : "out of memory", err);
		goto out;
	}
	if (slot->job)
		job_put(slot->job);
	slot->job = job;
out:
	kfree(set);
	return err;
}

static int slot_command(struct slot *slot, char *text)
{
	char *words = text;
	char *verb = strsep(&words, "\n ");

	slot->error[0] = '\0';
	if (!strcmp(verb, "start"))
		return slot_start(slot, words ?: "");
	if (strcmp(verb, "go") && strcmp(verb, "stop")) {
		snprintf(slot->error, sizeof(slot->error), "%s: use start, go or stop", verb);
		return -EINVAL;
	}
	if (!slot->job) {
		strscpy(slot->error, "no job was started in this slot");
		return -ENOENT;
	}
	if (!strcmp(verb, "go"))
		job_go(slot->job);
	else
		job_stop(slot->job);
	return 0;
}

static ssize_t control_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct slot *slot = file_inode(file)->i_private;
	char *text;
	int err;

	if (len > MAX_COMMAND)
		return -E2BIG;
	text = memdup_user_nul(from, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&slot->lock);
	err = slot_command(slot, text);
	mutex_unlock(&slot->lock);
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
	struct slot *slot = seq->private;

	mutex_lock(&slot->lock);
	if (slot->job)
		job_show(seq, slot->job);
	else
		seq_puts(seq, "state=idle\n");
	seq_printf(seq, "error=%s\n", slot->error);
	mutex_unlock(&slot->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

/* A write at the start replaces what was there. */
static ssize_t blob_write(struct slot *slot, struct blob *blob, const char __user *from,
			  size_t len, loff_t *pos)
{
	struct blob longer;
	ssize_t ret = len;

	if (*pos < 0 || *pos > LOAD_MAX_BYTES || len > LOAD_MAX_BYTES - *pos)
		return -EFBIG;
	mutex_lock(&slot->lock);
	if (*pos && *pos != blob->len) {
		ret = -ESPIPE;
		goto out;
	}
	longer.len = *pos + len;
	longer.data = kvmalloc(max_t(size_t, longer.len, 1), GFP_KERNEL);
	if (!longer.data) {
		ret = -ENOMEM;
		goto out;
	}
	if (*pos)
		memcpy(longer.data, blob->data, *pos);
	if (copy_from_user(longer.data + *pos, from, len)) {
		kvfree(longer.data);
		ret = -EFAULT;
		goto out;
	}
	blob_free(blob);
	*blob = longer;
	*pos += len;
out:
	mutex_unlock(&slot->lock);
	return ret;
}

static ssize_t bytes_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct bytes_file *bytes = file_inode(file)->i_private;

	return blob_write(bytes->slot, bytes->blob, from, len, pos);
}

static const struct file_operations bytes_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = bytes_write,
};

static void __init add_bytes_file(struct slot *slot, struct dentry *dir, const char *name,
				  struct bytes_file *file, struct blob *blob)
{
	file->slot = slot;
	file->blob = blob;
	debugfs_create_file(name, 0200, dir, file, &bytes_fops);
}

static int __init acomp_load_init(void)
{
	unsigned int i;

	root = debugfs_create_dir("acomp_load", NULL);
	if (IS_ERR(root))
		return PTR_ERR(root);
	for (i = 0; i < SLOTS; i++) {
		struct slot *slot = &slots[i];
		struct dentry *dir;
		char name[4];

		mutex_init(&slot->lock);
		snprintf(name, sizeof(name), "%u", i);
		dir = debugfs_create_dir(name, root);
		debugfs_create_file("control", 0200, dir, slot, &control_fops);
		debugfs_create_file("result", 0400, dir, slot, &result_fops);
		add_bytes_file(slot, dir, "data", &slot->files[0], &slot->data);
		add_bytes_file(slot, dir, "stream", &slot->files[1], &slot->stream);
		add_bytes_file(slot, dir, "expect", &slot->files[2], &slot->expect);
	}
	return 0;
}

/* Running threads hold the module, so that none is left here. */
static void __exit acomp_load_exit(void)
{
	unsigned int i;

	debugfs_remove(root);
	for (i = 0; i < SLOTS; i++) {
		if (slots[i].job)
			job_put(slots[i].job);
		blob_free(&slots[i].data);
		blob_free(&slots[i].stream);
		blob_free(&slots[i].expect);
	}
}

module_init(acomp_load_init);
module_exit(acomp_load_exit);
MODULE_DESCRIPTION("Load for acomp algorithms that checks every byte");
MODULE_LICENSE("GPL");
