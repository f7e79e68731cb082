// SPDX-License-Identifier: GPL-2.0
/*
 * The configuration of a WQ. idxd forgets most of it as it disables the WQ; size and
 * group stay. Kept and put back, a reset leaves the WQ as the administrator made it.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "iaa.h"

/**
 * iaa_config_save() - keep a WQ's configuration
 * @config: where; its name is to be freed
 * @wq: the WQ, enabled, so that nobody changes it
 *
 * Return: 0 or -ENOMEM.
 */
int iaa_config_save(struct iaa_config *config, struct idxd_wq *wq)
{
	config->name = kstrdup(idxd_wq_name(wq), GFP_KERNEL);
	if (!config->name)
		return -ENOMEM;
	config->flags = idxd_wq_flags(wq);
	config->threshold = idxd_wq_threshold(wq);
	config->priority = idxd_wq_priority(wq);
	config->enqcmds_retries = idxd_wq_enqcmds_retries(wq);
	config->max_xfer_bytes = idxd_wq_max_xfer_bytes(wq);
	config->max_batch_size = idxd_wq_max_batch_size(wq);
	if (idxd_wq_opcap_bmap(wq))
		bitmap_copy(config->opcap, idxd_wq_opcap_bmap(wq), IAA_OPCAP_BITS);
	return 0;
}

/**
 * iaa_config_restore() - give a WQ its configuration back
 * @config: what was kept of it
 * @wq: the WQ, disabled; the caller holds its lock
 */
void iaa_config_restore(const struct iaa_config *config, struct idxd_wq *wq)
{
	/* Both were there before, and fit. */
	memcpy(idxd_wq_name(wq), config->name, strlen(config->name) + 1);
	memcpy(idxd_wq_driver_name(wq), iaa_driver.name, strlen(iaa_driver.name) + 1);
	idxd_wq_set_type(wq, IDXD_WQT_KERNEL);
	idxd_wq_set_flags(wq, config->flags);
	idxd_wq_set_threshold(wq, config->threshold);
	idxd_wq_set_priority(wq, config->priority);
	idxd_wq_set_enqcmds_retries(wq, config->enqcmds_retries);
	idxd_wq_set_max_xfer_bytes(wq, config->max_xfer_bytes);
	idxd_wq_set_max_batch_size(wq, config->max_batch_size);
	if (idxd_wq_opcap_bmap(wq))
		bitmap_copy(idxd_wq_opcap_bmap(wq), config->opcap, IAA_OPCAP_BITS);
}
