// SPDX-License-Identifier: Apache-2.0
#include "runtime/hotspot.h"

/* The second one is OpenJ9's (libj9vm, vm_api.h), whose frames are not known: attach says so. */
static const char *const hotspot_markers[] = {"gHotSpotVMStructs", HOTSPOT_OPENJ9, NULL};

const struct runtime_ops runtime_hotspot = {
	.name = "jvm",
	.label = "Java",
	.kind = KIND_JVM,
	.markers = hotspot_markers,
	.attach = hotspot_attach,
	.found_lasts = true,
	.decode = hotspot_decode,
	.library = "libjvm.so",
	.code = hotspot_code,
	.epoch = hotspot_epoch,
	.code_epoch = hotspot_code_epoch,
	.frozen = hotspot_frozen,
	.registers = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 13, /* x86-64: rax, rcx, rbx, r13 */
	.step = hotspot_step,
	.lacks_fp = hotspot_lacks_fp,
};

/* OpenJDK, src/hotspot/cpu/x86/frame_x86.hpp: since 9 the class' mirror lies between method and the rest. */
const struct hotspot_slots *hotspot_slots(uint16_t version)
{
	static const struct hotspot_slots slots_8 = {.sender_sp = -8, .method = -24, .cache = -40, .bcp = -56},
					  slots_9 = {.sender_sp = -8, .method = -24, .cache = -48, .bcp = -64};

	return version < 9 ? &slots_8 : &slots_9;
}
