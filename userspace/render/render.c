// SPDX-License-Identifier: Apache-2.0
#include "render/render.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const struct render_format formats[] = {
	{".svg", "flame graph for a browser", .graph = render_svg},
	{".pb.gz", "for pprof", .recording = render_pprof},
	{".collapsed", "one line a stack", .graph = render_collapsed},
	{".otlp", "OTLP profiles request", .recording = render_otlp},
};

const struct render_format *render_format_of(const char *path)
{
	size_t len = strlen(path), i;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		size_t n = strlen(formats[i].suffix);

		if (len > n && strcmp(path + len - n, formats[i].suffix) == 0 && path[len - n - 1] != '/')
			return &formats[i];
	}
	return NULL;
}

const char *render_formats(void)
{
	static char text[256];
	size_t at = 0, i;

	for (i = 0; i < ARRAY_SIZE(formats); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s (%s)", i ? ", " : "", formats[i].suffix,
				       formats[i].what);
	return text;
}
