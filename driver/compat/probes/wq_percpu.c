// SPDX-License-Identifier: GPL-2.0
/* A workqueue that runs work where it was queued has to say so. */
#include <linux/workqueue.h>

unsigned int probe(void);

unsigned int probe(void)
{
	return WQ_PERCPU;
}
