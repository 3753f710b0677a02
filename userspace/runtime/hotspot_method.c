// SPDX-License-Identifier: Apache-2.0
/*
 * Methods: names, readable signatures, files, and lines by bytecode (OpenJDK,
 * method.hpp, constMethod.hpp, constantPool.hpp).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"

#define CONST_MAX	256
#define HAS_LINES	1    /* ConstMethod's flag */
#define SYMBOL_MAX	1024 /* longer names are cut */
#define SIGNATURE_MAX	(UINT16_MAX + 1) /* of any symbol; of one that is cut, it is not known whether it is a signature */
#define LINES_STEP	0xff /* of the line table: two numbers follow */

static uint16_t field_u16(const uint8_t *at, uint16_t offset)
{
	uint16_t v;

	memcpy(&v, at + offset, sizeof(v));
	return v;
}

static bool hotspot_is_aligned(uint64_t address)
{
	return address && address % 8 == 0;
}

static int hotspot_const_read(const struct hotspot *h, struct memory *m, struct hotspot_method *method)
{
	uint16_t flags = h->const_flags != HOTSPOT_NONE ? h->const_flags : h->const_flags_21;
	uint8_t bytes[CONST_MAX];
	int err = memory_read(m, method->constant, bytes, h->const_bytes);

	if (err)
		return err;
	memcpy(&method->pool, bytes + h->const_constants, sizeof(method->pool));
	method->code = method->constant + h->const_bytes;
	method->code_size = field_u16(bytes, h->const_code_size);
	method->name = field_u16(bytes, h->const_name);
	method->signature = field_u16(bytes, h->const_signature);
	method->has_lines = flags != HOTSPOT_NONE && bytes[flags] & HAS_LINES;
	return hotspot_is_aligned(method->pool) ? 0 : -EBADMSG;
}

/* Whether all fields of a ConstMethod lie within what is read of it. */
static bool hotspot_const_fits(const struct hotspot *h)
{
	uint16_t flags = h->const_flags != HOTSPOT_NONE ? h->const_flags : h->const_flags_21;

	return h->const_bytes <= CONST_MAX && h->const_constants + 8 <= h->const_bytes &&
	       h->const_code_size + 2 <= h->const_bytes && h->const_name + 2 <= h->const_bytes &&
	       h->const_signature + 2 <= h->const_bytes && (flags == HOTSPOT_NONE || flags < h->const_bytes);
}

int hotspot_method_read(const struct hotspot *h, struct memory *m, uint64_t address, struct hotspot_method *ret)
{
	int err;

	memset(ret, 0, sizeof(*ret));
	ret->address = address;
	if (!hotspot_is_aligned(address) || !hotspot_const_fits(h))
		return -EBADMSG;
	err = memory_u64(m, address + h->method_const, &ret->constant);
	if (err || !hotspot_is_aligned(ret->constant))
		return err ? err : -EBADMSG;
	err = hotspot_const_read(h, m, ret);
	return err ? err : memory_u64(m, ret->pool + h->pool_cache, &ret->cache);
}

uint32_t hotspot_position(const struct hotspot_method *method, int32_t bci)
{
	return (uint32_t)method->code + (bci >= 0 && bci < method->code_size ? (uint32_t)bci : 0);
}

/* --- texts --- */

static int hotspot_symbol(const struct hotspot *h, struct memory *m, uint64_t at, char *to, size_t size)
{
	uint16_t len;

	if (!hotspot_is_aligned(at) || memory_read(m, at + h->symbol_length, &len, sizeof(len)))
		return -EFAULT;
	len = (uint16_t)MIN((size_t)len, size - 1);
	to[len] = '\0';
	return len ? memory_read(m, at + h->symbol_body, to, len) : 0;
}

static int hotspot_pool_symbol(const struct hotspot *h, struct memory *m, const struct hotspot_method *method,
			       uint32_t index, char *to, size_t size)
{
	uint64_t symbol;
	uint32_t length;

	if (memory_u32(m, method->pool + h->pool_length, &length) || !index || index >= length)
		return -EBADMSG;
	if (memory_u64(m, method->pool + h->pool_bytes + 8ULL * index, &symbol))
		return -EFAULT;
	return hotspot_symbol(h, m, symbol, to, size);
}

struct text { char *at; size_t left; };

static void text_add(struct text *t, const char *from, size_t len)
{
	len = MIN(len, t->left - 1);
	memcpy(t->at, from, len);
	t->at += len;
	t->left -= len;
	*t->at = '\0';
}

