// SPDX-License-Identifier: Apache-2.0
/*
 * A configuration that parses prints to one that parses to the same. Lines
 * "%%" part the input into a file and its drop-ins.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config.h"

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

/* What is shown to people, and given to workers that need no secret, parses too. */
static void reparse_shown(const struct config *c)
{
	struct config *again;
	char *text = NULL;
	int errors = 0;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	if (config_print_shown(c, f))
		abort();
	fclose(f);
	if (config_parse("shown", text, len, on_error, &errors, &again))
		abort();
	free(text);
	config_free(again);
}

static void on_change(void *ctx, const char *title, bool restart)
{
	++*(unsigned int *)ctx;
}

/* After a comparison, nothing that needs a restart differs any more. */
static void compare(struct config *c)
{
	unsigned int changes = 0, again = 0;
	struct config *defaults;

	if (config_parse("defaults", "", 0, NULL, NULL, &defaults))
		return;
	if (config_changes(defaults, c, on_change, &changes) || config_changes(defaults, c, on_change, &again) ||
	    again > changes)
		abort();
	config_free(defaults);
}

static size_t part(const char *data, size_t size, struct config_text texts[8])
{
	static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
	size_t n = 0;

	while (n < 8) {
		const char *end = n == 7 ? NULL : memmem(data, size, "\n%%\n", 4);
		size_t len = end ? (size_t)(end + 1 - data) : size;

		texts[n] = (struct config_text){.name = names[n], .text = data, .len = len, .open = n & 1};
		n++;
		if (!end)
			break;
		size -= len + 3;
		data += len + 3;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_text texts[8];
	size_t n = part((const char *)data, size, texts);
	struct config *c;
	int errors = 0, err;

	config_check_transports();
	err = config_parse_texts(texts, n, on_error, &errors, &c);
	if (err) {
		if (err == -22 && !errors)
			abort();
		return 0;
	}
	reparse(c);
	reparse_shown(c);
	compare(c);
	config_free(c);
	return 0;
}
