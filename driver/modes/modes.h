/* SPDX-License-Identifier: GPL-2.0 */
/* Compression modes: a name, and the tables that the device compresses with. */
#ifndef IAA_MODES_H
#define IAA_MODES_H

#include "../hw.h"

/**
 * struct iaa_mode - one way to compress
 * @name: as in the attribute compression_mode
 * @fill: writes the mode's tables and block header; @aecs comes zeroed
 */
struct iaa_mode {
	const char *name;
	void (*fill)(struct iaa_aecs_comp *aecs);
};

extern const struct iaa_mode iaa_mode_fixed;

#endif /* IAA_MODES_H */
