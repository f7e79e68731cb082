// SPDX-License-Identifier: GPL-2.0
/* Fixed mode: one final block with the code tables that RFC 1951 3.2.6 fixes. */
#include "modes.h"

/* BFINAL, then BTYPE 01, lowest bit first. */
#define HEADER		0x03
#define HEADER_BITS	3

static void fill_fixed(struct iaa_aecs_comp *aecs)
{
	u32 i;

	aecs->accum[0] = HEADER;
	aecs->accum_bits = HEADER_BITS;
	for (i = 0; i < 144; i++)
		aecs->ll_codes[i] = iaa_code_entry(8, 0x30 + i);
	for (; i < 256; i++)
		aecs->ll_codes[i] = iaa_code_entry(9, 0x190 + i - 144);
	for (; i < 280; i++)
		aecs->ll_codes[i] = iaa_code_entry(7, i - 256);
	for (; i < IAA_LL_SYMBOLS; i++)
		aecs->ll_codes[i] = iaa_code_entry(8, 0xc0 + i - 280);
	for (i = 0; i < IAA_D_SYMBOLS; i++)
		aecs->d_codes[i] = iaa_code_entry(5, i);
}

const struct iaa_mode iaa_mode_fixed = {
	.name = "fixed",
	.fill = fill_fixed,
};
