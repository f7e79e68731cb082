// SPDX-License-Identifier: GPL-2.0
/*
 * The algorithms. "deflate-iaa" is there while there are WQs, and longer while
 * somebody holds it. "deflate-iaa-generic" is software for the same streams and
 * there while the module is: the crypto core wants a synchronous algorithm of the
 * same name beside an asynchronous one, and it reads data without a device.
 */
#include <linux/atomic.h>
#include <linux/refcount.h>

#include "iaa.h"

#define RETIRE_AGAIN_MS 200

static bool iaa_registered;
static atomic_t iaa_users = ATOMIC_INIT(0);

static void retire_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(retire_work, retire_fn);

static int iaa_tfm_init(struct crypto_acomp *tfm)
{
	atomic_inc(&iaa_users);
	return 0;
}

static void iaa_tfm_exit(struct crypto_acomp *tfm)
{
	/* The core lets go of the algorithm only after this. */
	if (atomic_dec_and_test(&iaa_users) && list_empty(&iaa_wqs))
		mod_delayed_work(iaa_workqueue, &retire_work, msecs_to_jiffies(RETIRE_AGAIN_MS));
}

static int iaa_compress(struct acomp_req *req)
{
	return iaa_request(req, true);
}

static int iaa_decompress(struct acomp_req *req)
{
	return iaa_request(req, false);
}

static int soft_op(struct acomp_req *req, bool compress)
{
	int rc = iaa_request_check(req);

	return rc ? rc : iaa_soft_request(req, compress);
}

static int soft_compress(struct acomp_req *req)
{
	return soft_op(req, true);
}

static int soft_decompress(struct acomp_req *req)
{
	return soft_op(req, false);
}

static const struct acomp_alg iaa_template = {
	.compress = iaa_compress,
	.decompress = iaa_decompress,
	.init = iaa_tfm_init,
	.exit = iaa_tfm_exit,
	IAA_ACOMP_DST_FREE
	.base = {
		.cra_name = "deflate-iaa",
		.cra_driver_name = "deflate-iaa",
		.cra_priority = 300,
		.cra_flags = CRYPTO_ALG_ASYNC,
		.cra_module = THIS_MODULE,
	},
};

/* A registration leaves its marks in it, so each begins with the template. */
static struct acomp_alg iaa_alg;

static struct acomp_alg soft_alg = {
	.compress = soft_compress,
	.decompress = soft_decompress,
	IAA_ACOMP_DST_FREE
	.base = {
		.cra_name = "deflate-iaa",
		.cra_driver_name = "deflate-iaa-generic",
		.cra_priority = 100,
		.cra_flags = IAA_ACOMP_TAKES_VIRT,
		.cra_module = THIS_MODULE,
	},
};

static void enlist(void)
{
	int rc;

	iaa_alg = iaa_template;
	rc = crypto_register_acomp(&iaa_alg);
	if (rc) {
		pr_err("iaa_crypto: cannot register deflate-iaa: %d\n", rc);
		return;
	}
	iaa_registered = true;
}

/*
 * Takes the algorithm away if nobody holds it. The core only warns where somebody
 * does, so it is first hidden from all who look for one, under the lock that they
 * look under.
 */
static bool retire(void)
{
	bool idle;

	down_write(&crypto_alg_sem);
	idle = refcount_read(&iaa_alg.base.cra_refcnt) == 1;
	if (idle)
		iaa_alg.base.cra_flags |= CRYPTO_ALG_DYING;
	up_write(&crypto_alg_sem);
	if (!idle)
		return false;
	crypto_unregister_acomp(&iaa_alg);
	iaa_registered = false;
	return true;
}

static void retire_fn(struct work_struct *work)
{
	mutex_lock(&iaa_lock);
	/* Held without a user: for a self-test, or by one who is just leaving. */
	if (iaa_registered && list_empty(&iaa_wqs) && !retire() && !atomic_read(&iaa_users))
		mod_delayed_work(iaa_workqueue, &retire_work, msecs_to_jiffies(RETIRE_AGAIN_MS));
	mutex_unlock(&iaa_lock);
}

/**
 * iaa_algs_update() - register or unregister as WQs have come or gone
 *
 * The caller holds iaa_lock, and has published routes before.
 */
void iaa_algs_update(void)
{
	lockdep_assert_held(&iaa_lock);
	if (!list_empty(&iaa_wqs) && !iaa_registered)
		enlist();
	else if (list_empty(&iaa_wqs) && iaa_registered && !retire())
		mod_delayed_work(iaa_workqueue, &retire_work, msecs_to_jiffies(RETIRE_AGAIN_MS));
}

/** iaa_algs_init() - register what is there without a device */
int iaa_algs_init(void)
{
	int rc = crypto_register_acomp(&soft_alg);

	if (rc)
		pr_err("iaa_crypto: cannot register deflate-iaa-generic: %d\n", rc);
	return rc;
}

/** iaa_algs_exit() - unregister all; the module is not in use any more */
void iaa_algs_exit(void)
{
	cancel_delayed_work_sync(&retire_work);
	if (iaa_registered) {
		crypto_unregister_acomp(&iaa_alg);
		iaa_registered = false;
	}
	crypto_unregister_acomp(&soft_alg);
}
