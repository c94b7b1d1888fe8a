# `make` lists the targets.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

TS_SOURCES := $(shell find app/server app/web scripts -type f \( -name '*.ts' -o -name '*.tsx' -o -name '*.css' -o -name '*.html' -o -name '*.svg' \))
C_SOURCES := $(shell find app/media -type f \( -name '*.c' -o -name '*.h' -o -name 'meson*' \))
SHELL_SCRIPTS := $(shell grep -rlE '^\#!/bin/(ba)?sh' scripts .ci)
ARCH ?= x64
SEA := dist/camera-server-$(ARCH)$(if $(NODE),-node$(NODE))
TARGET_SCRIPTS := $(shell find overlay -path '*/usr/lib/camera/*' -type f)
TAP := npx tap --disable-coverage --allow-incomplete-coverage
tests = $(shell find test/$(1) -name '*.test.ts')

.PHONY: help install run build sea image image-config image-menuconfig check-image test-buildroot image-reference run-image keys bundle test lint bench bench-http bench-load bench-catalogue clean test-install test-unit test-integration test-c test-media test-crash test-crash-full test-stress test-web test-leak test-sea test-image test-image-full test-overlay

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1|\2/' | column -t -s '|'

run: install build ## install what is missing, build, start the server (ARGS="--http-port 9000" passes options)
	@scripts/run.sh $(ARGS)

install: ## install the packages that building and running need (apt, npm)
	@scripts/install.sh build

build: dist/camera-media dist/camera-server ## build dist/camera-server and dist/camera-media

dist/camera-server: $(TS_SOURCES) package-lock.json | install
	@npx tsx scripts/bundle.ts
	@touch $@

dist/camera-media: $(C_SOURCES) | install
	@[ -d build/media ] || meson setup --buildtype=release build/media app/media >/dev/null
	@ninja --quiet -C build/media
	@mkdir -p dist
	@cp build/media/camera-media $@.new && mv $@.new $@

sea: $(SEA) ## build dist/camera-server-ARCH, the server as one executable (ARCH=x64|arm64; NODE=20.20.2 for an old C library)

$(SEA): $(TS_SOURCES) LICENSE scripts/linked-licences.txt package-lock.json
	@scripts/install.sh image
	@npx tsx scripts/sea.ts $(ARCH) $(NODE)

image-reference: sea dist/camera-media ## the firmware for x86-64 out of Debian packages: disk, update bundle (VERSION, CHANNEL, KEYS)
	@scripts/install.sh image
	@scripts/image/reference.sh

run-image: ## boot the reference image in QEMU, its ports on loopback (ARGS="--fresh --size 8G")
	@npx tsx scripts/image/run.ts $(ARGS)

keys: ## development keys for update bundles in build/keys
	@scripts/image/keys.sh build/keys

bundle: ## a signed update bundle of a root file system (ARGS="--root TREE --version V --out FILE")
	@scripts/image/bundle.sh $(ARGS)

image: board-named ## the firmware of a board with Buildroot (BOARD=…; BUILDROOT_DIR, VERSION, CHANNEL=release, KEYS, SIGNING_KEY, BR2_DL_DIR)
	@$(MAKE) --no-print-directory sea ARCH=$(shell sed -n 's/^SEA_ARCH=//p' board/$(BOARD)/board.env 2>/dev/null)
	@[ "$(CHANNEL)" = release ] || [ -n "$(KEYS)" ] || $(MAKE) --no-print-directory keys
	@scripts/install.sh buildroot
	@scripts/buildroot/build.sh image $(BOARD)

image-config: board-named ## Buildroot's configuration of a board (BOARD=…; BUILDROOT_DIR)
	@scripts/install.sh buildroot
	@scripts/buildroot/build.sh config $(BOARD)

image-menuconfig: board-named ## change Buildroot's configuration of a board and keep it (BOARD=…; BUILDROOT_DIR)
	@scripts/install.sh buildroot
	@scripts/buildroot/build.sh menuconfig $(BOARD)

.PHONY: board-named
board-named:
	@[ -f "board/$(BOARD)/board.env" ] || { echo "BOARD is one of: $(patsubst board/%/board.env,%,$(wildcard board/*/board.env))" >&2; exit 2; }

check-image: ## all of the firmware that can be checked without building it (BUILDROOT_DIR: the configurations as well)
	@scripts/install.sh check-image
	@scripts/buildroot/check.sh

test-buildroot: ## the image scripts with a small system: disk, bundle, refusals
	@scripts/install.sh check-image
	$(TAP) --jobs=1 $(call tests,buildroot)

