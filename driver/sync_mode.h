/* SPDX-License-Identifier: GPL-2.0 */
/* How requests are completed. */
#ifndef IAA_SYNC_MODE_H
#define IAA_SYNC_MODE_H

/**
 * enum iaa_sync_mode - who looks for the end of an operation
 * @IAA_SYNC: the caller, which polls
 * @IAA_ASYNC: the driver, which polls in the background
 * @IAA_ASYNC_IRQ: nobody, an interrupt tells
 * @IAA_SYNC_MODES: number of modes
 */
enum iaa_sync_mode {
	IAA_SYNC,
	IAA_ASYNC,
	IAA_ASYNC_IRQ,
	IAA_SYNC_MODES,
};

#endif /* IAA_SYNC_MODE_H */
