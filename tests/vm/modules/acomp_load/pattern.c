// SPDX-License-Identifier: GPL-2.0
#include <linux/build_bug.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "pattern.h"

const char * const pattern_names[PATTERN_COUNT] = {
	[PATTERN_TEXT] = "text",
	[PATTERN_ZERO] = "zero",
	[PATTERN_RANDOM] = "random",
	[PATTERN_MIXED] = "mixed",
	[PATTERN_FAR] = "far",
	[PATTERN_PERIOD] = "period",
	[PATTERN_HIGH] = "high",
	[PATTERN_DATA] = "data",
};

static const char * const words[] = {
	"a", "of", "to", "in", "is", "on", "the", "and", "for", "with",
	"page", "swap", "node", "queue", "group", "table", "engine", "device",
	"stream", "window", "buffer", "memory", "length", "distance", "literal",
	"compress", "descriptor", "completion", "accumulator", "decompression",
	"0x0000", "0x1000", "4096", "\n", ";\n", "\t",
};

/**
 * pattern_below() - a random number
 * @rnd: generator
 * @limit: not zero
 *
 * Return: a number of 0 to @limit - 1.
 */
u32 pattern_below(struct rnd_state *rnd, u32 limit)
{
	return ((u64)prandom_u32_state(rnd) * limit) >> 32;
}

static void fill_text(u8 *buf, size_t len, struct rnd_state *rnd)
{
	size_t pos = 0;

	while (pos < len) {
		/* The smaller of two draws: early words are the common ones. */
		u32 a = pattern_below(rnd, ARRAY_SIZE(words));
		u32 b = pattern_below(rnd, ARRAY_SIZE(words));
		const char *word = words[min(a, b)];
		size_t n = min(strlen(word), len - pos);

		memcpy(buf + pos, word, n);
		pos += n;
		if (pos < len)
			buf[pos++] = ' ';
	}
}

static void fill_far(u8 *buf, size_t len, struct rnd_state *rnd)
{
	size_t pos = min_t(size_t, len, 2049 + pattern_below(rnd, 2048));
	size_t distance = pos;

	prandom_bytes_state(rnd, buf, pos);
	for (; pos < len; pos++)
		buf[pos] = buf[pos - distance];
}

static void fill_period(u8 *buf, size_t len, struct rnd_state *rnd)
{
	u8 group[3];
	size_t i;

	prandom_bytes_state(rnd, group, sizeof(group));
	for (i = 0; i < len; i++)
		buf[i] = group[i % sizeof(group)];
}

static void fill_high(u8 *buf, size_t len, struct rnd_state *rnd)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = 144 + pattern_below(rnd, 256 - 144);
}

static void fill_mixed(u8 *buf, size_t len, struct rnd_state *rnd)
{
	static const enum pattern kinds[] = {
		PATTERN_TEXT, PATTERN_TEXT, PATTERN_ZERO, PATTERN_RANDOM, PATTERN_PERIOD,
	};
	size_t pos = 0;

	while (pos < len) {
		size_t n = min_t(size_t, len - pos, 64 + pattern_below(rnd, 449));

		pattern_fill(kinds[pattern_below(rnd, ARRAY_SIZE(kinds))], buf + pos, n, rnd);
		pos += n;
	}
}

/**
 * pattern_fill() - fill a buffer
 * @kind: any but PATTERN_DATA, which the job itself takes from the slot's file
 * @buf: buffer
 * @len: its size in bytes
 * @rnd: generator; the same state gives the same bytes
 */
void pattern_fill(enum pattern kind, u8 *buf, size_t len, struct rnd_state *rnd)
{
	switch (kind) {
	case PATTERN_TEXT:
		fill_text(buf, len, rnd);
		break;
	case PATTERN_RANDOM:
		prandom_bytes_state(rnd, buf, len);
		break;
	case PATTERN_MIXED:
		fill_mixed(buf, len, rnd);
		break;
	case PATTERN_FAR:
		fill_far(buf, len, rnd);
		break;
	case PATTERN_PERIOD:
		fill_period(buf, len, rnd);
		break;
	case PATTERN_HIGH:
		fill_high(buf, len, rnd);
		break;
	default:
		memset(buf, 0, len);
		break;
	}
}
