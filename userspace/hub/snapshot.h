/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer as a file: pprof and OTLP for other tools, speedscope and SVG to look
 * at, collapsed stacks for scripts.
 *
 * Called by the API, one thread. Everything is borrowed for the call; the file
 * is appended to a buffer.
 * Errors: -E2BIG, a bound; -ENOMEM.
 */
#ifndef OTP_HUB_SNAPSHOT_H
#define OTP_HUB_SNAPSHOT_H

#include "base/buf.h"
#include "hub/answer.h"
#include "hub/store.h"

struct snapshot {
	const struct answer *answer; /* finished */
	const struct workload *workload;
	const struct hub_type *type;
	const char *version; /* of otprof */
};

struct snapshot_format {
	const char *name, *suffix, *type; /* static: "pprof", ".pb.gz", media type */
	int (*write)(const struct snapshot *s, struct buf *out);
};

const struct snapshot_format *snapshot_format_find(const char *name); /* static; NULL: no such format */

#endif
