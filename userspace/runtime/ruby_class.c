// SPDX-License-Identifier: Apache-2.0
/*
 * Names of classes. From 3.3 on a class holds its path and, if it is a singleton
 * class, the object that it belongs to; before, both are hidden instance
 * variables of it: in a hash table, in 3.2 in an array that shapes describe.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/ruby.h"

#define CLASS_TYPE_IVAR 1 /* SHAPE_IVAR */
#define CLASS_SHAPE	4 /* words of a shape: edges, name, next index and capacity, type and parent */
#define CLASS_STEPS_MAX 256
#define CLASS_INDEX_MAX 4096

/* st_table: entries_start and entries_bound at 32, entries at 48; an entry is hash, key, value. */
static int class_table_ivars(const struct ruby *r, uint64_t class, struct ruby_ivar *to)
{
	uint64_t ext, at, table[7], entry[RUBY_IVARS_MAX * 3], n;
	int err = memory_u64(r->memory, class + r->layout->class_ext, &ext), found = 0;

	if (err == 0)
		err = memory_u64(r->memory, ext + 8, &at);
	if (err < 0 || !at)
		return err;
	err = ruby_words(r, at, table, ARRAY_SIZE(table));
	if (err < 0)
		return err;
	n = table[5] > table[4] ? MIN(table[5] - table[4], (uint64_t)RUBY_IVARS_MAX) : 0;
	err = n ? ruby_words(r, table[6] + table[4] * 24, entry, n * 3) : 0;
	for (uint64_t i = 0; err == 0 && i < n; i++)
		if (entry[i * 3] != UINT64_MAX)
			to[found++] = (struct ruby_ivar){.id = entry[i * 3 + 1], .value = entry[i * 3 + 2]};
	return err < 0 ? err : found;
}

static int class_shape(const struct ruby *r, uint32_t id, uint64_t shape[CLASS_SHAPE])
{
	return ruby_words(r, r->attached->param[RUBY_PARAM_SHAPES] + (uint64_t)id * CLASS_SHAPE * 8, shape, CLASS_SHAPE);
}

static int class_shaped_ivar(const struct ruby *r, uint64_t values, const uint64_t *shape, struct ruby_ivar *to)
{
	uint32_t index = (uint32_t)shape[2] - 1;

	if (index >= CLASS_INDEX_MAX)
		return -EBADMSG;
	to->id = shape[1];
	return memory_u64(r->memory, values + index * 8ULL, &to->value);
}

/* From the class's shape, in the upper half of its flags, to the root of shapes. */
static int class_shaped_ivars(const struct ruby *r, uint64_t class, struct ruby_ivar *to)
{
	uint64_t flags, values, shape[CLASS_SHAPE];
	int err = memory_u64(r->memory, class, &flags), found = 0;
	uint32_t id;

	if (err == 0)
		err = memory_u64(r->memory, class + r->layout->class_ext, &values);
	if (err < 0 || !values)
		return err;
	id = flags >> 32;
	for (int step = 0; step < CLASS_STEPS_MAX && found < RUBY_IVARS_MAX; step++) {
		err = class_shape(r, id, shape);
		if (err < 0 || !(uint8_t)shape[3])
			break;
		if ((uint8_t)shape[3] == CLASS_TYPE_IVAR && class_shaped_ivar(r, values, shape, &to[found]) == 0)
			found++;
		id = shape[3] >> 32;
	}
	return err < 0 ? err : found;
}

int ruby_class_ivars(const struct ruby *r, uint64_t class, struct ruby_ivar *to)
{
	return r->layout->vm_shapes ? class_shaped_ivars(r, class, to) : class_table_ivars(r, class, to);
}

static int class_ivar(const struct ruby *r, uint64_t class, uint64_t id, uint64_t *ret)
{
	struct ruby_ivar ivar[RUBY_IVARS_MAX];
	int n = id ? ruby_class_ivars(r, class, ivar) : -ENOENT;

	for (int i = 0; i < n; i++) {
		if (ivar[i].id == id) {
			*ret = ivar[i].value;
			return 0;
		}
	}
	return n < 0 ? n : -ENOENT;
}

static int class_field(const struct ruby *r, uint64_t class, uint8_t offset, enum ruby_param id, uint64_t *ret)
{
	if (offset)
		return memory_u64(r->memory, class + r->layout->class_ext + offset, ret);
	return class_ivar(r, class, r->attached->param[id], ret);
}

/* Classes below an anonymous one have paths that begin as those of objects do. */
static int class_path(const struct ruby *r, uint64_t class, char *to, size_t size)
{
	uint64_t path;
	int err = class_field(r, class, r->layout->class_path, RUBY_PARAM_CLASSPATH, &path);

	if (err == 0)
		err = ruby_string(r, path, to, size);
	if (err < 0)
		return err == -EBADMSG ? -ENOENT : err;
	return to[0] && to[0] != '#' ? 0 : -ENOENT;
}

static int class_flags(const struct ruby *r, uint64_t class, uint64_t *ret)
{
	int err = ruby_is_object(class) ? memory_u64(r->memory, class, ret) : -ENOENT;
	uint64_t type = err == 0 ? *ret & RUBY_T_MASK : 0;

	if (err < 0)
		return err;
	return type == RUBY_T_CLASS || type == RUBY_T_MODULE ? 0 : -ENOENT;
}

int ruby_owner_name(const struct ruby *r, uint64_t owner, char *to, size_t size)
{
	uint64_t flags;
	int err = class_flags(r, owner, &flags);
	bool singleton = err == 0 && (flags & RUBY_T_MASK) == RUBY_T_CLASS && (flags >> r->layout->singleton) & 1;

	if (singleton) {
		err = class_field(r, owner, r->layout->class_attached, RUBY_PARAM_ATTACHED, &owner);
		if (err == 0)
			err = class_flags(r, owner, &flags);
	}
	if (err == 0)
		err = class_path(r, owner, to, size - 1);
	if (err == 0)
		strcat(to, singleton ? "." : "#");
	return err;
}
