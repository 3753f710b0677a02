# SPDX-License-Identifier: Apache-2.0
# Tests. check.sh runs the parts in order, counts, and prints one totals line;
# every part is a target of its own too.
#
# Unit tests: every tests/unit/check_<module>.c provides Suite *<module>_suite(void).
UNIT_SRCS  := $(sort $(wildcard tests/unit/check_*.c))
UNIT_OBJS  := $(UNIT_SRCS:%.c=$(BUILD)/obj/%.o) $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/lib/*.c))
UNIT_NAMES := $(UNIT_SRCS:tests/unit/check_%.c=%)
UNIT_LIST  := $(BUILD)/gen/suites.inc

.PHONY: check check-now check-unit check-ring check-cross check-golden golden-accept check-e2e check-packages check-guest bench lint \
	setup-check setup-bench programs unit sanitized

check: setup-check
	@$(MAKE) --no-print-directory BUILD=$(BUILD) check-now
check-now:
	@BUILD=$(BUILD) MAKE="$(MAKE)" CHECK_PARTS="$(CHECK_PARTS)" tests/check.sh
setup-check:
	@tests/setup.sh check
setup-bench:
	@tests/setup.sh bench

# Looked at every time, rewritten only when the list of suites changes.
.PHONY: always
$(UNIT_LIST): always
	@mkdir -p $(@D)
	@printf 'X(%s)\n' $(UNIT_NAMES) > $@.tmp
	@cmp -s $@.tmp $@ && rm $@.tmp || mv $@.tmp $@
$(BUILD)/obj/tests/unit/main.o: $(UNIT_LIST)

$(BUILD)/unit: $(BUILD)/obj/tests/unit/main.o $(UNIT_OBJS) $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(shell pkg-config --libs check) $(LIBS)
unit: $(BUILD)/unit

# Under the sanitizers, without fork: a leak or an overflow ends the run, loudly.
SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined
sanitized:
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=$(BUILD)/asan OPT="-O1 -g -fno-omit-frame-pointer" \
		SANITIZE="$(SAN)" unit
check-unit: sanitized
	CK_FORK=no ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 $(BUILD)/asan/unit $(SUITES)

# The module's ring, built in userspace.
check-ring:
	@BUILD=$(BUILD) tests/kmod/run.sh

check-cross: all
	@BUILD=$(BUILD) CLANG=$(CLANG) tests/cross.sh

check-golden: all
	@BUILD=$(BUILD) python3 -B tests/golden/run.py
golden-accept: all
	@BUILD=$(BUILD) python3 -B tests/golden/run.py --accept

check-e2e: all programs tools $(BUILD)/bench_replay
	@BUILD=$(BUILD) tests/e2e/run.sh $(E2E); bpf=$$?; \
	[ -n "$(E2E)" ] || { OTPROF_SOURCE=perf E2E_BRIEF=1 BUILD=$(BUILD) \
		tests/e2e/run.sh model shares selection errors ledger record ordinary agree; }; perf=$$?; \
	if [ $$perf = 0 ] || [ $$perf = 77 ]; then exit $$bpf; fi; exit $$perf

check-packages: all
	@BUILD=$(BUILD) tests/packages/run.sh

check-guest: all $(BUILD)/programs/shares
	@BUILD=$(BUILD) tests/guest/run.sh
# Whole Debian systems with the packages, beside each other: a quarter of an hour, and the images once.
.PHONY: check-system
check-system: all $(BUILD)/programs/shares
	@BUILD=$(BUILD) tests/guest/system.sh

bench: setup-bench
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=$(BUILD) all programs $(BUILD)/bench_replay
	@BUILD=$(BUILD) python3 -B tests/bench/bench.py $(BENCH)
$(BUILD)/bench_replay: $(BUILD)/obj/tests/bench/replay.o $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)

lint:
	@BUILD=$(BUILD) MAKE="$(MAKE)" tests/lint.sh

include tests/programs/programs.mk
include tests/fuzz/fuzz.mk
include tests/tools/tools.mk
include tests/guest/guest.mk
