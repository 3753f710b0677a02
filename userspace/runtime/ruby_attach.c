// SPDX-License-Identifier: Apache-2.0
/*
 * A process that runs ruby: its version, the way to the running EC, the table of
 * symbols, and the functions that run bytecode.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/ruby.h"

static int attach_version(const struct runtime_file *file, struct memory *m, char version[RUNTIME_VERSION_MAX])
{
	struct runtime_symbol symbol;

	if (runtime_symbol(file->binary, "ruby_version", &symbol) < 0)
		return -ENOENT;
	return memory_string(m, file->bias + symbol.value, version, RUNTIME_VERSION_MAX);
}

/* "3.1.7" -> 301; 0: not a version. */
static uint32_t attach_parse(const char *version)
{
	char *end, *rest;
	unsigned long major = strtoul(version, &end, 10), minor;

	if (end == version || *end != '.')
		return 0;
	minor = strtoul(end + 1, &rest, 10);
	if (rest == end + 1 || *rest != '.' || major > 99 || minor > 99)
		return 0;
	return (uint32_t)(major * 100 + minor);
}

static int attach_layout(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
			 const struct ruby_layout **layout, char *why)
{
	int err = attach_version(file, m, ret->version);

	if (err < 0)
		return err;
	ret->param[RUBY_PARAM_VERSION] = attach_parse(ret->version);
	*layout = ruby_layout_find((uint32_t)ret->param[RUBY_PARAM_VERSION]);
	if (*layout)
		return 0;
	snprintf(why, RUNTIME_WHY_MAX, "Ruby %s is not known", ret->version);
	return -ENOTSUP;
}

/* --- plan --- */

/* Frames, their environments' three words (before ep), their iseqs' bodies, their method entries. */
void ruby_plan(const struct ruby_layout *l, struct otp_walk *ret)
{
	ret->step = OTP_WALK_ARRAY;
	ret->frames_max = OTP_WALK_FRAMES;
	ret->keep = 1 << 0 | 1 << 2 | 1 << 4;
	ret->stride = l->frame;
	ret->first = (struct otp_walk_edge){.at = RUBY_EC_FRAME};
	ret->last = (struct otp_walk_edge){
		.at = RUBY_EC_STACK, .count_at = RUBY_EC_STACK_SIZE, .scale = 8, .bias = -(int32_t)l->frame};
	ret->nr_subs = 4;
	ret->sub[0] = (struct otp_walk_sub){.from = 0, .at = 4, .off = -16, .keep = 7};
	ret->sub[1] = (struct otp_walk_sub){.from = 0, .at = 2};
	ret->sub[2] = (struct otp_walk_sub){
		.from = 2, .at = RUBY_ISEQ_BODY / 8, .keep = 1 << RUBY_BODY_ENCODED / 8 | 1 << RUBY_BODY_LABEL / 8};
	ret->sub[3] = (struct otp_walk_sub){.from = 1, .at = 0, .keep = 7};
}

/* --- names --- */

/* ruby_global_symbols is in .data: its first word is not 0 from the start. */
static uint64_t attach_symbols(const struct ruby *r, const struct runtime_file *file)
{
	const struct binary_section *data = binary_section(file->binary, ".data");
	struct runtime_symbol symbol;

	if (runtime_symbol(file->binary, "ruby_global_symbols", &symbol) == 0)
		return file->bias + symbol.value;
	for (uint64_t at = 0; data && at + 24 <= MIN(data->size, (uint64_t)16384); at += 8)
		if (ruby_is_symbols(r, file->bias + data->addr + at))
			return file->bias + data->addr + at;
	return 0;
}

/* Of Object, whose name is known, and of its singleton class, whose object is. */
static void attach_class_ids(const struct ruby *r, uint64_t object, struct runtime_attached *ret)
{
	struct ruby_ivar ivar[RUBY_IVARS_MAX];
	uint64_t meta = 0;
	char name[8];
	int n = ruby_class_ivars(r, object, ivar);

	for (int i = 0; i < n; i++)
		if (ruby_string(r, ivar[i].value, name, sizeof(name)) == 0 && strcmp(name, "Object") == 0)
			ret->param[RUBY_PARAM_CLASSPATH] = ivar[i].id;
	n = memory_u64(r->memory, object + 8, &meta) == 0 ? ruby_class_ivars(r, meta, ivar) : 0;
	for (int i = 0; i < n; i++)
		if (ivar[i].value == object)
			ret->param[RUBY_PARAM_ATTACHED] = ivar[i].id;
}

static void attach_names(const struct ruby *r, const struct runtime_file *file, uint64_t vm, struct runtime_attached *ret)
{
	struct runtime_symbol symbol;
	uint64_t object;

	ret->param[RUBY_PARAM_SYMBOLS] = attach_symbols(r, file);
	if (r->layout->class_path)
		return;
	if (r->layout->vm_shapes && memory_u64(r->memory, vm + r->layout->vm_shapes, &ret->param[RUBY_PARAM_SHAPES]) < 0)
		return;
	if (runtime_symbol(file->binary, "rb_cObject", &symbol) == 0 &&
	    memory_u64(r->memory, file->bias + symbol.value, &object) == 0 && ruby_is_object(object))
		attach_class_ids(r, object, ret);
}

int ruby_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret, char why[RUNTIME_WHY_MAX])
{
	struct ruby r = {.attached = ret, .memory = m};
	struct ruby_thread t;
	int err = attach_layout(file, m, ret, &r.layout, why);

	if (err == 0)
		err = ruby_main_thread(&r, file, &t);
	if (err == 0)
		err = ruby_root(&r, file, &t, &ret->walk);
	if (err == 0)
		err = ruby_loops(&r, file, t.ec, ret);
	if (err == -ENOTSUP && !why[0])
		snprintf(why, RUNTIME_WHY_MAX, "the threads of this build of Ruby %s cannot be found", ret->version);
	if (err < 0)
		return err;
	ruby_plan(r.layout, &ret->walk);
	ret->compiled = RUNTIME_CALLED;
	attach_names(&r, file, t.vm, ret);
	return 0;
}
