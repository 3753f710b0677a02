/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the exporter itself does with a request: compress it once, hold it in
 * one of its forms. The creator's reference is one of the plain form; the
 * compressed one may be held as long as any reference exists.
 */
#ifndef OTP_EXPORT_REQUEST_H
#define OTP_EXPORT_REQUEST_H

#include <stdbool.h>

#include "export/export.h"

int request_compress(struct export_request *r); /* -ENOMEM, -EFBIG: does not shrink */
void request_hold(struct export_request *r, bool gzip);
void request_release(struct export_request *r, bool gzip);

static inline size_t request_bytes(const struct export_request *r, bool gzip)
{
	return gzip ? r->gz_len : r->len;
}

/* Profile messages of an ExportProfilesServiceRequest, up to where it stops making sense. */
uint64_t request_count_profiles(const void *data, size_t len);

#endif
