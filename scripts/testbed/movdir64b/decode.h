/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decoding of the instructions that store 64 bytes at once. Free of kernel
 * calls, so that the unit tests compile the same file.
 */
#ifndef TESTBED_MOVDIR64B_DECODE_H
#define TESTBED_MOVDIR64B_DECODE_H

#include <linux/types.h>
#ifndef __KERNEL__
#include <stdbool.h>
#include <stddef.h>
typedef __u8 u8;
typedef __s32 s32;
typedef __u64 u64;
#endif

/* No x86 instruction is longer. */
#define STORE64_MAX_LENGTH 15
/* Number of a register that the address does not use. */
#define STORE64_NO_REG 0xff

enum store64_op {
	STORE64_MOVDIR64B,
	STORE64_ENQCMD,
	STORE64_ENQCMDS,
};

/**
 * struct store64_insn - a decoded 64-byte store
 * @op: which instruction it is
 * @length: of the instruction in bytes
 * @dst_reg: number of the register that holds the destination's address
 * @base: register that the source's address starts from, or STORE64_NO_REG
 * @index: register that is scaled and added, or STORE64_NO_REG
 * @scale: shift of @index
 * @disp: displacement
 * @rip_relative: the source's address starts from the next instruction
 * @short_address: addresses have 32 bits
 * @segment: the source has an FS or GS override
 *
 * Register numbers are those of the instruction set: 0 is RAX, 4 RSP, 15 R15.
 */
struct store64_insn {
	enum store64_op op;
	u8 length;
	u8 dst_reg;
	u8 base;
	u8 index;
	u8 scale;
	s32 disp;
	bool rip_relative;
	bool short_address;
	bool segment;
};

/**
 * store64_decode - decode an instruction in 64-bit mode
 * @code: its bytes
 * @available: how many of them there are
 * @insn: receives what it is
 *
 * Return: true if it is one of enum store64_op in a form that the processor
 * accepts, which rules out register operands and LOCK.
 */
bool store64_decode(const u8 *code, size_t available, struct store64_insn *insn);

/**
 * store64_source - address that the instruction reads from
 * @insn: the instruction
 * @regs: the 16 general registers in the order of their numbers
 * @next_ip: address of the instruction behind it
 *
 * Return: the address, without a segment's base.
 */
u64 store64_source(const struct store64_insn *insn, const u64 regs[16], u64 next_ip);

/**
 * store64_destination - address that the instruction stores to
 * @insn: the instruction
 * @regs: the 16 general registers in the order of their numbers
 *
 * Return: the address, whose low 6 bits the processor wants to be clear.
 */
u64 store64_destination(const struct store64_insn *insn, const u64 regs[16]);

#endif
