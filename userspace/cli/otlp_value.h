/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attribute values of OTLP: references to strings made inline, encoded, and
 * as text. Called by the reader, one thread. Nesting is bounded by
 * otlp_decode.
 */
#ifndef OTP_CLI_OTLP_VALUE_H
#define OTP_CLI_OTLP_VALUE_H

#include "base/buf.h"
#include "cli/otlp.h"
#include "cli/recording.h"

/* A string by its index, borrowed for as long as the value; NULL: out of range. */
typedef const char *otlp_string_fn(void *ctx, int32_t index);

/* Changes the value in place: no reference is left, all text is valid UTF-8. -EBADMSG, -ENOMEM. */
int otlp_value_resolve(OtlpAnyValue *v, otlp_string_fn *string, void *ctx);
void otlp_value_pack(const OtlpAnyValue *v, struct buf *out);
/* The value as people read it; lists and maps have none. */
enum rec_value_type otlp_value_text(const OtlpAnyValue *v, struct buf *out, int64_t *ret_number);

#endif
