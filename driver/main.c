// SPDX-License-Identifier: GPL-2.0
/*
 * iaa_crypto: compression by Intel's In-Memory Analytics Accelerator for users of
 * the kernel's crypto API. An administrator gives work queues of IAA devices to
 * idxd's driver "crypto"; this file is the module around it.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "iaa.h"

DEFINE_MUTEX(iaa_lock);	/* guards the two lists, see iaa.h */
LIST_HEAD(iaa_devices);
LIST_HEAD(iaa_wqs);
/* What requests wait for, when memory is short as well. */
struct workqueue_struct *iaa_workqueue;
/* What may wait for whoever is short of memory. */
struct workqueue_struct *iaa_admin_workqueue;

unsigned int iaa_timeout_ms = 1000;

static int set_timeout(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, 60000);
}

static const struct kernel_param_ops timeout_ops = {
	.set = set_timeout,
	.get = param_get_uint,
};

module_param_cb(timeout_ms, &timeout_ops, &iaa_timeout_ms, 0644);
MODULE_PARM_DESC(timeout_ms,
		 "milliseconds a device may take to answer (1 to 60000, default 1000; 5000 at most where the caller cannot sleep)");

static int __init iaa_init(void)
{
	int rc;

	iaa_workqueue = alloc_workqueue("iaa_crypto", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!iaa_workqueue)
		return -ENOMEM;
	rc = -ENOMEM;
	iaa_admin_workqueue = alloc_workqueue("iaa_admin", WQ_UNBOUND, 0);
	if (!iaa_admin_workqueue)
		goto err_workqueue;
	rc = iaa_soft_init();
	if (rc)
		goto err_admin;
	rc = iaa_async_init();
	if (rc)
		goto err_soft;
	rc = iaa_stats_init();
	if (rc)
		goto err_async;
	rc = iaa_route_init();
	if (rc)
		goto err_stats;
	iaa_debugfs_create();
	rc = __idxd_driver_register(&iaa_driver, THIS_MODULE, KBUILD_MODNAME);
	if (rc) {
		pr_err("iaa_crypto: cannot register the driver \"%s\" with idxd: %d\n",
		       iaa_driver.name, rc);
		goto err_debugfs;
	}
	return 0;

err_debugfs:
	iaa_debugfs_remove();
	iaa_route_exit();
err_stats:
	iaa_stats_exit();
err_async:
	iaa_async_exit();
err_soft:
	iaa_soft_exit();
err_admin:
	destroy_workqueue(iaa_admin_workqueue);
err_workqueue:
	destroy_workqueue(iaa_workqueue);
	return rc;
}

static void __exit iaa_exit(void)
{
	idxd_driver_unregister(&iaa_driver);
	iaa_debugfs_remove();
	iaa_algs_exit();
	iaa_route_exit();
	iaa_async_exit();
	destroy_workqueue(iaa_admin_workqueue);
	destroy_workqueue(iaa_workqueue);
	iaa_soft_exit();
	iaa_stats_exit();
	/* The last reference to a WQ is dropped in an RCU callback of ours. */
	rcu_barrier();
}

module_init(iaa_init);
module_exit(iaa_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Intel In-Memory Analytics Accelerator: compression for the crypto API");
MODULE_VERSION("0.1.0");
MODULE_ALIAS("idxd:t0*");
MODULE_SOFTDEP("pre: idxd");
IAA_IMPORT_NS_IDXD();
