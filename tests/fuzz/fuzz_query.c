// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a question of a client, in pieces as they may come. */
#include "daemon/monitor/query.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What was taken is within its bounds, and its own line says the same. */
static void check_selection(const struct selection *s)
{
	_cleanup_(buf_done) struct buf line = {0};
	struct selection again = {0};
	char why[SELECTION_WHY];

	if (!s->seconds || s->seconds > SELECTION_SECONDS_MAX || s->hz > SELECTION_HZ_MAX ||
	    s->nr_targets > SELECTION_TARGETS_MAX)
		abort();
	selection_print(s, &line);
	if (selection_parse((const char *)line.data, line.len, &again, why) || strcmp(s->targets, again.targets) ||
	    s->hz != again.hz || s->stack_bytes != again.stack_bytes || s->seconds != again.seconds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char why[SELECTION_WHY];

	/* As the server reads: no more than fit, until there is an answer. */
	for (size_t n = 1; n <= MIN(len, (size_t)QUERY_LINE_MAX); n++) {
		struct query q = {0};
		int r;

		why[0] = '\0';
		r = query_parse((const char *)data, n, &q, why);
		if (r == 0 && data[n - 1] != '\n')
			abort();
		if (r == 0 && q.verb == QUERY_EXPLAIN && !q.pid)
			abort();
		if (r == 0 && q.verb == QUERY_SELECT)
			check_selection(&q.selection);
		if (r == -EDOM && !*why)
			abort();
		if (r != 0 && r != -EAGAIN && r != -EINVAL && r != -ERANGE && r != -EMSGSIZE && r != -EDOM)
			abort();
		if (r == -EAGAIN && n == QUERY_LINE_MAX)
			abort();
		if (r != -EAGAIN)
			break;
	}
	return 0;
}
