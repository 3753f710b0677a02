// SPDX-License-Identifier: Apache-2.0
#include "process/text.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

struct str *text_str(const char *from, size_t len, size_t max)
{
	char text[TEXT_MAX];

	return str_get(text, utf8_clean(text, MIN(max, sizeof(text)), from, len));
}

const char *text_basename(const char *path, size_t len, size_t *ret_len)
{
	const char *slash;

	while (len > 1 && path[len - 1] == '/')
		len--;
	slash = len ? memrchr(path, '/', len) : NULL;
	if (slash && len > 1) {
		len -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	*ret_len = len;
	return path;
}
