// SPDX-License-Identifier: Apache-2.0
#include "daemon/roles.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

int role_run(const struct role *roles, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(name, roles[i].name))
			continue;
		prctl(PR_SET_NAME, roles[i].comm, 0, 0, 0);
		return roles[i].main(ROLE_SOCKET);
	}
	fprintf(stderr, "%s: unknown role '%s'\n", program_invocation_short_name, name);
	return EXIT_USAGE;
}
