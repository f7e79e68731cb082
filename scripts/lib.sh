# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What the host-side scripts share. Source it from the top of the checkout.

# Bold where a person is reading, nothing where a file is.
if [[ -t 2 ]]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

say() { printf '%s%s%s\n' "$bold" "$*" "$plain" >&2; }

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# duration SECONDS: as a person says it.
duration() {
	if (($1 >= 60)); then printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); else printf '%d s' "$1"; fi
}