static const char *signature_primitive(char c)
{
	static const struct { char c; const char *name; } names[] = {
		{'Z', "boolean"}, {'B', "byte"}, {'C', "char"}, {'S', "short"}, {'I', "int"},
		{'J', "long"}, {'F', "float"}, {'D', "double"}, {'V', "void"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].c == c)
			return names[i].name;
	return NULL;
}

/* One type, without its package. Returns what follows it; NULL: it is broken. */
static const char *signature_type(const char *s, struct text *to)
{
	uint32_t dimensions = 0;
	const char *end, *name;

	for (; *s == '['; s++)
		dimensions++;
	end = *s == 'L' ? strchr(s, ';') : s;
	if (!*s || !end || (*s != 'L' && !signature_primitive(*s)))
		return NULL;
	if (*s == 'L') {
		for (name = s + 1, s++; s < end; s++)
			if (*s == '/')
				name = s + 1;
		text_add(to, name, (size_t)(end - name));
	} else {
		text_add(to, signature_primitive(*s), strlen(signature_primitive(*s)));
	}
	while (dimensions--)
		text_add(to, "[]", 2);
	return end + 1;
}

/* "(ILjava/lang/String;)V" as "(int, String)". */
static void signature_add(const char *s, struct text *to)
{
	text_add(to, "(", 1);
	for (s += *s == '('; s && *s && *s != ')'; s = signature_type(s, to))
		if (to->at[-1] != '(')
			text_add(to, ", ", 2);
	text_add(to, ")", 1);
}

/*
 * A hidden class, of 15 and later, has its address behind its name, which differs with each run (classFileParser.cpp,
 * mangle_hidden_class_name: "+0x" and digits, fewer of a class from the archive). Any other plus is the program's own.
 */
static size_t class_length(const char *name)
{
	const char *plus = strrchr(name, '+');

	if (!plus || strncmp(plus, "+0x", 3) || !plus[3] || plus[3 + strspn(plus + 3, "0123456789abcdef")])
		return strlen(name);
	return (size_t)(plus - name);
}

/* Packages are divided by dots. */
static void class_add(char *name, struct text *to)
{
	const size_t len = class_length(name);

	for (size_t i = 0; i < len; i++)
		if (name[i] == '/')
			name[i] = '.';
	text_add(to, name, len);
}

/* --- files and lines --- */

static void hotspot_file(const struct hotspot *h, struct memory *m, const struct hotspot_method *method, uint64_t holder,
			 const char *class, struct runtime_function *ret)
{
	uint64_t at = h->pool_file != HOTSPOT_NONE ? method->pool + h->pool_file : holder + h->klass_file;
	const char *slash = strrchr(class, '/');
	char file[256];
	uint16_t index;

	if (h->pool_file == HOTSPOT_NONE && h->klass_file == HOTSPOT_NONE)
		return;
	if (memory_read(m, at, &index, sizeof(index)) || hotspot_pool_symbol(h, m, method, index, file, sizeof(file)))
		return;
	snprintf(ret->file, sizeof(ret->file), "%.*s%s", slash ? (int)(slash + 1 - class) : 0, class, file);
}

static int hotspot_line_next(struct hotspot_numbers *n, int32_t *bci, int32_t *line)
{
	int32_t by_bci, by_line;
	uint8_t byte;

	if (hotspot_byte(n, &byte) || !byte)
		return -ENOENT;
	if (byte != LINES_STEP) {
		*bci += byte >> 3;
		*line += byte & 7;
		return 0;
	}
	if (hotspot_signed(n, &by_bci) || hotspot_signed(n, &by_line))
		return -ENOENT;
	*bci = (int32_t)((uint32_t)*bci + (uint32_t)by_bci);
	*line = (int32_t)((uint32_t)*line + (uint32_t)by_line);
	return 0;
}

static int hotspot_line_order(const void *a, const void *b)
{
	const struct runtime_line *x = a, *y = b;

	return (x->position > y->position) - (x->position < y->position);
}

/* The table lies behind the bytecodes. */
static void hotspot_lines(const struct hotspot *h, struct memory *m, const struct hotspot_method *method,
			  struct runtime_function *ret)
{
	struct hotspot_numbers n = {0};
	int32_t bci = 0, line = 0;

	hotspot_numbers_at(&n, m, h->version, method->code + method->code_size);
	while (ret->nr_lines < RUNTIME_LINES_MAX - 2 && hotspot_line_next(&n, &bci, &line) == 0) {
		if (bci < 0 || bci >= method->code_size || line <= 0)
			continue;
		ret->lines[ret->nr_lines++] = (struct runtime_line){(uint32_t)method->code + (uint32_t)bci, (uint32_t)line};
		if (!ret->start_line || (uint32_t)line < ret->start_line)
			ret->start_line = (uint32_t)line;
	}
	qsort(ret->lines, ret->nr_lines, sizeof(ret->lines[0]), hotspot_line_order);
}

