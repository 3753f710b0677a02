// SPDX-License-Identifier: Apache-2.0
#include "runtime/luajit.h"

/* The only function that every LuaJIT exports and no other Lua has. */
static const char *const luajit_markers[] = {"luaJIT_setmode", NULL};

const struct runtime_ops runtime_luajit = {
	.name = "luajit",
	.label = "LuaJIT",
	.kind = KIND_LUAJIT,
	.markers = luajit_markers,
	.attach = luajit_attach,
	.decode = luajit_decode,
	.frame = luajit_frame,
	.stamp = luajit_stamp,
	.code = luajit_code,
	.step = luajit_step,
	.registers = 1 << 2, /* x86-64: rcx */
};
