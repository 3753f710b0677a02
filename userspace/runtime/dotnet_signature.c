// SPDX-License-Identifier: Apache-2.0
/*
 * Signatures of methods (ECMA-335, II.23.2), as C# writes the types of
 * parameters; without namespaces, which make them unreadable.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define BYTES_MAX  512
#define DEPTH_MAX  12
#define PARAMS_MAX 64
#define NAME_MAX_LEN 256

enum { T_PTR = 0x0f, T_BYREF = 0x10, T_VALUE = 0x11, T_CLASS = 0x12, T_VAR = 0x13, T_ARRAY = 0x14, T_INSTANCE = 0x15,
       T_FUNCTION = 0x1b, T_VECTOR = 0x1d, T_MVAR = 0x1e, T_REQUIRED = 0x1f, T_OPTIONAL = 0x20, T_SENTINEL = 0x41,
       T_PINNED = 0x45 };

#define GENERIC 0x10 /* of a calling convention */

struct dotnet_signature {
	const struct dotnet_metadata *d;
	uint32_t type, method;
	struct dotnet_bytes in;
	struct dotnet_text *to;
};

static const char *dotnet_primitive(uint8_t type)
{
	static const char *const names[] = {
		[0x01] = "void", [0x02] = "bool", [0x03] = "char", [0x04] = "sbyte", [0x05] = "byte", [0x06] = "short",
		[0x07] = "ushort", [0x08] = "int", [0x09] = "uint", [0x0a] = "long", [0x0b] = "ulong", [0x0c] = "float",
		[0x0d] = "double", [0x0e] = "string", [0x16] = "TypedReference", [0x18] = "nint", [0x19] = "nuint", [0x1c] = "object",
	};

	return type < ARRAY_SIZE(names) ? names[type] : NULL;
}

/* By a number of table and row; without the count of generic parameters. */
static int dotnet_type_ref(struct dotnet_signature *s)
{
	static const uint8_t tables[] = {DOTNET_TYPE_DEF, DOTNET_TYPE_REF};
	char name[NAME_MAX_LEN];
	uint32_t coded, at;

	if (dotnet_number(&s->in, &coded))
		return -EBADMSG;
	if ((coded & 3) >= ARRAY_SIZE(tables)) {
		dotnet_text(s->to, "?");
		return 0;
	}
	if (dotnet_cell(s->d, tables[coded & 3], coded >> 2, 1, &at) || dotnet_string(s->d, at, name, sizeof(name)))
		return -EBADMSG;
	name[strcspn(name, "`")] = '\0';
	dotnet_text(s->to, name);
	return 0;
}

static int dotnet_parameter(struct dotnet_signature *s, bool of_method)
{
	char name[NAME_MAX_LEN];
	uint32_t n;

	if (dotnet_number(&s->in, &n))
		return -EBADMSG;
	if (dotnet_generic_name(s->d, of_method ? s->method << 1 | 1 : s->type << 1, n, name, sizeof(name)))
		strcpy(name, "?");
	dotnet_text(s->to, name);
	return 0;
}

static int dotnet_type(struct dotnet_signature *s, unsigned depth);

/* List<int> */
static int dotnet_instance(struct dotnet_signature *s, unsigned depth)
{
	uint32_t n;
	uint8_t kind;
	int err = dotnet_byte(&s->in, &kind) || dotnet_type_ref(s) || dotnet_number(&s->in, &n) || n > PARAMS_MAX ? -EBADMSG : 0;

	dotnet_text(s->to, "<");
	for (uint32_t i = 0; !err && i < n; i++) {
		dotnet_text(s->to, i ? ", " : "");
		err = dotnet_type(s, depth + 1);
	}
	dotnet_text(s->to, ">");
	return err;
}

