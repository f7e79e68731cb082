/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files without kernel calls need to compile in the kernel and, for
 * their unit tests, on the host.
 */
#ifndef IAA_PURE_H
#define IAA_PURE_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/types.h>
#include <uapi/linux/idxd.h>
#else
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/types.h>
#include <linux/idxd.h>
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
#endif

#endif /* IAA_PURE_H */
