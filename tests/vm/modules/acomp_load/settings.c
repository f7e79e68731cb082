// SPDX-License-Identifier: GPL-2.0
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/string.h>

#include "settings.h"

const char * const mode_names[MODE_COUNT] = {
	[MODE_ROUNDTRIP] = "roundtrip",
	[MODE_COMPRESS] = "compress",
	[MODE_DECOMPRESS] = "decompress",
	[MODE_STREAM] = "stream",
};

/* A word that is a number within limits. */
struct number {
	const char *name;
	size_t offset;
	unsigned int min, max;
};

#define NUMBER(word, field, lowest, highest) \
	{ .name = word, .offset = offsetof(struct settings, field), .min = lowest, .max = highest }

static const struct number numbers[] = {
	NUMBER("threads", threads, 1, LOAD_MAX_THREADS),
	NUMBER("count", count, 0, UINT_MAX),
	NUMBER("seconds", seconds, 0, 86400),
	NUMBER("room", room, 0, 2 * LOAD_MAX_BYTES),
	NUMBER("streams", streams, 1, 4096),
	NUMBER("pause_us", pause_us, 0, 60000000),
	NUMBER("stuck_ms", stuck_ms, 1, 3600000),
	NUMBER("guard", guard, 0, PAGE_SIZE),
	NUMBER("slen_lie", slen_lie, 0, PAGE_SIZE),
	NUMBER("dlen_lie", dlen_lie, 0, PAGE_SIZE),
	NUMBER("src_nents", src.nents, 1, 64),
	NUMBER("src_offset", src.offset, 0, PAGE_SIZE - 1),
	NUMBER("dst_nents", dst.nents, 1, 64),
	NUMBER("dst_offset", dst.offset, 0, PAGE_SIZE - 1),
};

static int parse_number(struct settings *set, const struct number *number, const char *value)
{
	unsigned int *field = (void *)set + number->offset;
	int err = kstrtouint(value, 0, field);

	if (!err && (*field < number->min || *field > number->max))
		err = -ERANGE;
	return err;
}

static int parse_size(struct settings *set, char *value)
{
	char *low = strsep(&value, "-");
	int err = kstrtouint(low, 0, &set->size_min);

	set->size_max = set->size_min;
	if (!err && value)
		err = kstrtouint(value, 0, &set->size_max);
	if (!err && (!set->size_min || set->size_min > set->size_max ||
		     set->size_max > LOAD_MAX_BYTES))
		err = -ERANGE;
	return err;
}

static int parse_name(char *field, const char *value)
{
	if (!*value)
		return -EINVAL;
	return strscpy(field, value, CRYPTO_MAX_ALG_NAME) < 0 ? -E2BIG : 0;
}

static int parse_choice(const char * const *names, size_t count, const char *value)
{
	return match_string(names, count, value);
}

static int parse_word(struct settings *set, const char *key, char *value)
{
	size_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(key, numbers[i].name))
			return parse_number(set, &numbers[i], value);

	if (!strcmp(key, "comp"))
		return parse_name(set->comp, value);
	if (!strcmp(key, "decomp"))
		return parse_name(set->decomp, value);
	if (!strcmp(key, "alg"))
		return parse_name(set->comp, value) ?: parse_name(set->decomp, value);
	if (!strcmp(key, "size"))
		return parse_size(set, value);
	if (!strcmp(key, "seed"))
		return kstrtou64(value, 0, &set->seed);
	if (!strcmp(key, "hold"))
		return kstrtobool(value, &set->hold);
	if (!strcmp(key, "sleep"))
		return kstrtobool(value, &set->manner.sleep);
	if (!strcmp(key, "atomic"))
		return kstrtobool(value, &set->manner.atomic);
	if (!strcmp(key, "no_dst"))
		return kstrtobool(value, &set->manner.no_dst);
	if (!strcmp(key, "virt")) {
		ret = parse_choice(address_names, ADDRESS_COUNT, value);
		if (ret >= 0)
			set->manner.address = ret;
		return min(ret, 0);
	}
	if (!strcmp(key, "src_uneven"))
		return kstrtobool(value, &set->src.uneven);
	if (!strcmp(key, "dst_uneven"))
		return kstrtobool(value, &set->dst.uneven);
	if (!strcmp(key, "cpus")) {
		set->pinned = true;
		ret = cpulist_parse(value, &set->cpus);
		return ret ?: cpumask_intersects(&set->cpus, cpu_online_mask) ? ret : -ENXIO;
	}
	if (!strcmp(key, "mode")) {
		ret = parse_choice(mode_names, MODE_COUNT, value);
		if (ret >= 0)
			set->mode = ret;
		return min(ret, 0);
	}
	if (!strcmp(key, "pattern")) {
		ret = parse_choice(pattern_names, PATTERN_COUNT, value);
		if (ret >= 0)
			set->pattern = ret;
		return min(ret, 0);
	}
	return -ENOENT;
}

/**
 * settings_parse() - read "word=value ..." into settings
 * @set: filled in, defaults first
 * @text: is taken apart
 * @error: says what is wrong, where something is
 * @error_size: room in @error
 *
 * Return: 0 or -EINVAL.
 */
int settings_parse(struct settings *set, char *text, char *error, size_t error_size)
{
	char *word;

	*set = (struct settings){
		.comp = "deflate-iaa",
		.decomp = "deflate-iaa",
		.threads = 1,
		.size_min = 4096,
		.size_max = 4096,
		.streams = 16,
		.stuck_ms = 10000,
		.guard = 64,
		.seed = 1,
		.src.nents = 1,
		.dst.nents = 1,
	};
	while ((word = strsep(&text, " \t\n"))) {
		char *value = word;
		char *key;
		int err;

		if (!*word)
			continue;
		key = strsep(&value, "=");
		err = value ? parse_word(set, key, value) : -EINVAL;
		if (err) {
			snprintf(error, error_size, "%s: %s (%d)", key,
				 err == -ENOENT ? "no such setting" :
				 value ? "value not possible" : "has no value", err);
			return -EINVAL;
		}
	}
	if (!set->count && !set->seconds) {
		strscpy(error, "give count=, seconds= or both, so that the job ends", error_size);
		return -EINVAL;
	}
	if (set->manner.sleep && set->manner.atomic) {
		strscpy(error, "sleep= and atomic= exclude each other", error_size);
		return -EINVAL;
	}
	if (set->manner.address && (set->src.nents > 1 || set->dst.nents > 1)) {
		strscpy(error, "virt= goes with one entry", error_size);
		return -EINVAL;
	}
	set->guard = max3(set->guard, set->slen_lie, set->dlen_lie);
	return 0;
}
