/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one OTLP ExportProfilesServiceRequest and passes it to a sink
 * (sink.h): decodes it, checks every index, translates the entries that samples
 * refer to, and adds the samples once the whole request is valid.
 *
 * Called by code that stores profiles, one thread per call; no state is kept
 * between calls. data is borrowed for the call.
 * Errors: -EBADMSG, not a request, or an index, a value or a time out of
 * range; -E2BIG, beyond a limit; -ENOMEM; else the sink's error. On error, the
 * sink's add was not called.
 * Cost: a pass over the request, a decoded copy of up to 64 times its bytes
 * for the duration of the call, 8 bytes for each entry of its tables and 40
 * for each sample.
 */
#ifndef OTP_OTLP_READ_H
#define OTP_OTLP_READ_H

#include <stddef.h>

#include "otlp/limits.h"
#include "otlp/sink.h"

int otlp_read(const void *data, size_t len, const struct otlp_limits *limits, const struct otlp_sink *sink, void *ctx);

#endif