/* Rows from its first bytecode to its end, where positions, which have 32 bits of the address, do not begin anew. */
static void hotspot_places(const struct hotspot *h, struct memory *m, const struct hotspot_method *method,
			   struct runtime_function *ret)
{
	const uint32_t code = (uint32_t)method->code;

	if (!method->code_size || code > UINT32_MAX - method->code_size)
		return;
	if (method->has_lines)
		hotspot_lines(h, m, method, ret);
	if (!ret->nr_lines || ret->lines[0].position != code) {
		memmove(ret->lines + 1, ret->lines, ret->nr_lines++ * sizeof(ret->lines[0]));
		ret->lines[0] = (struct runtime_line){code, 0};
	}
	ret->lines[ret->nr_lines++] = (struct runtime_line){code + method->code_size, 0};
	ret->is_bounded = true;
}

static int hotspot_class(const struct hotspot *h, struct memory *m, const struct hotspot_method *method, uint64_t *ret_holder,
			 char *to, size_t size)
{
	uint64_t symbol;

	if (memory_u64(m, method->pool + h->pool_holder, ret_holder) || memory_u64(m, *ret_holder + h->klass_name, &symbol))
		return -EFAULT;
	return hotspot_symbol(h, m, symbol, to, size);
}

bool hotspot_method_is(const struct hotspot *h, struct memory *m, const struct hotspot_method *method, const char *class,
		       const char *name)
{
	char text[SYMBOL_MAX];
	uint64_t holder;

	return hotspot_pool_symbol(h, m, method, method->name, text, sizeof(text)) == 0 && !strcmp(text, name) &&
	       hotspot_class(h, m, method, &holder, text, sizeof(text)) == 0 && !strcmp(text, class);
}

/* Whether the compiled code that a frame was in is still there, and its methods with it. */
static bool hotspot_is_there(const struct hotspot *h, struct memory *m, const struct runtime_frame *f)
{
	uint64_t block = f->cookie[2] - h->block_bytes;
	uint32_t id;
	uint8_t used;

	if (!f->cookie[2])
		return true;
	return memory_u8(m, block + h->block_used, &used) == 0 && used &&
	       memory_u32(m, f->cookie[2] + h->nmethod_id, &id) == 0 && id == f->cookie[1] >> 32;
}

/* Of a class that was unloaded, texts may be gone already. */
static bool hotspot_texts_are_whole(const char *class, const char *name, const char *signature)
{
	return *class && *name && *signature == '(' && strchr(signature, ')');
}

static int hotspot_function_read(const struct hotspot *h, struct memory *m, const struct runtime_frame *f,
				 struct runtime_function *ret)
{
	static char signature[SIGNATURE_MAX];
	char class[SYMBOL_MAX], name[SYMBOL_MAX];
	struct text text = {.at = ret->name, .left = sizeof(ret->name)};
	struct hotspot_method method;
	uint64_t holder;
	int err = hotspot_method_read(h, m, f->key, &method);

	if (err)
		return err;
	if (f->cookie[0] && f->cookie[0] != method.cache)
		return -ESTALE;
	err = hotspot_class(h, m, &method, &holder, class, sizeof(class));
	if (!err)
		err = hotspot_pool_symbol(h, m, &method, method.name, name, sizeof(name));
	if (!err)
		err = hotspot_pool_symbol(h, m, &method, method.signature, signature, sizeof(signature));
	if (err)
		return err;
	if (!hotspot_texts_are_whole(class, name, signature))
		return -ESTALE;
	hotspot_file(h, m, &method, holder, class, ret);
	class_add(class, &text);
	text_add(&text, ".", 1);
	text_add(&text, name, strlen(name));
	signature_add(signature, &text);
	hotspot_places(h, m, &method, ret);
	return 0;
}

int hotspot_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		   struct runtime_function *ret)
{
	const struct hotspot *h = hotspot_of(a);
	uint64_t epoch;
	int err;

	if (f->cookie[RUNTIME_COOKIE_EPOCH])
		memory_gather(m);
	err = hotspot_function_read(h, m, f, ret);
	memory_gather_done(m);
	if (err)
		return err;
	if (hotspot_epoch_now(h, m, &epoch))
		return -EFAULT;
	return (!f->cookie[RUNTIME_COOKIE_EPOCH] || f->cookie[RUNTIME_COOKIE_EPOCH] == epoch) && hotspot_is_there(h, m, f) ?
		       0 : -ESTALE;
}
