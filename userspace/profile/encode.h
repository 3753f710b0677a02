/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an assembled request to an ExportProfilesServiceRequest. encode.c is
 * the only file that knows the protocol's generated types: a change of the
 * protocol touches it and proto/. Used within profile/ only.
 */
#ifndef OTP_PROFILE_ENCODE_H
#define OTP_PROFILE_ENCODE_H

#include "profile/assemble.h"

struct encode_times {
	uint64_t start_unix_ns, duration_ns;
	const struct origins *origins; /* borrowed */
	const char *scope_version;
};

/* Replaces what out holds. -ENOMEM. */
int encode_request(const struct out_request *q, const struct encode_times *t, struct buf *out);

#endif
