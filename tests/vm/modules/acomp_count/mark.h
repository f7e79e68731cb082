/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Instructions that do nothing, by which the counter beside QEMU's emulated CPU
 * (tests/bench/counter) knows where it is: a NOP whose displacement nobody else uses.
 */
#ifndef ACOMP_COUNT_MARK_H
#define ACOMP_COUNT_MARK_H

#include <linux/compiler.h>

enum mark {
	MARK_CASE,	/* a case begins */
	MARK_BEGIN,	/* one of its operations begins */
	MARK_END,	/* the operation has ended */
	MARK_CASE_END,	/* the case has */
};

/* nopl 0x414149NN(%rax) */
static __always_inline void set_mark(const enum mark mark)
{
	asm volatile(".byte 0x0f, 0x1f, 0x80, %c0, 0x49, 0x41, 0x41" : : "i" (mark) : "memory");
}

#endif
