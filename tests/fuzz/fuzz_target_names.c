// SPDX-License-Identifier: Apache-2.0
/* Any bytes as an opener's answer about containers: the question is settled, and a failure is asked again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/monitor/target_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char id[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	struct target_names n = {0};
	char path[HOST_PATH_MAX];

	if (target_names_find(&n, id, 1) || !target_names_question(&n, path))
		abort();
	target_names_answer(&n, 0, (const char *)data, len, 1);
	if (!target_names_settled(&n))
		abort();
	if (!target_names_find(&n, id, UINT64_MAX - 1) && target_names_settled(&n))
		abort();
	target_names_done(&n);
	return 0;
}
