# SPDX-License-Identifier: Apache-2.0
# Programs that know the truth about themselves; plain optimised builds, since
# what they are compiled with is part of what is tested.
# otprofd, or otprof-worker, with one role that was taken over: its sandbox' function is the attack.
comma := ,
TAKEOVERS_OTPROFD := $(addprefix $(BUILD)/programs/takeover-,net fetcher)
TAKEOVERS_WORKER  := $(addprefix $(BUILD)/programs/takeover-,engine opener indexer decoder)
TAKEOVERS := $(TAKEOVERS_OTPROFD) $(TAKEOVERS_WORKER)
TAKEOVER_OBJS := $(addprefix $(BUILD)/obj/tests/programs/takeover/,takeover.o ask.o find.o)
PROGRAM_SRCS := $(wildcard tests/programs/*.c)
PROGRAMS     := $(PROGRAM_SRCS:tests/programs/%.c=$(BUILD)/programs/%) \
		$(BUILD)/programs/shares-stripped $(BUILD)/programs/shares-static-pie \
		$(BUILD)/programs/shares-static $(BUILD)/programs/short-static \
		$(BUILD)/programs/tomorrow-static \
		$(BUILD)/programs/forkstorm-static $(BUILD)/programs/hostile-static $(BUILD)/programs/hang \
		$(BUILD)/programs/plugin-a.so $(BUILD)/programs/plugin-b.so $(BUILD)/programs/addon.node \
		$(BUILD)/programs/throws $(BUILD)/programs/embed \
		$(BUILD)/programs/takeover-held $(TAKEOVERS)
PROGRAM_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -fomit-frame-pointer -Wall -Wextra -Wno-unused-parameter

programs: $(PROGRAMS)

$(TAKEOVERS_OTPROFD): $(BUILD)/obj/userspace/daemon/main.o
$(TAKEOVERS_WORKER): $(BUILD)/obj/userspace/daemon/worker/main.o
$(TAKEOVERS): $(BUILD)/programs/takeover-%: $(BUILD)/obj/tests/programs/takeover/%.o $(TAKEOVER_OBJS) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -Wl,--wrap=sandbox_$* $(if $(filter decoder,$*),-Wl$(comma)--wrap=sandbox_engine) \
		-o $@ $(filter %.o,$^) $(LIB) $(LIBS)
$(BUILD)/programs/takeover-held: tests/programs/takeover/held.c
	@mkdir -p $(@D)
	$(call say,CC )
	$(Q)gcc $(PROGRAM_CFLAGS) -Iuserspace -I. -o $@ $<
$(BUILD)/programs/plugin-%.so: tests/programs/plugins/plugin.c
	@mkdir -p $(@D)
	$(call say,CC )
	$(Q)gcc $(PROGRAM_CFLAGS) -fPIC -shared -DNAME=burn_plugin_$* $(if $(filter b,$*),-DPAD) -o $@ $<
$(BUILD)/programs/addon.node: tests/programs/addon/addon.c
	@mkdir -p $(@D)
	$(call say,CC )
	$(Q)gcc $(PROGRAM_CFLAGS) -fPIC -shared -o $@ $<
$(BUILD)/programs/%: tests/programs/%.cc
	@mkdir -p $(@D)
	$(call say,CXX)
	$(Q)g++ -O2 -g -fomit-frame-pointer -Wall -Wextra $(if $(filter %/embed,$@),-rdynamic) -o $@ $<
$(BUILD)/programs/hang: $(wildcard tests/programs/hang/*.c) tests/programs/hang/hang.h
	@mkdir -p $(@D)
	$(call say,CC )
	$(Q)gcc $(PROGRAM_CFLAGS) -static -o $@ $(filter %.c,$^)
$(BUILD)/programs/fakeruntime: tests/programs/fakeruntime.c
	@mkdir -p $(@D)
	$(call say,CC )
	$(Q)gcc $(PROGRAM_CFLAGS) -rdynamic -o $@ $< -lpthread
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