test: test-install build lint test-unit test-overlay test-integration test-stress test-c test-media test-crash test-web test-leak test-sea check-image test-buildroot ## everything that must hold

test-install:
	@scripts/install.sh test

test-unit: ## pure logic
	$(TAP) test/unit/all.ts

test-overlay: ## the firmware's scripts under dash and busybox, its units and its firewall
	$(TAP) $(call tests,overlay)

test-integration: build ## the server through its interfaces, with the real helper
	$(TAP) $(wildcard test/integration/all/*.ts) $(call tests,integration/api)

# In a network of its own, with the setting that the image has: Linux hands connections that wait at a closed listener to the one beside it.
test-stress: build ## abuse, races and certificate swaps under load (as root)
	unshare --net sh -c 'ip link set lo up && echo 1 >/proc/sys/net/ipv4/tcp_migrate_req && $(TAP) --jobs=1 $(call tests,stress)'

test-c: ## the helper's own tests, under AddressSanitizer
	@[ -d build/media-asan ] || meson setup -Db_sanitize=address,undefined -Db_lundef=false build/media-asan app/media >/dev/null
	@ninja --quiet -C build/media-asan
	@meson test -C build/media-asan --print-errorlogs

test-media: build ## frames, latency, crashes and full disks, with real RTSP clients
	$(TAP) --jobs=1 $(call tests,media)

test-crash: build ## kill -9 in the middle of what writes: old or new, never half
	$(TAP) --jobs=1 --timeout=900 $(call tests,crash)

test-crash-full: build ## the same with 200 kills of recordings, about half an hour
	CRASH_ROUNDS=200 $(TAP) --jobs=1 --timeout=3600 test/crash/recordings.test.ts

test-web: build ## the console in Chromium
	$(TAP) --jobs=1 $(call tests,web)

# Two machines at a time; each takes a core and a half at most. tap runs them by their names: the longest comes first.
IMAGE_TAP = $(TAP) --jobs=2 --before=test/image/support/prepare.ts
IMAGE_FULL_ONLY = $(addprefix test/image/power-cut/,idle.test.ts factory-reset.test.ts)
IMAGE_TESTS = $(filter-out $(IMAGE_FULL_ONLY),$(call tests,image))

test-image: image-reference ## the firmware in QEMU: start, update, fall-back, power cuts, factory reset (as root; 20 minutes on two cores without KVM)
	@rm -f build/image/test/figures.txt
	$(IMAGE_TAP) --timeout=2400 $(IMAGE_TESTS)
	@cat build/image/test/figures.txt

test-image-full: image-reference ## the same with every kind of broken update and 50 power cuts, a few hours
	@rm -f build/image/test/figures.txt
	IMAGE_FULL=1 $(IMAGE_TAP) --timeout=20000 $(IMAGE_TESTS) $(IMAGE_FULL_ONLY)
	@cat build/image/test/figures.txt

test-leak: build ## descriptors, threads and memory after many sessions
	$(TAP) --jobs=1 $(call tests,leak)

test-sea: build ## the single executables: x64, and arm64 under emulation
	@$(MAKE) --no-print-directory sea ARCH=x64 NODE=20.20.2
	@$(MAKE) --no-print-directory sea ARCH=x64
	@$(MAKE) --no-print-directory sea ARCH=arm64
	$(TAP) --jobs=1 --timeout=600 $(call tests,sea)

bench: build ## CPU time per unit, compared within the run
	npx tsx test/bench/run.ts
	npx tsx test/bench/recording.ts

bench-http: build ## CPU per request against Fastify and Express, Basic credentials, logins
	npx tsx test/bench/http.ts

bench-load: build ## 50 clients asking all kinds of things at once: p50 and p99 by kind
	npx tsx test/bench/load.ts

bench-catalogue: | install ## the catalogue with a million entries: start-up, lists, changes, memory
	npx tsx test/bench/catalogue.ts

bench-files: build ## upload and download of 2 GiB against nginx, CPU and memory
	@scripts/install.sh bench
	npx tsx test/bench/files.ts

lint: ## types, lint and format of everything
	npx tsc -p .
	npx biome check --error-on-warnings .
	clang-format --dry-run --Werror $(filter %.c %.h,$(C_SOURCES))
	shellcheck $(SHELL_SCRIPTS) board/common/initrd/init
	cd overlay/common/usr/lib/camera && shellcheck -s sh -x $(patsubst overlay/common/usr/lib/camera/%,%,$(TARGET_SCRIPTS))

clean: ## remove what was built (not the data)
	rm -rf build dist
