/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request within the exporter: compressed once for each coding, held in one
 * of its forms. The creator's reference is to the uncompressed form; the others
 * may be held as long as any reference exists.
 */
#ifndef OTP_EXPORT_REQUEST_H
#define OTP_EXPORT_REQUEST_H

#include <stdbool.h>

#include "export/export.h"

/*
 * A request from disk, in one form, whose reference is the caller's: *ret_data
 * is to be filled with its len bytes. -ENOMEM.
 */
int request_restore(uint64_t id, uint64_t profiles, const struct ledger_counts *samples, size_t len, enum export_coding coding,
		    struct export_request **ret, void **ret_data);
/* Makes the form, if it is not there. -ENOMEM, -EFBIG: does not shrink. */
int request_compress(struct export_request *r, enum export_coding coding);
/* The same for a request that may have no form but from, compressed, which is expanded for it. -ENOMEM. */
int request_recode(struct export_request *r, enum export_coding from, enum export_coding coding);
void request_hold(struct export_request *r, enum export_coding coding);
void request_release(struct export_request *r, enum export_coding coding);

static inline bool request_has(const struct export_request *r, enum export_coding coding)
{
	return r->form[coding].data;
}

static inline size_t request_bytes(const struct export_request *r, enum export_coding coding)
{
	return r->form[coding].len;
}

/* A request of these bytes, which are copied. Owned. -ENOMEM. */
int request_new_copy(const void *data, size_t len, uint64_t id, const struct ledger_counts *samples,
		     struct export_request **ret);

/* Number of Profile messages in an ExportProfilesServiceRequest, up to the first malformed field. */
uint64_t request_count_profiles(const void *data, size_t len);

#endif
