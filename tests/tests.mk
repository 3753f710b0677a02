# SPDX-License-Identifier: Apache-2.0
# Tests. check.sh runs the parts and counts; every part is a target of its own,
# check-PART, that builds what it needs. FULL=1 is a part as check-full runs it.
#
# Unit tests: every tests/unit/check_<module>.c provides Suite *<module>_suite(void).
UNIT_SRCS  := $(sort $(wildcard tests/unit/check_*.c))
UNIT_OBJS  := $(UNIT_SRCS:%.c=$(BUILD)/obj/%.o) $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/lib/*.c))
UNIT_NAMES := $(UNIT_SRCS:tests/unit/check_%.c=%)
UNIT_LIST  := $(BUILD)/gen/suites.inc

# How many CPUs a part may keep busy; check.sh gives one to those that it runs side by side.
CHECK_CPUS ?= $(shell nproc)

.PHONY: check check-full check-now check-build check-runner check-page check-unit check-ring check-cross check-golden golden-accept \
	check-e2e check-e2e-send check-e2e-hub check-e2e-perf check-packages check-guest check-system check-lint bench bench-base lint setup-check setup-full setup-bench programs unit sanitized

check: $(if $(FULL),setup-full,setup-check)
	@$(MAKE) --no-print-directory BUILD=$(BUILD) check-now FULL=$(FULL)
check-full:
	@$(MAKE) --no-print-directory BUILD=$(BUILD) check FULL=1
check-now:
	@BUILD=$(BUILD) MAKE="$(MAKE)" CHECK_PARTS="$(CHECK_PARTS)" tests/check.sh $(if $(FULL),full)
setup-check setup-full setup-bench:
	@tests/setup.sh $(@:setup-%=%)

# What the parts of this run need, built once, by all CPUs: then each finds it made.
needs = $(or $(filter $(1),$(CHECK_PARTS)),$(if $(strip $(CHECK_PARTS)),,all))
check-build:
	@$(MAKE) --no-print-directory -j$(CHECK_CPUS) BUILD=$(BUILD) all programs tools $(BUILD)/bench_replay $(BUILD)/probe \
		$(BUILD)/kmod_stress && echo "ok - the programs build, and what tests them"
	@$(if $(call needs,unit),$(MAKE) --no-print-directory BUILD=$(BUILD) sanitized && echo "ok - unit tests build under the sanitizers")
	@$(if $(call needs,fuzz),$(MAKE) --no-print-directory BUILD=$(BUILD) fuzz-build && echo "ok - fuzz targets build")

# The runner itself, with parts that are made up.
check-runner:
	@tests/runner/run.sh
check-lint: lint

# The page: its pure parts. In a browser it is tested end to end, by tests/e2e/hub_page.py.
check-page:
	@BUILD=$(BUILD) tests/page/run.sh

# Looked at every time, rewritten only when the list of suites changes.
.PHONY: always
$(UNIT_LIST): always
	@mkdir -p $(@D)
	@printf 'X(%s)\n' $(UNIT_NAMES) > $@.tmp
	@cmp -s $@.tmp $@ && rm $@.tmp || mv $@.tmp $@
$(BUILD)/obj/tests/unit/main.o: $(UNIT_LIST)

$(BUILD)/unit: $(BUILD)/obj/tests/unit/main.o $(UNIT_OBJS) $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(shell pkg-config --libs check libnghttp2) $(LIBS)
unit: $(BUILD)/unit

# Under the sanitizers, without fork: a leak or an overflow ends the run, loudly.
SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined
sanitized:
	@$(MAKE) --no-print-directory -j$(CHECK_CPUS) BUILD=$(BUILD)/asan OPT="-O1 -g -fno-omit-frame-pointer" \
		SANITIZE="$(SAN)" unit
check-unit: sanitized
	@CK_FORK=no ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 tests/unit/run.sh $(BUILD)/asan/unit \
		$(or $(SUITES),$(UNIT_NAMES))

# The module's ring, built in userspace; with the model checker, which takes minutes.
check-ring:
	@BUILD=$(BUILD) tests/kmod/run.sh $(if $(FULL),model)

check-cross: all
	@BUILD=$(BUILD) CLANG=$(CLANG) tests/cross.sh

check-golden: all
	@BUILD=$(BUILD) python3 -B tests/golden/run.py
golden-accept: all
	@BUILD=$(BUILD) python3 -B tests/golden/run.py --accept

# E2E="record perf:ledger" chooses scripts, and a source for them.
check-e2e: all programs tools $(BUILD)/bench_replay
	@BUILD=$(BUILD) tests/e2e/run.sh $(if $(FULL),full) $(or $(E2E),+host)
check-e2e-send check-e2e-hub check-e2e-perf: check-e2e-%: all programs tools $(BUILD)/bench_replay
	@BUILD=$(BUILD) tests/e2e/run.sh $(if $(FULL),full) +$*

check-packages: all
	@BUILD=$(BUILD) tests/packages/run.sh

# Whole Debian systems with the packages, beside each other: a quarter of an hour, and the images once.
check-system: all $(BUILD)/programs/shares $(BUILD)/programs/shares-static
	@BUILD=$(BUILD) tests/guest/system.sh

bench: setup-bench
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=$(BUILD) all programs $(BUILD)/bench_replay $(BUILD)/bench_hub $(BUILD)/bench_spool $(BUILD)/bench_wire
	@$(if $(BASE),$(MAKE) --no-print-directory BUILD=$(BUILD) BASE=$(BASE) bench-base)
	@BUILD=$(BUILD) $(if $(BASE),BASE=$(BUILD)/base/build) python3 -B tests/bench/bench.py $(BENCH)
# The programs of another commit, to be measured beside these: BASE=REF, the last release by its tag.
bench-base:
	@rm -rf $(BUILD)/base && mkdir -p $(BUILD)/base && git archive $(BASE) | tar -x -C $(BUILD)/base
	@$(MAKE) --no-print-directory -C $(BUILD)/base -j$(shell nproc) BUILD=build all programs build/bench_replay build/bench_spool
$(BUILD)/bench_hub: $(BUILD)/obj/tests/bench/hub.o $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)
$(BUILD)/bench_spool: $(BUILD)/obj/tests/bench/spool.o $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)
$(BUILD)/bench_wire: $(BUILD)/obj/tests/bench/wire.o $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)
$(BUILD)/bench_replay: $(BUILD)/obj/tests/bench/replay.o $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)

lint:
	@BUILD=$(BUILD) MAKE="$(MAKE)" tests/lint.sh

include tests/programs/programs.mk
include tests/fuzz/fuzz.mk
include tests/tools/tools.mk
include tests/guest/guest.mk
