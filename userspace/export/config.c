// SPDX-License-Identifier: Apache-2.0
/* What an exporter's configuration says without its transport, which stands on a network library. */
#include <string.h>

#include "export/export.h"

const char *const export_coding_names[EXPORT_CODING_NR] = {
#define X(NAME, name) [EXPORT_CODING_##NAME] = name,
	EXPORT_CODINGS(X)
#undef X
};

const char *export_directory(const struct export_config *c)
{
	bool is_file = c->endpoint && !strncmp(c->endpoint, EXPORT_FILE_SCHEME, strlen(EXPORT_FILE_SCHEME));

	return is_file ? c->endpoint + strlen(EXPORT_FILE_SCHEME) : NULL;
}
