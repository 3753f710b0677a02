# SPDX-License-Identifier: Apache-2.0
# otprof: build, run, check. `make help` lists the targets.

CC      ?= gcc
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
BUILD   ?= build
VERSION := 0.1.0

WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-unused-parameter
ifdef WERROR
WARN     += -Werror
endif
OPT      ?= -O2 -g -fno-omit-frame-pointer
HARDEN   := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
CFLAGS_  := -std=gnu11 -D_GNU_SOURCE -DOTPROF_VERSION='"$(VERSION)"' $(OPT) $(HARDEN) $(WARN) $(SANITIZE) \
	    -I. -Iuserspace -I$(BUILD)/gen $(CFLAGS)
PKGS     := libbpf libprotobuf-c libcurl libmicrohttpd libsystemd libcap libseccomp zlib
LIBS     := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -linih -liberty -lelf -lm
LDFLAGS_ := -pie -Wl,-z,relro,-z,now $(SANITIZE) $(LDFLAGS)

SRCS     := $(filter-out %/main.c,$(wildcard userspace/*/*.c))
PROTOS   := $(shell find proto -name '*.proto' 2>/dev/null)
GEN_C    := $(PROTOS:proto/%.proto=$(BUILD)/gen/%.pb-c.c)
GEN_H    := $(GEN_C:.c=.h)
SKEL     := $(BUILD)/gen/sampler.skel.h
OBJS     := $(SRCS:%.c=$(BUILD)/obj/%.o) $(GEN_C:$(BUILD)/gen/%.c=$(BUILD)/obj/gen/%.o)
LIB      := $(BUILD)/libotprof.a

.PHONY: all clean help
all: $(BUILD)/otprofd $(BUILD)/otprof

$(BUILD)/otprofd: $(BUILD)/obj/userspace/daemon/main.o $(LIB)
	$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)

$(BUILD)/otprof: $(BUILD)/obj/userspace/cli/main.o $(LIB)
	$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)

$(LIB): $(OBJS)
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/obj/%.o: %.c | $(SKEL) $(GEN_H)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_) -MMD -MP -c -o $@ $<

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	$(CC) $(filter-out $(WARN),$(CFLAGS_)) -MMD -MP -c -o $@ $<

$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h: proto/%.proto
	@mkdir -p $(BUILD)/gen
	protoc-c -Iproto --c_out=$(BUILD)/gen $(PROTOS)

BPF_ARCH := $(subst x86_64,x86,$(subst aarch64,arm64,$(shell uname -m)))
$(BUILD)/bpf/sampler.bpf.o: $(wildcard bpf/*.c bpf/*.h) kmod/uapi/otprof.h
	@mkdir -p $(@D)
	$(CLANG) -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -O2 -g -Wall -Wextra -Werror -I. -Ibpf -c -o $@ bpf/sampler.bpf.c

$(SKEL): $(BUILD)/bpf/sampler.bpf.o
	@mkdir -p $(@D)
	$(BPFTOOL) gen skeleton $< name sampler > $@.tmp && mv $@.tmp $@

clean:
	rm -rf $(BUILD)

include tests/tests.mk

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
