# SPDX-License-Identifier: Apache-2.0
# Tools that hold the unwinder against other witnesses: gdb (compare_gdb.sh),
# readelf (compare_readelf.py), and a disassembler.
TOOL_OBJS := $(BUILD)/obj/tests/tools/space_file.o $(BUILD)/obj/tests/tools/callsites.o

.PHONY: tools
tools: $(BUILD)/unwind_stops $(BUILD)/unwind_rows
$(BUILD)/unwind_stops: $(BUILD)/obj/tests/tools/unwind_stops.o $(TOOL_OBJS) $(LIB)
	$(CC) $(LDFLAGS_) -o $@ $^ -lcapstone $(LIBS)
$(BUILD)/unwind_rows: $(BUILD)/obj/tests/tools/unwind_rows.o $(LIB)
	$(CC) $(LDFLAGS_) -o $@ $^ $(LIBS)
