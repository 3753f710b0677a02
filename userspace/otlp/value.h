/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attribute values of OTLP: references to strings made inline, encoded, and
 * as text.
 *
 * Called by readers of requests, one thread. Nesting is bounded by
 * otlp_decode. A failed append is noted in out (base/buf.h), which the caller
 * checks once.
 */
#ifndef OTP_OTLP_VALUE_H
#define OTP_OTLP_VALUE_H

#include "base/buf.h"
#include "otlp/messages.h"

enum otlp_value_type { OTLP_VALUE_OTHER, OTLP_VALUE_STRING, OTLP_VALUE_INT };

/* A string by its index, borrowed for as long as the value; NULL: out of range. */
typedef const char *otlp_string_fn(void *ctx, int32_t index);

/* Changes the value in place: no reference is left, all text is clean (base/utf8.h). -EBADMSG. */
int otlp_value_resolve(OtlpAnyValue *v, otlp_string_fn *string, void *ctx);
const char *otlp_value_string(const OtlpAnyValue *v); /* its string, borrowed; NULL: v is NULL, or no string */
void otlp_value_pack(const OtlpAnyValue *v, struct buf *out);
/* The value in readable form; lists and maps have no text. *ret_number: of OTLP_VALUE_INT, else unchanged. */
enum otlp_value_type otlp_value_text(const OtlpAnyValue *v, struct buf *out, int64_t *ret_number);

#endif
