# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: every tests/fuzz/fuzz_<name>.c with LLVMFuzzerTestOneInput, and
# seeds in tests/fuzz/seeds/<name>/. With clang's libFuzzer where it is
# installed; else the same targets over their seeds and fixed mutations of them.
FUZZ_SRCS    := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_NAMES   := $(FUZZ_SRCS:tests/fuzz/fuzz_%.c=%)
FUZZ_SECONDS ?= 600
SMOKE_SECONDS ?= $(if $(FULL),120,2)

.PHONY: fuzz check-fuzz fuzz-bins fuzz-build fuzz-coverage

HAVE_LIBFUZZER = $(shell printf 'int LLVMFuzzerTestOneInput(void);int LLVMFuzzerTestOneInput(void){return 0;}' | \
	$(CLANG) -x c - -fsanitize=fuzzer,address -o /dev/null 2>/dev/null && echo yes)

$(BUILD)/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(FUZZ_MAIN) $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) $(FUZZ_LINK) -o $@ $(filter %.o,$^) $(LIB) $(LIBS)
$(BUILD)/fuzz_calls $(BUILD)/fuzz_epilogue $(BUILD)/fuzz_debug_frame $(BUILD)/fuzz_go_table $(BUILD)/fuzz_go_attach: $(BUILD)/obj/tests/lib/tiny_elf.o
fuzz-bins: $(FUZZ_NAMES:%=$(BUILD)/fuzz_%)

fuzz-build:
	@if [ "$(HAVE_LIBFUZZER)" = yes ]; then \
		$(MAKE) --no-print-directory -j$(CHECK_CPUS) BUILD=$(BUILD)/fuzz CC=$(CLANG) OPT="-O1 -g" \
			SANITIZE="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined" \
			FUZZ_LINK=-fsanitize=fuzzer fuzz-bins; \
	else \
		$(MAKE) --no-print-directory -j$(CHECK_CPUS) BUILD=$(BUILD)/asan OPT="-O1 -g -fno-omit-frame-pointer" \
			SANITIZE="$(SAN)" FUZZ_MAIN=$(BUILD)/asan/obj/tests/fuzz/standalone.o fuzz-bins; \
	fi

fuzz: fuzz-build
	@BUILD=$(BUILD) tests/fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ_NAMES)
check-fuzz: fuzz-build
	@BUILD=$(BUILD) tests/fuzz/run.sh $(SMOKE_SECONDS) $(FUZZ_NAMES)

# What they reach; after `make fuzz`, with all that it found.
fuzz-coverage:
	@[ "$(HAVE_LIBFUZZER)" = yes ] || { echo "fuzz-coverage: needs clang with libFuzzer"; exit 1; }
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=$(BUILD)/cover CC=$(CLANG) OPT="-O1 -g" \
		SANITIZE="-fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping" \
		FUZZ_LINK=-fsanitize=fuzzer fuzz-bins
	@BUILD=$(BUILD) tests/fuzz/coverage.sh $(FUZZ_NAMES)
