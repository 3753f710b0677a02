// SPDX-License-Identifier: Apache-2.0
/*
 * Names of PHP's functions and of their files. A string is known by the hash that
 * the sampler saw, wherever it lies by now: without opcache, a file's code and the
 * name of the file are freed as soon as the code ends, and so are eval's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "runtime/php.h"

#define CLASS_NAME   8 /* zend_class_entry; it begins with a byte, its type */
#define CLASS_TYPES  2 /* native, user */
#define CLASS_FLAGS  28
#define CLASS_STAYS  (1u << 7) /* ZEND_ACC_IMMUTABLE: opcache keeps it in shared memory */
#define STRING_TYPE  6 /* in the low bits of zend_string.gc.u.type_info */
#define STRING_HASH  8
#define STRING_BYTES 24
#define HASHED	     (1ULL << 63) /* a hash of 0 means that it is not computed yet */

#define INCLUDED_FILES 360 /* executor_globals.included_files, in all versions: a zend_array */
#define ARRAY_MASK     12
#define ARRAY_BUCKETS  16  /* before them, numbers of the first one for each remainder */
#define BUCKET_BYTES   32u
#define BUCKET_NEXT    12
#define BUCKET_HASH    16
#define BUCKET_KEY     24
#define CHAIN_MAX      64

/* --- strings --- */

static uint64_t string_hash(const char *s, uint64_t len)
{
	uint64_t hash = 5381;

	for (uint64_t i = 0; i < len; i++)
		hash = hash * 33 + (uint8_t)s[i];
	return hash | HASHED;
}

static int string_check(const uint64_t head[3], const char *text, uint64_t len, uint64_t *ret_hash)
{
	uint64_t hash = head[STRING_HASH / 8];

	if ((head[0] >> 32 & 15) != STRING_TYPE || (hash && !(hash & HASHED)))
		return -ESTALE;
	if (len == head[2]) {
		*ret_hash = string_hash(text, len);
		return hash && hash != *ret_hash ? -ESTALE : 0;
	}
	*ret_hash = hash;
	return hash ? 0 : -ESTALE;
}

/*
 * A string, cut to size; one with a NUL ends there (the name of an anonymous
 * class goes on with its place). A whole one has to agree with its hash.
 */
static int string_read(struct memory *m, uint64_t at, char *to, size_t size, uint64_t *ret_hash)
{
	uint64_t head[STRING_BYTES / 8], len;
	int r;

	r = memory_read(m, at, head, sizeof(head));
	if (r < 0)
		return r;
	len = MIN(head[2], (uint64_t)size - 1);
	r = memory_read(m, at + STRING_BYTES, to, len);
	if (r < 0)
		return r;
	to[len] = '\0';
	return string_check(head, to, len, ret_hash);
}

/* --- what the sampler saw --- */

static uint64_t check_part(uint64_t name_hash)
{
	return name_hash ? hash_u64(name_hash) : 0;
}

/* Code without a name has the hash of its file's; where the name is known, so is that of the file. */
uint64_t php_check(uint64_t file_hash, uint64_t name_hash)
{
	return file_hash ^ check_part(name_hash);
}

/* A hash that the sampler could not see is no part of the check. */
static bool check_fits(uint64_t check, uint64_t file, uint64_t name)
{
	return check == php_check(file, name) || check == php_check(0, name) || check == php_check(file, 0) || !check;
}

/* --- the file --- */

/* The key of an array's element. */
static int array_find(struct memory *m, uint64_t array, uint64_t hash, uint64_t *ret)
{
	uint64_t buckets, bucket[BUCKET_BYTES / 8];
	uint32_t mask, index;

	if (memory_u32(m, array + ARRAY_MASK, &mask) < 0 || memory_u64(m, array + ARRAY_BUCKETS, &buckets) < 0 ||
	    memory_u32(m, buckets + 4 * (uint64_t)(int64_t)(int32_t)((uint32_t)hash | mask), &index) < 0)
		return -EFAULT;
	for (uint32_t i = 0; i < CHAIN_MAX && index != UINT32_MAX; i++) {
		int r = memory_read(m, buckets + (uint64_t)index * BUCKET_BYTES, bucket, sizeof(bucket));

		if (r < 0)
			return r;
		*ret = bucket[BUCKET_KEY / 8];
		if (bucket[BUCKET_HASH / 8] == hash)
			return 0;
		index = (uint32_t)(bucket[BUCKET_NEXT / 8] >> 32);
	}
	return -ESTALE;
}

/* Files that were included are listed, by the hashes of their names, until the request ends. */
static int file_find(struct memory *m, const struct php_function *f, uint64_t hash, char *to, size_t size)
{
	uint64_t at, found;
	int r = f->globals ? array_find(m, f->globals + INCLUDED_FILES, hash, &at) : -ESTALE;

	if (r == 0)
		r = string_read(m, at, to, size, &found);
	return r == 0 && found != hash ? -ESTALE : r;
}

