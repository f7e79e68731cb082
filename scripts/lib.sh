# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What scripts share, on the host and in the root. Source it from the top of the checkout.

# Bold where a person is reading, nothing where a file is.
if [[ -t 2 ]]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

say() { printf '%s%s%s\n' "$bold" "$*" "$plain" >&2; }

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# check_release TEXT: names of files are made of it.
check_release() {
	[[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9.+~_-]*$ ]] || die "'$1' is not a kernel release (uname -r)"
}

# duration SECONDS: as a person says it.
duration() {
	if (($1 >= 60)); then printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); else printf '%d s' "$1"; fi
}

# progress: of its input's lines `[N/M] WHAT` passes one on every 10 seconds and the last, to show that
# it moves; all others at once.
progress() {
	local line held='' next=$((SECONDS + 10))
	while IFS= read -r line || [[ $line ]]; do
		if [[ $line != \[+([0-9])/+([0-9])\]\ * ]]; then
			# What a step says stands below its name.
			[[ ! $held ]] || printf '%s\n' "$held"
			printf '%s\n' "$line"
			held=''
		elif ((SECONDS >= next)); then
			next=$((SECONDS + 10))
			printf '%s\n' "$line"
			held=''
		else
			held=$line
		fi
	done
	[[ ! $held ]] || printf '%s\n' "$held"
}
