// SPDX-License-Identifier: Apache-2.0
#include "runtime/dotnet.h"

static const char *const dotnet_markers[] = {"g_dacTable", NULL};

const struct runtime_ops runtime_dotnet = {
	.name = "dotnet",
	.label = ".NET",
	.kind = KIND_DOTNET,
	.markers = dotnet_markers,
	.attach = dotnet_attach,
	.decode = dotnet_decode,
	.library = "libcoreclr.so",
	.code = dotnet_code,
	.step = dotnet_step,
	/* Very simple methods are not in the chain of frame pointers (src/coreclr/jit/regalloc.cpp: rpMustCreateEBPFrame). */
	.leaves_fp = true,
};

/*
 * Module, ReadyToRunInfo, DynamicMethodDesc: dotnet/runtime, src/coreclr/vm/ceeload.h, readytoruninfo.h, method.hpp; 9 and
 * 10 besides by their DotNetRuntimeContractDescriptor (Module: Base, Path, ReadyToRunInfo; ReadyToRunInfo:
 * EntryPointToMethodDescMap + HashMap: Buckets; DynamicMethodDesc: MethodName). PatchpointInfo: src/coreclr/inc/
 * patchpointinfo.h. Bounds are packed since version 16 of ReadyToRun (src/coreclr/inc/readytorun.h), that of 10.
 */
const struct dotnet_row dotnet_rows[] = {
	{.major = 8, .module_file = 272, .module_name = 264, .module_r2r = 1152, .r2r_methods = 448, .dynamic_name = 24,
	 .patchpoint_locals = 8, .module_may_be_moved = true},
	{.major = 9, .module_base = 288, .module_name = 264, .module_r2r = 1168, .r2r_methods = 448, .dynamic_name = 32,
	 .patchpoint_locals = 8},
	{.major = 10, .module_base = 224, .module_name = 192, .module_r2r = 704, .r2r_methods = 376, .dynamic_name = 32,
	 .patchpoint_locals = 16, .bounds_packed = true},
	{0},
};
