// SPDX-License-Identifier: GPL-2.0
#include "decode.h"

#define REX_B 0x1
#define REX_X 0x2
#define REX_R 0x4

#define RSP 4
#define RBP 5

/* What stands in front of the opcode. */
struct prefixes {
	bool operand_size;
	bool repne;
	bool repe;
	bool address_size;
	bool segment;
	u8 rex;
};

/* Return: the number of prefix bytes; false in *ok for a LOCK. */
static size_t read_prefixes(const u8 *code, size_t available, struct prefixes *p, bool *ok)
{
	size_t at;

	*ok = true;
	for (at = 0; at < available; at++) {
		u8 byte = code[at];

		if (byte >= 0x40 && byte <= 0x4f) {
			p->rex = byte;
			continue;
		}
		switch (byte) {
		case 0x66:
			p->operand_size = true;
			break;
		case 0x67:
			p->address_size = true;
			break;
		case 0xf2:
			p->repne = true;
			p->repe = false;
			break;
		case 0xf3:
			p->repe = true;
			p->repne = false;
			break;
		case 0x64:
		case 0x65:
			p->segment = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
			/* Without meaning in 64-bit mode. */
			break;
		case 0xf0:
			*ok = false;
			return at;
		default:
			return at;
		}
		/* A REX prefix counts only right in front of the opcode. */
		p->rex = 0;
	}
	return at;
}

static s32 read_disp32(const u8 *from)
{
	return (s32)((unsigned int)from[0] | (unsigned int)from[1] << 8 |
		     (unsigned int)from[2] << 16 | (unsigned int)from[3] << 24);
}

bool store64_decode(const u8 *code, size_t available, struct store64_insn *insn)
{
	struct prefixes p = { 0 };
	size_t at, disp_size;
	u8 modrm, mod, rm;
	bool ok;

	if (available > STORE64_MAX_LENGTH)
		available = STORE64_MAX_LENGTH;
	*insn = (struct store64_insn){ .base = STORE64_NO_REG, .index = STORE64_NO_REG };

	at = read_prefixes(code, available, &p, &ok);
	if (!ok || available < at + 4)
		return false;
	if (code[at] != 0x0f || code[at + 1] != 0x38 || code[at + 2] != 0xf8)
		return false;
	/* F2 and F3 come before 66 where both are there. */
	if (p.repe)
		insn->op = STORE64_ENQCMDS;
	else if (p.repne)
		insn->op = STORE64_ENQCMD;
	else if (p.operand_size)
		insn->op = STORE64_MOVDIR64B;
	else
		return false;
	insn->short_address = p.address_size;
	insn->segment = p.segment;

	modrm = code[at + 3];
	at += 4;
	mod = modrm >> 6;
	rm = modrm & 7;
	insn->dst_reg = ((modrm >> 3) & 7) | (p.rex & REX_R ? 8 : 0);
	if (mod == 3)
		return false;
	disp_size = mod == 1 ? 1 : mod == 2 ? 4 : 0;

	if (rm == RSP) {
		u8 sib, index, base;

		if (available < at + 1)
			return false;
		sib = code[at++];
		index = ((sib >> 3) & 7) | (p.rex & REX_X ? 8 : 0);
		base = sib & 7;
		insn->scale = sib >> 6;
		/* RSP as index means none; R12 is an index like any other. */
		if (index != RSP)
			insn->index = index;
		if (base == RBP && mod == 0)
			disp_size = 4;
		else
			insn->base = base | (p.rex & REX_B ? 8 : 0);
	} else if (rm == RBP && mod == 0) {
		insn->rip_relative = true;
		disp_size = 4;
	} else {
		insn->base = rm | (p.rex & REX_B ? 8 : 0);
	}

	if (available < at + disp_size)
		return false;
	if (disp_size == 1)
		insn->disp = (signed char)code[at];
	else if (disp_size == 4)
		insn->disp = read_disp32(code + at);
	insn->length = (u8)(at + disp_size);
	return true;
}

static u64 cut(const struct store64_insn *insn, u64 address)
{
	return insn->short_address ? (address & 0xffffffffULL) : address;
}

u64 store64_source(const struct store64_insn *insn, const u64 regs[16], u64 next_ip)
{
	u64 address = (u64)insn->disp;

	if (insn->rip_relative)
		address += next_ip;
	if (insn->base != STORE64_NO_REG)
		address += regs[insn->base];
	if (insn->index != STORE64_NO_REG)
		address += regs[insn->index] << insn->scale;
	return cut(insn, address);
}

u64 store64_destination(const struct store64_insn *insn, const u64 regs[16])
{
	return cut(insn, regs[insn->dst_reg]);
}
