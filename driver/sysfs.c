// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of the driver, in /sys/bus/dsa/drivers/crypto/. Each can change at
 * any time; requests that begin later follow.
 */
#include <linux/sysfs.h>

#include "iaa.h"

bool iaa_verify_compress = true;
enum iaa_sync_mode iaa_sync_mode;

static ssize_t verify_compress_show(struct device_driver *drv, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(iaa_verify_compress));
}

static ssize_t verify_compress_store(struct device_driver *drv, const char *buf, size_t count)
{
	bool value;
	int rc;

	rc = kstrtobool(buf, &value);
	if (rc)
		return rc;
	WRITE_ONCE(iaa_verify_compress, value);
	return count;
}
static DRIVER_ATTR_RW(verify_compress);

static const char * const sync_mode_names[IAA_SYNC_MODES] = {
	[IAA_SYNC]	= "sync",
	[IAA_ASYNC]	= "async",
	[IAA_ASYNC_IRQ]	= "async_irq",
};

/**
 * iaa_sync_mode_name() - a mode's name
 * @mode: the mode
 */
const char *iaa_sync_mode_name(enum iaa_sync_mode mode)
{
	return sync_mode_names[mode];
}

static ssize_t sync_mode_show(struct device_driver *drv, char *buf)
{
	return sysfs_emit(buf, "%s\n", sync_mode_names[READ_ONCE(iaa_sync_mode)]);
}

static ssize_t sync_mode_store(struct device_driver *drv, const char *buf, size_t count)
{
	int mode = sysfs_match_string(sync_mode_names, buf);

	if (mode < 0)
		return mode;
	WRITE_ONCE(iaa_sync_mode, mode);
	return count;
}
static DRIVER_ATTR_RW(sync_mode);

static ssize_t compression_mode_show(struct device_driver *drv, char *buf)
{
	return sysfs_emit(buf, "%s\n", iaa_mode_fixed.name);
}

static ssize_t compression_mode_store(struct device_driver *drv, const char *buf, size_t count)
{
	return sysfs_streq(buf, iaa_mode_fixed.name) ? count : -EINVAL;
}
static DRIVER_ATTR_RW(compression_mode);

static struct attribute *iaa_driver_attrs[] = {
	&driver_attr_verify_compress.attr,
	&driver_attr_sync_mode.attr,
	&driver_attr_compression_mode.attr,
	NULL
};

static const struct attribute_group iaa_driver_group = {
	.attrs = iaa_driver_attrs,
};

const struct attribute_group *iaa_driver_groups[] = {
	&iaa_driver_group,
	NULL
};
