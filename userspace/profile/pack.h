/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs an assembled request into the bytes of an ExportProfilesServiceRequest.
 * pack.c is the only file of profile/ that uses the protocol's generated types:
 * a change of the protocol touches it and proto/. Used within profile/ only.
 */
#ifndef OTP_PROFILE_PACK_H
#define OTP_PROFILE_PACK_H

#include "profile/assemble.h"

/* Values that all profiles of a request share. */
struct pack_times {
	uint64_t start_unix_ns, duration_ns;
	const struct origins *origins; /* borrowed */
	const char *scope_version; /* borrowed; NULL: none */
};

/* Replaces the content of out. Time is linear in the request. -ENOMEM. */
int pack_request(const struct out_request *q, const struct pack_times *t, struct buf *out);

#endif
