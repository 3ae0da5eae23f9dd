# SPDX-License-Identifier: Apache-2.0
# Front door of gpuwatch. Everything built lands under build/, programs in
# build/bin/; downloads are cached in $GPUWATCH_CACHE (~/.cache/gpuwatch).
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

KERNELS := 5.10 6.1 6.12 7.x
KERNEL ?= 6.1
SECONDS_PER_TARGET ?= 60
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
Q := $(if $(V),,@)

help: ## this list
	@sed -n 's/^\([a-z][a-z0-9-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

deps: ## install the Debian packages that building and testing need (root)
	$(Q).ci/deps

all: deps user ## user space programs and the recorder library

build/user/build.ninja: | deps
	$(Q)cmake -S userspace -B build/user -G Ninja >build/cmake.log || { cat build/cmake.log; exit 1; }

user: | build
	$(Q)$(MAKE) -s build/user/build.ninja
	$(Q)ninja -C build/user --quiet

build:
	$(Q)mkdir -p build/bin

kmod: deps ## gpuwatch.ko for the running kernel (KDIR=... for another)
	$(Q)$(MAKE) -C kmod $(if $(KDIR),KDIR=$(KDIR))

demo: deps ## the main job in a virtual machine: recorded CUDA calls in containers, live, and an alert
	$(Q)tests/vm/demo/run

demo-replay: all ## the same view from a recording: no virtual machine, no root
	$(Q)tests/demo-replay

check: all ## quick tests: unit, golden replay, ABI, command line, lint
	$(Q)tests/run quick

# Kernels come from the network while user space compiles; what fails there is tried again, and told, by its suite.
test: deps | build ## all tests, virtual machines with four kernels included
	$(Q)for kernel in $(KERNELS); do nice tests/vm/lab/fetch $$kernel; done >build/fetch.log 2>&1 &
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/run all

test-vm: all ## the kernel suite on one kernel: KERNEL=5.10|6.1|6.12|7.x
	$(Q)tests/vm/suite $(KERNEL)

test-debug: all ## the kernel suite on a 6.1 with KASAN, lockdep, kmemleak
	$(Q)tests/vm/suite debug-6.1

test-gpu: all ## the probe on a real GPU; skipped where there is none
	$(Q)tests/gpu/run

bench-gpu: all ## figures of the probe on a real GPU; none without one
	$(Q)tests/gpu/bench || [ $$? -eq 77 ]

bench: all ## speed of user space, with peers; writes build/bench/*.json
	$(Q)tests/bench/user/run
	$(Q)tests/bench/identify/run
	$(Q)tests/bench/sink/run
	$(Q)tests/bench/daemon/run

bench-kernel: all ## cost in guest instructions; writes build/bench/kernel.json
	$(Q)tests/bench/kernel/run $(KERNELS)

fuzz: all ## fuzz the parsers, SECONDS_PER_TARGET each
	$(Q)tests/fuzz/run $(SECONDS_PER_TARGET)

test-sanitize: deps ## gpuwatchd and its unit tests under the address and thread sanitizers
	$(Q)tests/sanitize/run address
	$(Q)tests/sanitize/run thread

style: deps ## licence lines, formatting, checkpatch, sparse
	$(Q)tests/lint/style

tidy: all ## clang-tidy over user space (minutes)
	$(Q)git ls-files 'userspace/*.cpp' | xargs -P2 -n4 clang-tidy -p build/user --quiet

dkms-check: deps ## the real dkms, in an isolated tree, on several kernels
	$(Q)tests/vm/lab/dkms-check

dkms-install: ## copy the module's source to /usr/src and let dkms build it (root)
	$(Q)kmod/dkms-sources /usr/src/gpuwatch-$(VERSION)
	$(Q)dkms add gpuwatch/$(VERSION)
	$(Q)dkms install gpuwatch/$(VERSION)

install: all ## program, recorder, manual under PREFIX (/usr/local)
	$(Q)cmake --install build/user --prefix $(or $(PREFIX),/usr/local)

regen: all ## rewrite generated files that are checked in
	$(Q)tests/abi/regen

clean: ## remove build/
	$(Q)rm -rf build

.PHONY: help deps all user kmod demo demo-replay check test test-vm test-debug test-gpu test-sanitize bench \
	bench-gpu bench-kernel fuzz style tidy dkms-check dkms-install install regen clean
