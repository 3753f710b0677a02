/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Safe decoding of a protobuf message that others wrote.
 *
 * Called by readers of requests and of stored attribute values, one thread
 * per arena. The arena owns the decoded message and all that it refers to;
 * nothing refers to data afterwards.
 * Bounds: the arena's, and OTLP_DEPTH_MAX levels of messages in messages.
 * Errors: -EBADMSG, no message of that type, or nested too deep; -E2BIG, the
 * arena's bound. The arena may then hold parts of the message.
 */
#ifndef OTP_OTLP_DECODE_H
#define OTP_OTLP_DECODE_H

#include <stddef.h>

#include "base/arena.h"
#include "otlp/messages.h"

#define OTLP_DEPTH_MAX 32

int otlp_decode(const ProtobufCMessageDescriptor *type, const void *data, size_t len, struct arena *a,
		ProtobufCMessage **ret);

#endif
