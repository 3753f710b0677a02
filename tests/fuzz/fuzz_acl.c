// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a directory's access list; what is one takes a user and stays one. */
#include "daemon/sandbox/acl.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t bytes[ACL_BYTES_MAX];
	struct acl a, again;

	if (acl_read(data, len, &a) || acl_grant(&a, 1000))
		return 0;
	if (acl_read(bytes, acl_write(&a, bytes), &again) || again.nr != a.nr)
		abort();
	acl_lets_write(&again, &(struct acl_ids){0, 0, 1000, 1000});
	return 0;
}
