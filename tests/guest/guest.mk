# SPDX-License-Identifier: Apache-2.0
# The sampler's own test, and the whole daemon, run on real kernels.
PROBE_SRCS := $(sort $(wildcard tests/guest/*.c))
PROBE_OBJS := $(PROBE_SRCS:%.c=$(BUILD)/obj/%.o)

$(BUILD)/probe: $(PROBE_OBJS) $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)

check-guest: $(BUILD)/probe $(BUILD)/programs/shares
