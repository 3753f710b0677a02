/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP in JSON to OTLP in protobuf: names in lowerCamelCase, unknown ones
 * ignored, trace, span and profile ids in hexadecimal, other bytes in base64,
 * 64-bit numbers as numbers or texts, enumerations as numbers.
 *
 * Called by the receiver, one thread. The message's own descriptors say what its
 * fields are called and of what type they are, so a new field needs nothing here.
 * Bounds: OTLP_DEPTH_MAX levels; RECEIVE_JSON_MAX bytes of text, since the
 * parser's values may take 32 times as much; memory_bytes for the message.
 * Errors: -EBADMSG, no JSON, or a value of the wrong type; -E2BIG; -ENOMEM.
 */
#ifndef OTP_HUB_RECEIVE_JSON_H
#define OTP_HUB_RECEIVE_JSON_H

#include "base/buf.h"
#include "otlp/limits.h"

#define RECEIVE_JSON_MAX (8u << 20)

int receive_json(const void *text, size_t len, const struct otlp_limits *limits, struct buf *out);

#endif
