// SPDX-License-Identifier: GPL-2.0
/*
 * The algorithms, there from the first bound WQ until the module goes: software serves
 * where no WQ does, and whoever holds an algorithm holds the module. All are called
 * "deflate-iaa", after the streams that they have in common, and told apart by their
 * driver names. None of these may be the common name itself: the crypto core takes no
 * second algorithm then. "deflate-iaa-hw" has the highest priority, and is what users
 * who ask for "deflate-iaa" get. "deflate-iaa-generic" is the same in software, since
 * the core wants a synchronous algorithm of the same name beside an asynchronous one.
 */
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
	int rc = iaa_request_check(req);

	return iaa_request_end(req, rc ? rc : iaa_soft_request(req, compress));
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

static DEFINE_MUTEX(algs_lock);	/* guards n_registered */
static unsigned int n_registered;

/**
 * iaa_algs_register() - register what is not registered yet
 *
 * Takes as long as the self-tests. These may wait for the health of a WQ: the caller
 * holds no lock that health takes.
 */
void iaa_algs_register(void)
{
	int rc;

	mutex_lock(&algs_lock);
	for (; n_registered < ARRAY_SIZE(algs); n_registered++) {
		rc = crypto_register_acomp(&algs[n_registered]);
		if (rc) {
			pr_err("iaa_crypto: cannot register %s: %d\n",
			       algs[n_registered].base.cra_driver_name, rc);
			break;
		}
	}
	mutex_unlock(&algs_lock);
}

/** iaa_algs_exit() - unregister all; the module is not in use any more */
void iaa_algs_exit(void)
{
	crypto_unregister_acomps(algs, n_registered);
}
