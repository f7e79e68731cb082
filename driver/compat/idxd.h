/* SPDX-License-Identifier: GPL-2.0 */
/*
 * idxd as a sub-driver meets it. Its own headers are in no headers package, so
 * the private types stay incomplete here and are reached through accessors that
 * the build makes from idxd's BTF (idxd-offsets.h).
 */
#ifndef IAA_COMPAT_IDXD_H
#define IAA_COMPAT_IDXD_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/percpu-refcount.h>
#include <uapi/linux/idxd.h>

struct idxd_desc;
struct idxd_dev;
struct idxd_device;
struct idxd_driver_data;
struct idxd_irq_entry;
struct idxd_wq;

#include "idxd-offsets.h"
#include "probed.h"

#ifdef IAA_HAVE_IMPORT_NS_TOKEN
#define IAA_IMPORT_NS_IDXD() MODULE_IMPORT_NS(IDXD)
#else
#define IAA_IMPORT_NS_IDXD() MODULE_IMPORT_NS("IDXD")
#endif

/**
 * struct idxd_device_driver - a driver on idxd's bus
 * @name: what a WQ's driver_name says
 * @type: device types to be probed with, ended by IDXD_DEV_NONE
 * @probe: a device of one of the types is to be bound
 * @remove: it is to be unbound
 * @desc_complete: a descriptor with an interrupt has ended
 * @drv: the driver model's part
 */
struct idxd_device_driver {
	const char *name;
	enum idxd_dev_type *type;
	int (*probe)(struct idxd_dev *idxd_dev);
	void (*remove)(struct idxd_dev *idxd_dev);
	void (*desc_complete)(struct idxd_desc *desc, enum idxd_complete_type comp_type,
			      bool free_desc, void *ctx, u32 *status);
	struct device_driver drv;
};

#ifndef __CHECKER__
#define IAA_CHECK_MEMBER(member)						\
	static_assert(offsetof(struct idxd_device_driver, member) ==		\
		      IDXD_OFFSET_idxd_device_driver_##member,			\
		      "idxd_device_driver." #member " is at another offset")

IAA_CHECK_MEMBER(name);
IAA_CHECK_MEMBER(type);
IAA_CHECK_MEMBER(probe);
IAA_CHECK_MEMBER(remove);
IAA_CHECK_MEMBER(desc_complete);
IAA_CHECK_MEMBER(drv);
#undef IAA_CHECK_MEMBER

static_assert(sizeof(struct idxd_device_driver) == IDXD_SIZE_idxd_device_driver,
	      "struct idxd_device_driver has another size");
#endif
static_assert(sizeof(struct iax_hw_desc) == IDXD_SIZE_iax_hw_desc,
	      "struct iax_hw_desc has another size");
static_assert(sizeof(struct iax_completion_record) == IDXD_SIZE_iax_completion_record,
	      "struct iax_completion_record has another size");

int __idxd_driver_register(struct idxd_device_driver *idxd_drv, struct module *module,
			   const char *mod_name);
void idxd_driver_unregister(struct idxd_device_driver *idxd_drv);
int idxd_drv_enable_wq(struct idxd_wq *wq);
void idxd_drv_disable_wq(struct idxd_wq *wq);
struct idxd_desc *idxd_alloc_desc(struct idxd_wq *wq, enum idxd_op_type optype);
void idxd_free_desc(struct idxd_wq *wq, struct idxd_desc *desc);
int idxd_submit_desc(struct idxd_wq *wq, struct idxd_desc *desc);

static inline struct idxd_wq *idxd_dev_to_wq(struct idxd_dev *idxd_dev)
{
	return (struct idxd_wq *)((char *)idxd_dev - IDXD_OFFSET_idxd_wq_idxd_dev);
}

static inline struct device *idxd_wq_dev(struct idxd_wq *wq)
{
	return idxd_dev_conf_dev(idxd_wq_idxd_dev(wq));
}

#endif /* IAA_COMPAT_IDXD_H */
