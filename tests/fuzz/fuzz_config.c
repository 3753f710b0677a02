// SPDX-License-Identifier: Apache-2.0
/* A configuration that parses prints to one that parses to the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_error(void *ctx, const char *line)
{
	if (strlen(line) >= 1024)
		abort();
	++*(int *)ctx;
}

static char *print(const struct config *c, size_t *ret_len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	if (!f)
		return NULL;
	if (config_print(c, f))
		abort();
	fclose(f);
	return text;
}

static void reparse(const struct config *c)
{
	size_t one_len, two_len;
	char *one = print(c, &one_len), *two;
	struct config *again;
	int errors = 0;

	if (!one)
		return;
	if (config_parse("again", one, one_len, on_error, &errors, &again))
		abort();
	two = print(again, &two_len);
	if (two && (one_len != two_len || memcmp(one, two, one_len)))
		abort();
	free(two);
	free(one);
	config_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *c;
	int errors = 0, err = config_parse("fuzz", (const char *)data, size, on_error, &errors, &c);

	if (err) {
		if (err == -22 && !errors)
			abort();
		return 0;
	}
	reparse(c);
	config_free(c);
	return 0;
}
