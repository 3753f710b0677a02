// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "daemon/config_keys.h"

/* A key without a value is left out, its name too. */
static void print_key(const struct config_key *k, const void *base, FILE *to)
{
	_cleanup_(buf_done) struct buf value;

	buf_init(&value, CONFIG_FILE_MAX);
	k->type->print(k, (const char *)base + k->offset, &value);
	if (value.len)
		fprintf(to, "%s = %s\n", k->name, buf_cstr(&value));
}

static void print_section(const struct config *c, enum config_section section, const void *base, FILE *to)
{
	for (size_t i = 0; i < config_keys_nr; i++)
		if (config_keys[i].section == section)
			print_key(&config_keys[i], base, to);
}

static void print_exporters(const struct config *c, FILE *to)
{
	for (uint32_t i = 0; i < c->nr_exporters; i++) {
		fprintf(to, "\n[exporter %s]\n", c->exporters[i].name);
		print_section(c, SECTION_EXPORTER, &c->exporters[i], to);
	}
}

static void print_resources(const struct config *c, FILE *to)
{
	fprintf(to, "\n[resource]\n");
	for (uint32_t i = 0; i < c->nr_resources; i++)
		fprintf(to, "%s = %s\n", c->resources[i].key, c->resources[i].value);
}

int config_print(const struct config *c, FILE *to)
{
	for (int section = 0; section < SECTION_NR; section++) {
		if (section == SECTION_EXPORTER) {
			print_exporters(c, to);
		} else if (section == SECTION_RESOURCE) {
			print_resources(c, to);
		} else {
			fprintf(to, "%s[%s]\n", section ? "\n" : "", config_section_names[section]);
			print_section(c, section, c, to);
		}
	}
	return fflush(to) || ferror(to) ? -EIO : 0;
}
