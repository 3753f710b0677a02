// SPDX-License-Identifier: Apache-2.0
/* Headers of a request, a line each: a name that is none of the hub's is never let through. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "hub/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct guard g = {.token = "0123456789abcdef"};
	_cleanup_(freep) char *text = calloc(size + 1, 1);
	char *at = text;
	struct guard_request r = {.method = "PUT"};

	if (!text)
		return 0;
	memcpy(text, data, size);
	r.host = strsep(&at, "\n");
	r.origin = strsep(&at, "\n");
	r.sec_fetch_site = strsep(&at, "\n");
	r.authorization = strsep(&at, "\n");
	if (guard_check(&g, &r) != GUARD_PASS)
		return 0;
	if (!strcasestr(r.host, "localhost") && !strstr(r.host, "127.0.0.1") && !strstr(r.host, "::1"))
		abort();
	if (!strstr(r.authorization, g.token))
		abort();
	return 0;
}
