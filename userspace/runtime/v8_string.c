// SPDX-License-Identifier: Apache-2.0
/*
 * Strings of V8: flat ones in its heap or outside of it, of one or two bytes a
 * character, and those that are made of others (V8, string.tq).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/v8.h"

#define INDIRECT_MAX 8	 /* strings that stand for another one, or for a part of it */
#define PARTS_MAX    32	 /* of a string that is made of two, one of which is, and so on */
#define CHARS_MAX    1024 /* of a part that are read; longer names are cut */

enum { STRING_SEQUENTIAL, STRING_CONS, STRING_EXTERNAL, STRING_SLICED, STRING_THIN = 5 };

bool v8_is_string(const struct v8 *v, struct memory *m, uint64_t object)
{
	uint16_t type;

	return v8_type(v, m, object, &type) == 0 && type < v->first_nonstring;
}

static int v8_string_type(const struct v8 *v, struct memory *m, uint64_t object, uint16_t *ret, uint32_t *ret_len)
{
	int err = v8_type(v, m, object, ret);

	if (err)
		return err;
	return *ret < v->first_nonstring ? memory_u32(m, object - 1 + v->string_length, ret_len) : -EBADMSG;
}

/* A cons string that was flattened has an empty second part. */
static int v8_cons_first(const struct v8 *v, struct memory *m, uint64_t object, uint64_t *ret)
{
	uint64_t second;
	uint32_t len;
	int err = v8_field(m, object, v->cons_second, &second);

	if (!err)
		err = v8_is_object(second) ? memory_u32(m, second - 1 + v->string_length, &len) : -EBADMSG;
	if (err || len)
		return err ? err : -EBADMSG;
	return v8_field(m, object, v->cons_first, ret);
}

/* The data's address lies behind the one of the resource. */
static int v8_flat_here(const struct v8 *v, struct memory *m, uint64_t object, uint16_t type, struct v8_flat *ret)
{
	ret->wide = (type & v->encoding_mask) != v->one_byte;
	ret->at = object - 1 + v->string_bytes;
	if ((type & v->representation_mask) != STRING_EXTERNAL)
		return 0;
	return memory_u64(m, object - 1 + v->external_resource + 8, &ret->at);
}

int v8_flat(const struct v8 *v, struct memory *m, uint64_t object, struct v8_flat *ret)
{
	uint32_t from = 0, len = UINT32_MAX, own;
	uint16_t type;

	for (int i = 0; i < INDIRECT_MAX; i++) {
		uint16_t kind;
		int32_t offset;
		int err = v8_string_type(v, m, object, &type, &own);

		if (err)
			return err;
		len = len == UINT32_MAX ? own : len;
		kind = type & v->representation_mask;
		if (kind == STRING_SEQUENTIAL || kind == STRING_EXTERNAL) {
			err = v8_flat_here(v, m, object, type, ret);
			if (err || from > own || len > own - from)
				return err ? err : -EBADMSG;
			ret->at += (uint64_t)from << ret->wide;
			ret->len = len;
			return 0;
		}
		if (kind == STRING_CONS) {
			err = v8_cons_first(v, m, object, &object);
		} else if (kind == STRING_THIN) {
			err = v8_field(m, object, v->thin_actual, &object);
		} else {
			err = v8_smi(m, object, v->sliced_offset, &offset);
			from += err || offset < 0 ? 0 : (uint32_t)offset;
			err = err ? err : v8_field(m, object, v->sliced_parent, &object);
		}
		if (err)
			return err;
	}
	return -EBADMSG;
}

/* --- as text --- */

struct v8_text { char *at; size_t left; };

static void v8_text_add(struct v8_text *t, uint32_t c)
{
	char bytes[3];
	size_t n = 0;

	if (c < 0x80) {
		bytes[n++] = (char)c;
	} else if (c < 0x800) {
		bytes[n++] = (char)(0xc0 | c >> 6);
		bytes[n++] = (char)(0x80 | (c & 0x3f));
	} else {
		bytes[n++] = (char)(0xe0 | c >> 12);
		bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[n++] = (char)(0x80 | (c & 0x3f));
	}
	if (n >= t->left) {
		t->left = 1; /* no part of a character, and nothing behind it */
		return;
	}
	memcpy(t->at, bytes, n);
	t->at += n;
	t->left -= n;
}

static int v8_text_add_flat(struct memory *m, const struct v8_flat *f, struct v8_text *t)
{
	uint8_t bytes[2 * CHARS_MAX];
	uint32_t n = MIN(MIN(f->len, (uint32_t)CHARS_MAX), (uint32_t)t->left);
	int err = n ? memory_read(m, f->at, bytes, (size_t)n << f->wide) : 0;

	for (uint32_t i = 0; !err && i < n && t->left > 1; i++)
		v8_text_add(t, f->wide ? bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8 : bytes[i]);
	return err;
}

/* Parts from the left; those that are still to come wait. */
int v8_string(const struct v8 *v, struct memory *m, uint64_t object, char *to, size_t size)
{
	struct v8_text t = {.at = to, .left = size};
	uint64_t waiting[PARTS_MAX];
	uint32_t nr = 0, len;
	struct v8_flat f;
	uint16_t type;
	int err = 0;

	waiting[nr++] = object;
	for (int i = 0; !err && nr && t.left > 1 && i < 4 * PARTS_MAX; i++) {
		object = waiting[--nr];
		err = v8_string_type(v, m, object, &type, &len);
		if (err || (type & v->representation_mask) != STRING_CONS) {
			err = err ? err : v8_flat(v, m, object, &f);
			err = err ? err : v8_text_add_flat(m, &f, &t);
			continue;
		}
		if (nr + 2 > PARTS_MAX)
			break;
		err = v8_field(m, object, v->cons_second, &waiting[nr]);
		err = err ? err : v8_field(m, object, v->cons_first, &waiting[nr + 1]);
		nr += 2;
	}
	*t.at = '\0';
	return err;
}
