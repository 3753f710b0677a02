// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a question of a client, in pieces as they may come. */
#include "daemon/monitor/query.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct query q = {0};

	/* As the server reads: no more than fit, until there is an answer. */
	for (size_t n = 1; n <= MIN(len, (size_t)QUERY_LINE_MAX); n++) {
		int r = query_parse((const char *)data, n, &q);

		if (r == 0 && (!q.pid || data[n - 1] != '\n'))
			abort();
		if (r != 0 && r != -EAGAIN && r != -EINVAL && r != -ERANGE && r != -EMSGSIZE)
			abort();
		if (r == -EAGAIN && n == QUERY_LINE_MAX)
			abort();
		if (r != -EAGAIN)
			break;
	}
	return 0;
}
