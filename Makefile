# SPDX-License-Identifier: Apache-2.0
# otprof: build, run, check. `make help` lists the targets.
#
# This file is read before anything is installed, so nothing here may need a
# tool at parse time: what asks a tool is a recursive variable.

CC      ?= gcc
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
BUILD   ?= build
VERSION := 0.1.0

# One short line per file; make V=1 shows the commands.
Q       := $(if $(V),,@)
say      = $(if $(V),,@echo '  $(1)  $(@:$(BUILD)/%=%)')

PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
SBINDIR    ?= $(PREFIX)/sbin
SYSCONFDIR ?= /etc
DESTDIR    ?=

WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-unused-parameter
ifdef WERROR
WARN     += -Werror
endif
OPT      ?= -O2 -g -fno-omit-frame-pointer
HARDEN   := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
CFLAGS_  := -std=gnu11 -D_GNU_SOURCE -DOTPROF_VERSION='"$(VERSION)"' $(OPT) $(HARDEN) $(WARN) $(SANITIZE) \
	    -I. -Iuserspace -I$(BUILD)/gen $(CFLAGS)
PKGS     := libbpf libprotobuf-c libcurl libmicrohttpd libsystemd libcap libacl libseccomp libdw liblzma libzstd zlib jansson
LIBS      = $(shell pkg-config --libs $(PKGS) 2>/dev/null) -linih -liberty -lelf -lm $(shell pkg-config --libs ncursesw 2>/dev/null)
LDFLAGS_ := -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(SANITIZE) $(LDFLAGS)

SRCS     := $(filter-out %/main.c,$(wildcard userspace/*/*.c userspace/*/*/*.c))
PROTOS   := $(shell find proto -name '*.proto' 2>/dev/null)
GEN_C    := $(PROTOS:proto/%.proto=$(BUILD)/gen/%.pb-c.c)
GEN_H    := $(GEN_C:.c=.h)
SKEL     := $(BUILD)/gen/sampler.skel.h
EMBED    := $(patsubst userspace/%,$(BUILD)/gen/%.h,$(wildcard userspace/render/*.js userspace/render/*.css))
PAGE     := $(shell find userspace/hub/page -type f 2>/dev/null)
PAGE_INC := $(BUILD)/gen/hub/page_files.inc
OBJS     := $(SRCS:%.c=$(BUILD)/obj/%.o) $(GEN_C:$(BUILD)/gen/%.c=$(BUILD)/obj/gen/%.o)
LIB      := $(BUILD)/libotprof.a

.PHONY: all run install uninstall clean help setup-run
all: $(BUILD)/otprofd $(BUILD)/otprof-worker $(BUILD)/otprof

help:
	@echo 'sudo make run     install what is needed, build, profile this host until Ctrl-C'
	@echo '                  (RUN_SECONDS=60 ends by itself, RUN_HZ=49 sets the rate)'
	@echo 'sudo make check   install what is needed, build, run what every change has to pass (half an hour on 2 CPUs)'
	@echo 'sudo make check-full  all tests: also other kernels, arm64, whole Debian systems, long fuzzing (some hours)'
	@echo '                  both end with a table of parts, and the totals; CHECK_PARTS="unit e2e" chooses parts'
	@echo 'make check-unit | check-page | check-ring | check-cross | check-fuzz | check-golden | check-packages'
	@echo '                  | check-e2e | check-e2e-send | check-e2e-hub | check-e2e-perf'
	@echo '                  | check-guest | check-kmod | check-kmod-e2e | check-system   one part; FULL=1 as in check-full'
	@echo '                  SUITES="base net" and E2E="record perf:ledger" choose within unit and e2e'
	@echo 'make lint         gcc and clang with -Werror, headers alone, include direction, SPDX, shellcheck,'
	@echo '                  and for kmod/ checkpatch and sparse'
	@echo 'make bench        budgets beside what is measured here (root); BASE=TAG: beside a release, measured too'
	@echo 'make fuzz         every fuzz target for FUZZ_SECONDS (600)'
	@echo 'make install      PREFIX=$(PREFIX) SYSCONFDIR=$(SYSCONFDIR) DESTDIR=; and uninstall'
	@echo 'make deb, make rpm packages in $(BUILD)/deb, $(BUILD)/rpm'
	@echo 'make kmod         the kernel module in $(BUILD)/kmod; KVER=, KDIR=; sudo make dkms-install, dkms-remove'
	@echo 'make clean        remove $(BUILD)/'
	@echo 'BUILD=DIR builds elsewhere; WERROR=1 makes warnings errors; V=1 shows commands.'

$(BUILD)/otprofd: $(BUILD)/obj/userspace/daemon/main.o $(LIB) | $(BUILD)/otprof-worker
$(BUILD)/otprof-worker: $(BUILD)/obj/userspace/daemon/worker/main.o $(LIB)
$(BUILD)/otprof: $(BUILD)/obj/userspace/cli/main.o $(LIB)
$(BUILD)/otprofd $(BUILD)/otprof-worker $(BUILD)/otprof:
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)

$(LIB): $(OBJS)
	$(call say,AR )
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/obj/%.o: %.c | $(SKEL) $(GEN_H) $(EMBED) $(PAGE_INC)
	@mkdir -p $(@D)
	$(call say,CC )
	$(Q)$(CC) $(CFLAGS_) -MMD -MP -c -o $@ $<

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c | $(GEN_H)
	@mkdir -p $(@D)
	$(call say,CC )
	$(Q)$(CC) $(filter-out $(WARN),$(CFLAGS_)) -MMD -MP -c -o $@ $<

# A text file as a string literal, a line each.
$(BUILD)/gen/%.h: userspace/%
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' $< > $@.tmp && mv $@.tmp $@

# The hub's page, each file with a hash of its content.
$(PAGE_INC): userspace/hub/page_files.sh $(PAGE)
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)$< userspace/hub/page > $@.tmp && mv $@.tmp $@

.SECONDARY: $(GEN_C) $(GEN_H) $(EMBED)
$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h: proto/%.proto
	@mkdir -p $(BUILD)/gen
	$(call say,GEN)
	$(Q)protoc-c -Iproto --c_out=$(BUILD)/gen $<

BPF_ARCH := $(subst x86_64,x86,$(subst aarch64,arm64,$(shell uname -m)))
$(BUILD)/bpf/sampler.bpf.o: $(wildcard bpf/*.c bpf/*.h kmod/uapi/*.h)
	@mkdir -p $(@D)
	$(call say,BPF)
	$(Q)$(CLANG) -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -O2 -g -Wall -Wextra -Werror -I. -Ibpf -c -o $@ bpf/sampler.bpf.c

$(SKEL): $(BUILD)/bpf/sampler.bpf.o
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)$(BPFTOOL) gen skeleton $< name sampler > $@.tmp && mv $@.tmp $@

# The first rule installs what is missing; make then starts anew, because
# what it found out while reading this file may have changed.
setup-run:
	@tests/setup.sh run
run: setup-run
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=$(BUILD) all
	@packaging/run.sh $(BUILD)

include packaging/packages.mk
include packaging/dkms/module.mk

uninstall: uninstall-files

clean:
	rm -rf $(BUILD)

include tests/tests.mk

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
