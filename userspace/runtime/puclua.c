// SPDX-License-Identifier: Apache-2.0
#include "runtime/puclua.h"

/* LuaJIT has the second one too, and is sought before. */
static const char *const puclua_markers[] = {"lua_ident", "lua_newstate", NULL};

const struct runtime_ops runtime_puclua = {
	.name = "lua",
	.label = "Lua",
	.kind = KIND_LUA,
	.markers = puclua_markers,
	.attach = puclua_attach,
	.decode = puclua_decode,
	.frame = puclua_frame,
};
