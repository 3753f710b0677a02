// SPDX-License-Identifier: Apache-2.0
#include "otlp/value.h"

#include <errno.h>
#include <inttypes.h>

#include "base/utf8.h"

#define VALUE_CASE(name) OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##name

static int value_resolve_array(OtlpArrayValue *a, otlp_string_fn *string, void *ctx)
{
	size_t i;
	int r = 0;

	for (i = 0; a && !r && i < a->n_values; i++)
		r = otlp_value_resolve(a->values[i], string, ctx);
	return r;
}

static int value_resolve_map(OtlpKeyValueList *list, otlp_string_fn *string, void *ctx)
{
	size_t i;
	int r = 0;

	for (i = 0; list && !r && i < list->n_values; i++) {
		OtlpKeyValue *kv = list->values[i];

		if (kv->key_strindex)
			kv->key = (char *)string(ctx, kv->key_strindex);
		else if (kv->key)
			utf8_clean_str(kv->key);
		if (!kv->key)
			return -EBADMSG;
		kv->key_strindex = 0;
		if (kv->value)
			r = otlp_value_resolve(kv->value, string, ctx);
	}
	return r;
}

int otlp_value_resolve(OtlpAnyValue *v, otlp_string_fn *string, void *ctx)
{
	switch (v->value_case) {
	case VALUE_CASE(STRING_VALUE):
		/* A protobuf string must be UTF-8: receivers refuse the whole request otherwise. */
		if (v->string_value)
			utf8_clean_str(v->string_value);
		return 0;
	case VALUE_CASE(STRING_VALUE_STRINDEX):
		v->string_value = (char *)string(ctx, v->string_value_strindex);
		v->value_case = VALUE_CASE(STRING_VALUE);
		return v->string_value ? 0 : -EBADMSG;
	case VALUE_CASE(ARRAY_VALUE):
		return value_resolve_array(v->array_value, string, ctx);
	case VALUE_CASE(KVLIST_VALUE):
		return value_resolve_map(v->kvlist_value, string, ctx);
	default:
		return 0;
	}
}

const char *otlp_value_string(const OtlpAnyValue *v)
{
	return v && v->value_case == VALUE_CASE(STRING_VALUE) ? v->string_value : NULL;
}

void otlp_value_pack(const OtlpAnyValue *v, struct buf *out)
{
	size_t len = protobuf_c_message_get_packed_size(&v->base);
	uint8_t *to = buf_reserve(out, len);

	if (!to)
		return;
	protobuf_c_message_pack(&v->base, to);
	buf_commit(out, len);
}

enum otlp_value_type otlp_value_text(const OtlpAnyValue *v, struct buf *out, int64_t *ret_number)
{
	switch (v->value_case) {
	case VALUE_CASE(STRING_VALUE):
		if (v->string_value)
			buf_add_str(out, v->string_value);
		return OTLP_VALUE_STRING;
	case VALUE_CASE(INT_VALUE):
		*ret_number = v->int_value;
		buf_printf(out, "%" PRId64, v->int_value);
		return OTLP_VALUE_INT;
	case VALUE_CASE(BOOL_VALUE):
		buf_add_str(out, v->bool_value ? "true" : "false");
		return OTLP_VALUE_OTHER;
	case VALUE_CASE(DOUBLE_VALUE):
		buf_printf(out, "%g", v->double_value);
		return OTLP_VALUE_OTHER;
	default:
		return OTLP_VALUE_OTHER;
	}
}
