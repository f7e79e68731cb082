// SPDX-License-Identifier: GPL-2.0
/*
 * The algorithms, there while there are WQs, and longer while somebody holds them.
 * All are called "deflate-iaa", after the streams that they have in common, and
 * told apart by their driver names. None of these may be the common name itself:
 * the crypto core takes no second algorithm then. "deflate-iaa-hw" has the highest
 * priority, and is what users who ask for "deflate-iaa" get. "deflate-iaa-generic"
 * is the same in software, since the core wants a synchronous algorithm of the
 * same name beside an asynchronous one.
 */
#include <linux/atomic.h>
#include <linux/refcount.h>

#include "iaa.h"

#define RETIRE_AGAIN_MS 200

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

/**
 * struct iaa_entry - an algorithm that comes and goes
 * @template: what it is registered as
 * @alg: what is registered; a registration leaves its marks in it, so that each
 *	begins with the template
 * @registered: it is
 */
struct iaa_entry {
	const struct acomp_alg template;
	struct acomp_alg alg;
	bool registered;
};

/* In the order of registration: the core looks for the second when it tests the first. */
static struct iaa_entry entries[] = {
	{
		.template = {
			.compress = soft_compress,
			.decompress = soft_decompress,
			.init = iaa_tfm_init,
			.exit = iaa_tfm_exit,
			IAA_ACOMP_DST_FREE
			.base = {
				.cra_name = "deflate-iaa",
				.cra_driver_name = "deflate-iaa-generic",
				.cra_priority = 100,
				.cra_flags = IAA_ACOMP_TAKES_VIRT,
				.cra_module = THIS_MODULE,
			},
		},
	},
	{
		.template = {
			.compress = iaa_compress,
			.decompress = iaa_decompress,
			.init = iaa_tfm_init,
			.exit = iaa_tfm_exit,
			IAA_ACOMP_DST_FREE
			.base = {
				.cra_name = "deflate-iaa",
				.cra_driver_name = "deflate-iaa-hw",
				.cra_priority = 300,
				.cra_flags = CRYPTO_ALG_ASYNC,
				.cra_module = THIS_MODULE,
			},
		},
	},
};

static bool all_registered(void)
{
	return entries[ARRAY_SIZE(entries) - 1].registered;
}

static bool any_registered(void)
{
	return entries[0].registered;
}

static void enlist(void)
{
	struct iaa_entry *entry;
	int rc;

	for (entry = entries; entry < entries + ARRAY_SIZE(entries); entry++) {
		if (entry->registered)
			continue;
		entry->alg = entry->template;
		rc = crypto_register_acomp(&entry->alg);
		if (rc) {
			pr_err("iaa_crypto: cannot register %s: %d\n",
			       entry->template.base.cra_driver_name, rc);
			return;
		}
		entry->registered = true;
	}
}

/*
 * Takes an algorithm away if nobody holds it. The core only warns where somebody
 * does, so it is first hidden from all who look for one, under the lock that they
 * look under.
 */
static bool retire_one(struct iaa_entry *entry)
{
	bool idle;

	if (!entry->registered)
		return true;
	down_write(&crypto_alg_sem);
	idle = refcount_read(&entry->alg.base.cra_refcnt) == 1;
	if (idle)
		entry->alg.base.cra_flags |= CRYPTO_ALG_DYING;
	up_write(&crypto_alg_sem);
	if (!idle)
		return false;
	crypto_unregister_acomp(&entry->alg);
	entry->registered = false;
	return true;
}

/* From the last on: users of the second hold the first. */
static bool retire(void)
{
	int i;

	for (i = ARRAY_SIZE(entries) - 1; i >= 0; i--)
		if (!retire_one(&entries[i]))
			return false;
	return true;
}

static void retire_fn(struct work_struct *work)
{
	mutex_lock(&iaa_lock);
	/* Held without a user: for a self-test, or by one who is just leaving. */
	if (any_registered() && list_empty(&iaa_wqs) && !retire() && !atomic_read(&iaa_users))
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
	if (!list_empty(&iaa_wqs)) {
		if (!all_registered())
			enlist();
	} else if (any_registered() && !retire()) {
		mod_delayed_work(iaa_workqueue, &retire_work, msecs_to_jiffies(RETIRE_AGAIN_MS));
	}
}

/** iaa_algs_exit() - unregister all; the module is not in use any more */
void iaa_algs_exit(void)
{
	int i;

	cancel_delayed_work_sync(&retire_work);
	for (i = ARRAY_SIZE(entries) - 1; i >= 0; i--)
		if (entries[i].registered)
			crypto_unregister_acomp(&entries[i].alg);
}
