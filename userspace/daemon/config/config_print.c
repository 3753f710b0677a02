// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_types.h"

/* For people: only the names of headers that hold a secret; those of headers_file are left out. */
static void print_headers_shown(const struct export_config *e, FILE *to)
{
	for (uint32_t i = 0; i + e->nr_headers_file < e->nr_headers; i++) {
		const char *h = e->headers[i];

		if (config_header_is_secret(h))
			fprintf(to, "# headers = %.*s: (not shown)\n", (int)strcspn(h, ":"), h);
		else
			fprintf(to, "headers = %s\n", h);
	}
}

/* A key without a value is left out, its name too. */
static void print_key(const struct config_key *k, const void *base, FILE *to)
{
	_cleanup_(buf_done) struct buf value;

	buf_init(&value, CONFIG_FILE_MAX);
	k->type->print(k, (const char *)base + k->offset, &value);
	if (value.len)
		fprintf(to, "%s = %s\n", k->name, buf_cstr(&value));
}

int config_endpoint_shown(const char *endpoint)
{
	size_t n = strncmp(endpoint, "file:", 5) ? strcspn(endpoint, "?") : strlen(endpoint);

	return (int)(n + !!endpoint[n]);
}

/* What stands for the query parses, too. */
static void print_endpoint_shown(const struct config_key *k, const void *base, FILE *to)
{
	const char *endpoint = *(char *const *)(const void *)((const char *)base + k->offset);
	int n = endpoint ? config_endpoint_shown(endpoint) : 0;

	if (n)
		fprintf(to, "%s = %.*s%s\n", k->name, n, endpoint, endpoint[n] ? "not-shown" : "");
}

static void print_section(const struct config *c, enum config_section section, const void *base, bool shown, FILE *to)
{
	for (size_t i = 0; i < config_keys_nr; i++) {
		if (config_keys[i].section != section)
			continue;
		if (config_keys[i].secret && shown)
			print_headers_shown(base, to);
		else if (config_keys[i].type == &config_type_endpoint && shown)
			print_endpoint_shown(&config_keys[i], base, to);
		else
			print_key(&config_keys[i], base, to);
	}
}

static void print_exporters(const struct config *c, bool shown, FILE *to)
{
	for (uint32_t i = 0; i < c->nr_exporters; i++) {
		fprintf(to, "\n[exporter %s]\n", c->exporters[i].name);
		print_section(c, SECTION_EXPORTER, &c->exporters[i], shown, to);
	}
}

static void print_resources(const struct config *c, FILE *to)
{
	fprintf(to, "\n[resource]\n");
	for (uint32_t i = 0; i < c->nr_resources; i++)
		fprintf(to, "%s = %s\n", c->resources[i].key, c->resources[i].value);
}

static int print(const struct config *c, bool shown, FILE *to)
{
	for (int section = 0; section < SECTION_NR; section++) {
		if (section == SECTION_EXPORTER) {
			print_exporters(c, shown, to);
		} else if (section == SECTION_RESOURCE) {
			print_resources(c, to);
		} else {
			fprintf(to, "%s[%s]\n", section ? "\n" : "", config_section_names[section]);
			print_section(c, section, c, shown, to);
		}
	}
	return fflush(to) || ferror(to) ? -EIO : 0;
}

int config_print(const struct config *c, FILE *to)
{
	return print(c, false, to);
}

int config_print_shown(const struct config *c, FILE *to)
{
	return print(c, true, to);
}