/* The file of eval's code, as PHP makes it from the place of its caller. */
static int file_of_eval(struct memory *m, const struct php_function *f, char *to, size_t size, uint64_t *ret_hash)
{
	uint32_t line = 0;
	int used, r = string_read(m, f->filename, to, size, ret_hash);

	if (r == 0)
		r = memory_u32(m, f->want->cookie[PHP_COOKIE_CALLER] + PHP_OP_LINE, &line);
	if (r < 0)
		return r;
	used = (int)strlen(to);
	used += snprintf(to + used, size - (size_t)used, "(%u) : eval()'d code", line);
	*ret_hash = string_hash(to, MIN((size_t)used, size - 1));
	return 0;
}

static int file_read(struct memory *m, const struct php_function *f, char *to, size_t size, uint64_t *ret_hash)
{
	if (f->want->key & PHP_KEY_EVAL && f->want->cookie[PHP_COOKIE_CALLER])
		return file_of_eval(m, f, to, size, ret_hash);
	*ret_hash = 0;
	return f->filename ? string_read(m, f->filename, to, size, ret_hash) : 0;
}

/* Fails unless the name that belongs to the check is found. */
static int file_name(struct memory *m, const struct php_function *f, uint64_t name_hash, struct runtime_function *ret)
{
	uint64_t check = f->want->cookie[PHP_COOKIE_CHECK], hash = 0;
	int r = file_read(m, f, ret->file, sizeof(ret->file), &hash);

	if (r == 0 && check_fits(check, hash, name_hash))
		return 0;
	r = file_find(m, f, check ^ check_part(name_hash), ret->file, sizeof(ret->file));
	if (r < 0)
		ret->file[0] = '\0';
	return r < 0 ? -ESTALE : 0;
}

/* --- the function --- */

static void name_code(const struct php_function *f, struct runtime_function *ret)
{
	const char *slash = strrchr(ret->file, '/');

	if (f->want->key & PHP_KEY_EVAL)
		snprintf(ret->name, sizeof(ret->name), "{eval}");
	else if (f->want->key & PHP_KEY_INCLUDED)
		snprintf(ret->name, sizeof(ret->name), "include %.*s", RUNTIME_NAME_MAX / 2,
			 slash ? slash + 1 : ret->file);
	else
		snprintf(ret->name, sizeof(ret->name), "{main}");
}

static bool class_may_be_another(const struct php_function *f, const uint64_t *class)
{
	uint32_t flags = (uint32_t)(class[CLASS_FLAGS / 8] >> CLASS_FLAGS % 8 * 8);

	return f->want->key & PHP_KEY_FLOATING && f->requests && (uint8_t)class[0] == CLASS_TYPES && !(flags & CLASS_STAYS);
}

/* "Class::"; returns its length. */
static int name_class(struct memory *m, const struct php_function *f, char *to, size_t size)
{
	uint64_t class = f->want->cookie[PHP_COOKIE_SCOPE], at[4], hash;
	uint8_t type;
	int r;

	if (!class)
		return 0;
	r = memory_read(m, class, at, sizeof(at));
	if (r < 0)
		return r;
	type = (uint8_t)at[0];
	if (!type || type > CLASS_TYPES)
		return -ESTALE;
	if (class_may_be_another(f, at))
		return 0;
	r = string_read(m, at[CLASS_NAME / 8], to, size - 2, &hash);
	if (r < 0)
		return r;
	memcpy(to + strlen(to), "::", 3);
	return (int)strlen(to);
}

static int name_function(struct memory *m, const struct php_function *f, struct runtime_function *ret,
			 uint64_t *ret_hash)
{
	int used = name_class(m, f, ret->name, sizeof(ret->name) / 2);

	if (used < 0)
		return used;
	return string_read(m, f->want->cookie[PHP_COOKIE_NAME], ret->name + used, sizeof(ret->name) - (size_t)used,
			   ret_hash);
}

/* Code is what it is even where its file is not known any more, but for a file's: that is its name. */
static int name_of_code(struct memory *m, const struct php_function *f, struct runtime_function *ret)
{
	int r = file_name(m, f, 0, ret);

	if (r < 0 && !(f->want->key & PHP_KEY_EVAL) && f->want->key & PHP_KEY_INCLUDED)
		return r;
	name_code(f, ret);
	return 0;
}

int php_names_read(struct memory *m, const struct php_function *f, struct runtime_function *ret)
{
	uint64_t hash = 0;
	int r;

	if (f->want->key & PHP_KEY_EVAL || !f->want->cookie[PHP_COOKIE_NAME])
		return name_of_code(m, f, ret);
	r = name_function(m, f, ret, &hash);
	return r < 0 ? r : file_name(m, f, hash, ret);
}