/* int[,]: the type, then rank, sizes and lower bounds. */
static int dotnet_array(struct dotnet_signature *s, unsigned depth)
{
	uint32_t rank, n, skipped;
	int err = dotnet_type(s, depth + 1) || dotnet_number(&s->in, &rank) || rank > PARAMS_MAX ? -EBADMSG : 0;

	if (err)
		return err;
	dotnet_text(s->to, "[");
	for (uint32_t i = 1; i < rank; i++)
		dotnet_text(s->to, ",");
	dotnet_text(s->to, "]");
	for (int list = 0; list < 2; list++) {
		if (dotnet_number(&s->in, &n) || n > PARAMS_MAX)
			return -EBADMSG;
		while (n--)
			if (dotnet_number(&s->in, &skipped))
				return -EBADMSG;
	}
	return 0;
}

/* Parameters, behind the calling convention. */
static int dotnet_parameters(struct dotnet_signature *s, uint8_t convention, unsigned depth)
{
	char hidden[NAME_MAX_LEN];
	struct dotnet_text nowhere = {.at = hidden, .left = sizeof(hidden)}, *to = s->to;
	uint32_t n, generics;
	int err;

	if ((convention & GENERIC && dotnet_number(&s->in, &generics)) || dotnet_number(&s->in, &n))
		return -EBADMSG;
	s->to = &nowhere; /* what it returns */
	err = dotnet_type(s, depth + 1);
	s->to = to;
	dotnet_text(to, "(");
	for (uint32_t i = 0; !err && i < n && to->left > 1; i++) {
		dotnet_text(to, i ? ", " : "");
		err = dotnet_type(s, depth + 1);
	}
	dotnet_text(to, ")");
	return err;
}

static int dotnet_function_type(struct dotnet_signature *s, unsigned depth)
{
	uint8_t convention;

	dotnet_text(s->to, "delegate*");
	return dotnet_byte(&s->in, &convention) ? -EBADMSG : dotnet_parameters(s, convention, depth);
}

/* One that has another one within. */
static int dotnet_type_around(struct dotnet_signature *s, const char *before, const char *behind, unsigned depth)
{
	int err;

	dotnet_text(s->to, before);
	err = dotnet_type(s, depth + 1);
	dotnet_text(s->to, behind);
	return err;
}

/* A modifier names a type that the parameter's own follows. */
static int dotnet_modified(struct dotnet_signature *s, unsigned depth)
{
	uint32_t coded;

	return dotnet_number(&s->in, &coded) ? -EBADMSG : dotnet_type(s, depth + 1);
}

static int dotnet_type(struct dotnet_signature *s, unsigned depth)
{
	uint8_t type;

	if (depth > DEPTH_MAX || dotnet_byte(&s->in, &type))
		return -EBADMSG;
	if (dotnet_primitive(type)) {
		dotnet_text(s->to, dotnet_primitive(type));
		return 0;
	}
	switch (type) {
	case T_PTR:
		return dotnet_type_around(s, "", "*", depth);
	case T_BYREF:
		return dotnet_type_around(s, "ref ", "", depth);
	case T_VECTOR:
		return dotnet_type_around(s, "", "[]", depth);
	case T_SENTINEL:
	case T_PINNED:
		return dotnet_type_around(s, "", "", depth);
	case T_VALUE:
	case T_CLASS:
		return dotnet_type_ref(s);
	case T_VAR:
	case T_MVAR:
		return dotnet_parameter(s, type == T_MVAR);
	case T_ARRAY:
		return dotnet_array(s, depth);
	case T_INSTANCE:
		return dotnet_instance(s, depth);
	case T_FUNCTION:
		return dotnet_function_type(s, depth);
	case T_REQUIRED:
	case T_OPTIONAL:
		return dotnet_modified(s, depth);
	default:
		return -EBADMSG;
	}
}

int dotnet_signature(const struct dotnet_metadata *d, uint32_t type, uint32_t method, uint32_t blob, struct dotnet_text *to)
{
	uint8_t bytes[BYTES_MAX], convention;
	struct dotnet_signature s = {.d = d, .type = type, .method = method, .in = {.at = bytes}, .to = to};
	uint32_t len;
	int err = dotnet_blob(d, blob, bytes, sizeof(bytes), &len);

	if (err)
		return err;
	s.in.end = bytes + len;
	return dotnet_byte(&s.in, &convention) ? -EBADMSG : dotnet_parameters(&s, convention, 0);
}
