// SPDX-License-Identifier: Apache-2.0
#include "hub/page.h"

#include <string.h>

/* Made from page/: FILE("path", "hash", "content") for each. */
#define FILE(path, hash, content) {path, NULL, "\"" hash "\"", content, sizeof(content) - 1},
static const struct page_file files[] = {
#include "hub/page_files.inc"
	{NULL, NULL, NULL, NULL, 0},
};
#undef FILE

static const char *page_type(const char *path)
{
	static const struct {
		const char *suffix, *type;
	} types[] = {
		{".html", "text/html; charset=utf-8"},
		{".js", "text/javascript; charset=utf-8"},
		{".css", "text/css; charset=utf-8"},
		{".svg", "image/svg+xml"},
	};
	size_t len = strlen(path), i, n;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		n = strlen(types[i].suffix);
		if (len > n && strcmp(path + len - n, types[i].suffix) == 0)
			return types[i].type;
	}
	return "application/octet-stream";
}

const struct page_file *page_find(const char *path)
{
	static struct page_file found; /* one at a time: the server has one thread */

	if (strcmp(path, "/") == 0)
		path = "/index.html";
	for (const struct page_file *f = files; f->path; f++) {
		if (strcmp(f->path, path) != 0)
			continue;
		found = *f;
		found.type = page_type(path);
		return &found;
	}
	return NULL;
}
