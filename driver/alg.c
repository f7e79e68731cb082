// SPDX-License-Identifier: GPL-2.0
/*
 * The algorithms, there while a WQ is bound, and then as long as somebody holds one:
 * software serves where no WQ does. All are called
 * "deflate-iaa", after the streams that they have in common, and told apart by their
 * driver names. None of these may be the common name itself: the crypto core takes no
 * second algorithm then. "deflate-iaa-hw" has the highest priority, and is what users
 * who ask for "deflate-iaa" get. "deflate-iaa-generic" is the same in software, since
 * the core wants a synchronous algorithm of the same name beside an asynchronous one.
 */
#include <linux/workqueue.h>

#include "compat/crypto.h"
#include "iaa.h"

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
	bool may_sleep = req->base.flags & CRYPTO_TFM_REQ_MAY_SLEEP;
	int rc = iaa_request_check(req);

	return iaa_request_end(req, rc ? rc : iaa_soft_request(req, compress, may_sleep));
}

static int soft_compress(struct acomp_req *req)
{
	return soft_op(req, true);
}

static int soft_decompress(struct acomp_req *req)
{
	return soft_op(req, false);
}

/* In the order of registration: the core looks for the first when it tests the second. */
static struct acomp_alg algs[] = {
	{
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
	},
	{
		.compress = iaa_compress,
		.decompress = iaa_decompress,
		IAA_ACOMP_DST_FREE
		.base = {
			.cra_name = "deflate-iaa",
			.cra_driver_name = "deflate-iaa-hw",
			.cra_priority = 300,
			.cra_flags = CRYPTO_ALG_ASYNC,
			.cra_module = THIS_MODULE,
		},
	},
};

/* How often to look whether what nobody needs any more is still held, or to try again. */
#define AGAIN_MS 1000
/* Lookups pass over what is dying, and listings over larvals. */
#define RETIRED_FLAGS (CRYPTO_ALG_DYING | CRYPTO_ALG_LARVAL)
/* What registering and unregistering leave behind in an algorithm. */
#define REGISTERED_FLAGS (CRYPTO_ALG_TESTED | CRYPTO_ALG_DEAD | RETIRED_FLAGS)

static DEFINE_MUTEX(algs_lock);	/* guards n_registered */
static unsigned int n_registered;

static void update_fn(struct work_struct *work)
{
	iaa_algs_update();
}

static DECLARE_DEFERRABLE_WORK(update_work, update_fn);

static bool wanted(void)
{
	bool bound;

	mutex_lock(&iaa_lock);
	bound = !list_empty(&iaa_wqs);
	mutex_unlock(&iaa_lock);
	return bound;
}

static void register_all(void)
{
	struct crypto_alg *base;
	int rc;

	for (; n_registered < ARRAY_SIZE(algs); n_registered++) {
		base = &algs[n_registered].base;
		base->cra_flags &= ~REGISTERED_FLAGS;
		if (base->cra_flags & CRYPTO_ALG_ASYNC)
			iaa_acomp_set_reqsize(&algs[n_registered], sizeof(struct iaa_req_ctx));
		rc = crypto_register_acomp(&algs[n_registered]);
		if (rc) {
			pr_err_ratelimited("iaa_crypto: cannot register %s: %d\n",
					   base->cra_driver_name, rc);
			break;
		}
	}
}

/*
 * Nobody may take hold of an algorithm between the look at its references and its
 * unregistration, which must find none: from the look on, it is passed over.
 */
static bool retire(struct crypto_alg *base)
{
	bool idle;

	down_write(&crypto_alg_sem);
	idle = refcount_read(&base->cra_refcnt) == 1;
	if (idle)
		base->cra_flags |= RETIRED_FLAGS;
	up_write(&crypto_alg_sem);
	return idle;
}

static void unregister_idle(void)
{
	while (n_registered && retire(&algs[n_registered - 1].base))
		crypto_unregister_acomp(&algs[--n_registered]);
}

/**
 * iaa_algs_update() - register what is missing, or unregister what nobody needs
 *
 * The kernel tests what is registered from a thread of its own, which holds the module meanwhile.
 */
void iaa_algs_update(void)
{
	unsigned int want;

	mutex_lock(&algs_lock);
	want = wanted() ? ARRAY_SIZE(algs) : 0;
	if (want)
		register_all();
	else
		unregister_idle();
	if (n_registered != want)
		queue_delayed_work(iaa_admin_workqueue, &update_work, msecs_to_jiffies(AGAIN_MS));
	mutex_unlock(&algs_lock);
}

/** iaa_algs_exit() - unregister all; the module is not in use any more */
void iaa_algs_exit(void)
{
	cancel_delayed_work_sync(&update_work);
	while (n_registered)
		crypto_unregister_acomp(&algs[--n_registered]);
}
