# SPDX-License-Identifier: Apache-2.0
# Programs that know the truth about themselves; plain optimised builds, since
# what they are compiled with is part of what is tested.
PROGRAM_SRCS := $(wildcard tests/programs/*.c)
PROGRAMS     := $(PROGRAM_SRCS:tests/programs/%.c=$(BUILD)/programs/%) \
		$(BUILD)/programs/shares-stripped $(BUILD)/programs/shares-static-pie \
		$(BUILD)/programs/shares-static $(BUILD)/programs/short-static \
		$(BUILD)/programs/forkstorm-static $(BUILD)/programs/hostile-static \
		$(BUILD)/programs/plugin-a.so $(BUILD)/programs/plugin-b.so $(BUILD)/programs/throws
PROGRAM_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -fomit-frame-pointer -Wall -Wextra -Wno-unused-parameter

programs: $(PROGRAMS)

$(BUILD)/programs/plugin-%.so: tests/programs/plugins/plugin.c
	@mkdir -p $(@D)
	$(call say,CC )
	$(Q)gcc $(PROGRAM_CFLAGS) -fPIC -shared -DNAME=burn_plugin_$* $(if $(filter b,$*),-DPAD) -o $@ $<
$(BUILD)/programs/%: tests/programs/%.cc
	@mkdir -p $(@D)
	$(call say,CXX)
	$(Q)g++ -O2 -g -fomit-frame-pointer -Wall -Wextra -o $@ $<
$(BUILD)/programs/%-static: tests/programs/%.c
	@mkdir -p $(@D)
	$(call say,CC )
	$(Q)gcc $(PROGRAM_CFLAGS) -static -o $@ $< -lpthread
$(BUILD)/programs/%-static-pie: tests/programs/%.c
	@mkdir -p $(@D)
	$(call say,CC )
	$(Q)gcc $(PROGRAM_CFLAGS) -fPIE -static-pie -o $@ $< -lpthread
$(BUILD)/programs/%-stripped: $(BUILD)/programs/%
	$(call say,CC )
	$(Q)strip -o $@ $<
$(BUILD)/programs/%: tests/programs/%.c
	@mkdir -p $(@D)
	$(call say,CC )
	$(Q)gcc $(PROGRAM_CFLAGS) -o $@ $< -lpthread
