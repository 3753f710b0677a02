# SPDX-License-Identifier: Apache-2.0
# Unit tests: every tests/unit/check_<module>.c provides Suite *<module>_suite(void).
UNIT_SRCS  := $(wildcard tests/unit/check_*.c)
UNIT_OBJS  := $(UNIT_SRCS:%.c=$(BUILD)/obj/%.o)
