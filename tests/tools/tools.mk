# SPDX-License-Identifier: Apache-2.0
# Tools that hold the unwinder against other witnesses: gdb (compare_gdb.sh),
# readelf (compare_readelf.py), and, where capstone is installed, a disassembler;
# and the address index against elfutils and LLVM (compare_lines.py); what
# runs a program under the container's seccomp profile; and stacks of
# interpreters, walked without a sampler.
HAVE_CAPSTONE := $(wildcard /usr/include/capstone/capstone.h)
STOPS_OBJS    := $(addprefix $(BUILD)/obj/tests/tools/,unwind_stops.o space_file.o $(if $(HAVE_CAPSTONE),callsites.o))
STOPS_LIBS    := $(if $(HAVE_CAPSTONE),-lcapstone)

.PHONY: tools
tools: $(BUILD)/unwind_stops $(BUILD)/unwind_rows $(BUILD)/go_rows $(BUILD)/epilogue_rows $(BUILD)/symbol_index $(BUILD)/seccomp_run $(BUILD)/interpreted
$(BUILD)/unwind_stops: $(STOPS_OBJS) $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(STOPS_LIBS) $(LIBS)
$(BUILD)/unwind_rows: $(BUILD)/obj/tests/tools/unwind_rows.o $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)
$(BUILD)/go_rows: $(BUILD)/obj/tests/tools/go_rows.o $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)
$(BUILD)/epilogue_rows: $(BUILD)/obj/tests/tools/epilogue_rows.o $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)
$(BUILD)/symbol_index: $(BUILD)/obj/tests/tools/symbol_index.o $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)
$(BUILD)/seccomp_run: $(BUILD)/obj/tests/tools/seccomp_run.o
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)
$(BUILD)/interpreted: $(BUILD)/obj/tests/tools/interpreted.o $(LIB)
	$(call say,LD )
	$(Q)$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)
