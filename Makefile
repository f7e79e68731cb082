# SPDX-License-Identifier: GPL-2.0
# Every verb a person needs; `make` alone lists them. Each one does its own set-up: what is built
# and run is built and run inside a Debian 13 root that scripts/testbed/root makes and caches.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo check check-full unit sanitize fuzz bench compare lint harness modules install uninstall \
	test-modules root shell clean

ifeq ($(origin T)$(T),command line)
$(error T= names no test: leave it out for all of them)
endif

DRIVER ?= ours
KERNEL ?= 7.3
# The kernel that a module is built and installed for, as uname -r prints it.
KVER   ?= $(shell uname -r)
MINUTES ?= 1
WHAT   ?= all

IN_ROOT := scripts/testbed/in-root

help: ## this list
	@printf 'Usage: make VERB [VARIABLE=value]\n\n'
	@sed -nE 's/^([a-z][a-z-]*):[^#]*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS=$$'\t' read -r verb text; do printf '  %-13s %s\n' "$$verb" "$$text"; done
	@printf '\nREADME.md says what each needs and how long it takes.\n'

demo: ## the whole job on the device model: WQs, zswap, real pages (DRIVER=in-tree, KERNEL=6.12)
	@scripts/demo --driver $(DRIVER) --kernel $(KERNEL)

check: ## every test that fits in half an hour (T=vm/NAME, T=unit/NAME, T=lint: that one only)
	@scripts/check $(if $(T),--only '$(T)')

check-full: ## check, and the tests that take longer
	@scripts/check --full $(if $(T),--only '$(T)')

unit: ## unit tests of the harness and of the driver's pure parts
	@scripts/check --only unit

sanitize: ## the unit tests under ASan+UBSan and under TSan
	@scripts/check --only asan --only tsan

fuzz: ## the libFuzzer targets (MINUTES=1, for each of the codec's two and for all others together)
	@IAA_FUZZ_MINUTES=$(MINUTES) scripts/check --only fuzz

bench: ## the codec beside zlib and ISA-L; the driver's instructions beside the in-tree driver's (WHAT=codec or driver)
	@$(if $(filter all codec driver,$(WHAT)),,$(error WHAT=$(WHAT): codec, driver or all))
	@scripts/check --quiet --only build $(if $(filter codec,$(WHAT)),,--only modules)
	@$(if $(filter driver,$(WHAT)),,$(IN_ROOT) build/harness/deflate/bench_deflate)
	@$(if $(filter codec,$(WHAT)),,scripts/bench)

compare: ## the scenarios, in-tree beside ours on both kernels: a table of what each did (takes half an hour)
	@scripts/check --quiet --only build --only modules
	@tests/vm/run --compare

lint: ## clang-format, clang-tidy, checkpatch, sparse, shellcheck, licence lines
	@scripts/check --only lint

harness: ## build the C++ harness (build/harness)
	@scripts/check --only build

modules: ## build the driver for the running kernel (KVER=RELEASE: for that one)
	@scripts/build-modules '$(KVER)'

install: ## put the driver into that kernel's modules, where modprobe prefers it (KVER=RELEASE, DESTDIR=ROOT)
	@scripts/install-modules install '$(KVER)' '$(DESTDIR)'

uninstall: ## and take it out of there: modprobe finds the kernel's own again (KVER=RELEASE, DESTDIR=ROOT)
	@scripts/install-modules uninstall '$(KVER)' '$(DESTDIR)'

test-modules: ## build the driver, and what guest tests need, for the testbed's kernels
	@scripts/build-modules

root: ## make the Debian 13 root, and print where it is
	@scripts/testbed/root

shell: ## an interactive guest with one device (KERNEL=6.12 or 7.3, DRIVER=ours, in-tree or none)
	@scripts/check --quiet --only build --only modules
	@scripts/testbed/shell --kernel $(KERNEL) --driver $(DRIVER)

clean: ## remove what was built here (the cached root stays)
	@rm -rf build
