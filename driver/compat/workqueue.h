/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between kernels in workqueues. */
#ifndef IAA_COMPAT_WORKQUEUE_H
#define IAA_COMPAT_WORKQUEUE_H

#include <linux/workqueue.h>

#include "probed.h"

/* Work runs on the CPU that it was queued on: the default, where nothing is to be said. */
#ifdef IAA_HAVE_WQ_PERCPU
#define IAA_WQ_PERCPU WQ_PERCPU
#else
#define IAA_WQ_PERCPU 0
#endif

#endif /* IAA_COMPAT_WORKQUEUE_H */
