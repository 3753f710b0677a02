# SPDX-License-Identifier: Apache-2.0
# The sampler's own test, and the whole daemon, run on real kernels.
PROBE_SRCS := $(sort $(filter-out tests/guest/kmod_%,$(wildcard tests/guest/*.c)))
PROBE_OBJS := $(PROBE_SRCS:%.c=$(BUILD)/obj/%.o)

$(BUILD)/probe: $(PROBE_OBJS) $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)

# What shakes the module: static, so that it runs on any kernel.
STRESS_SRCS := $(sort $(wildcard tests/guest/kmod_*.c))
$(BUILD)/kmod_stress: $(STRESS_SRCS) $(wildcard tests/guest/*.h kmod/uapi/*.h)
	@mkdir -p $(@D)
	$(call say,LD )
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -I. -Iuserspace -static -o $@ $(STRESS_SRCS) -lpthread

# By eBPF on the running kernel, and on the oldest; FULL=1: on all, and on arm64.
.PHONY: check-guest check-kmod check-kmod-e2e
check-guest: all $(BUILD)/probe $(BUILD)/programs/shares
	@BUILD=$(BUILD) tests/guest/run.sh $(if $(FULL),,native 5.10)

# By the module, which is built for each of them, and shaken; FULL=1: on all kernels, and longer.
check-kmod: all programs $(BUILD)/probe $(BUILD)/kmod_stress
	@$(if $(FULL),,OTPROF_SHAKEN=none) BUILD=$(BUILD) tests/guest/kmod_run.sh $(if $(FULL),,6.1); code=$$?; \
		[ -z "$(FULL)" ] || BUILD=$(BUILD) tests/guest/old_kernel.sh; old=$$?; \
		[ $$old = 0 ] || [ $$old = 77 ] || code=$$old; exit $$code

# The end-to-end suite in a guest, by the module and by eBPF; FULL=1: programs in step with the clock on all kernels.
check-kmod-e2e: all programs
	@BUILD=$(BUILD) tests/guest/kmod_e2e.sh; code=$$?; \
		for kernel in $(if $(FULL),5.10 6.1 6.12 7.x); do \
			BUILD=$(BUILD) tests/guest/kmod_e2e.sh $$kernel lockstep bpf:lockstep || code=$$?; \
		done; exit $$code
