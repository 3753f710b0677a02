// SPDX-License-Identifier: Apache-2.0
/*
 * The numbers of each version: offsetof() over ruby's own vm_core.h, iseq.h,
 * method.h, id.h, internal/class.h, ractor_core.h, thread_pthread.h, shape.h and
 * include/ruby, of the versions named, with Debian's and Ubuntu's config.h for
 * x86-64; the same for aarch64, whose types have the same sizes.
 */
#include "base/cleanup.h"
#include "runtime/ruby.h"

static const struct ruby_layout layouts[] = {
	/* 2.7.0, 2.7.4 */
	{.version = 207, .frame = 56, .ec_thread = 56, .thread_vm = 24, .thread_ec = 32, .thread_id = 72,
	 .vm_main_thread = 192, .insns_info = 120, .parent_iseq = 168, .local_iseq = 176, .insn = 8, .line_is_fixnum = true,
	 .text = 16, .embedded_mask = 3, .last_op = 168, .singleton = 12, .class_ext = 24},
	/* 3.0.0, 3.0.2 */
	{.version = 300, .frame = 56, .ec_thread = 56, .thread_vm = 32, .thread_ec = 40, .thread_id = 80,
	 .vm_main_thread = 40, .insns_info = 120, .parent_iseq = 168, .local_iseq = 176, .insn = 8, .line_is_fixnum = true,
	 .text = 16, .embedded_mask = 3, .last_op = 168, .singleton = 12, .class_ext = 24},
	/* 3.1.0, 3.1.2 */
	{.version = 301, .frame = 64, .ec_thread = 48, .thread_vm = 32, .thread_ec = 40, .thread_id = 80,
	 .vm_main_thread = 40, .insns_info = 120, .parent_iseq = 168, .local_iseq = 176, .insn = 12, .line_is_fixnum = true,
	 .text = 16, .embedded_mask = 3, .last_op = 169, .singleton = 12, .class_ext = 24},
	/* 3.2.0, 3.2.3 */
	{.version = 302, .frame = 64, .ec_thread = 48, .thread_vm = 32, .thread_ec = 48, .thread_native = 40,
	 .thread_id = 8, .vm_main_thread = 40, .insns_info = 112, .parent_iseq = 160, .local_iseq = 168, .insn = 12,
	 .text = 24, .embedded_mask = 0x7f, .last_op = 169, .singleton = 12, .class_ext = 32, .vm_shapes = 376},
	/* 3.3.5, 3.3.8 */
	{.version = 303, .frame = 56, .ec_thread = 48, .thread_vm = 32, .thread_ec = 48, .thread_native = 40,
	 .thread_id = 16, .vm_main_thread = 40, .insns_info = 112, .parent_iseq = 160, .local_iseq = 168, .insn = 12,
	 .text = 24, .embedded_mask = 0x7f, .last_op = 169, .singleton = 12, .class_ext = 32, .class_path = 120,
	 .class_attached = 96},
	/* 3.4.0, 3.4.5 */
	{.version = 304, .frame = 56, .ec_thread = 48, .thread_vm = 32, .thread_ec = 48, .thread_native = 40,
	 .thread_id = 16, .vm_main_thread = 40, .insns_info = 112, .parent_iseq = 160, .local_iseq = 168, .insn = 12,
	 .text = 24, .embedded_mask = 0x7f, .last_op = 170, .singleton = 13, .class_ext = 32, .class_path = 120,
	 .class_attached = 96},
	/* 4.0.0, 4.0.6, with the include/ruby of 3.4; no build of them has been run here. */
	{.version = 400, .frame = 56, .ec_thread = 48, .thread_vm = 32, .thread_ec = 48, .thread_native = 40,
	 .thread_id = 16, .vm_main_thread = 40, .insns_info = 112, .parent_iseq = 168, .local_iseq = 176, .insn = 12,
	 .text = 24, .embedded_mask = 0x7f, .last_op = 171, .singleton = 13, .class_ext = 24, .class_path = 128,
	 .class_attached = 112},
};

const struct ruby_layout *ruby_layout_find(uint32_t version)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].version == version)
			return &layouts[i];
	return NULL;
}
