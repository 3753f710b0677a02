// SPDX-License-Identifier: Apache-2.0
#include "source/softirq_code.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/kallsyms_open.h"

static const char *const names[SOFTIRQ_FUNCTIONS] = {"__do_softirq", "handle_softirqs"};

/*
 * A compiler adds a suffix to its own version of a function ("handle_softirqs.constprop.0"). The unlikely part
 * (".cold") is another piece of code, and on some kernels comes first.
 */
static bool softirq_is_named(const char *name, const char *function)
{
	size_t len = strlen(function);

	return strncmp(name, function, len) == 0 && (!name[len] || (name[len] == '.' && !strstr(name + len, ".cold")));
}

/* Symbols are in the order of their addresses; a function ends where a later one begins. */
void softirq_code_parse(FILE *kallsyms, struct softirq_code *ret)
{
	char line[512], name[64];
	uint64_t at;

	*ret = (struct softirq_code){0};
	while (fgets(line, sizeof(line), kallsyms)) {
		if (sscanf(line, "%" SCNx64 " %*c %63s", &at, name) != 2 || !at)
			continue;
		for (int i = 0; i < SOFTIRQ_FUNCTIONS; i++) {
			if (ret->start[i] && !ret->end[i] && at > ret->start[i])
				ret->end[i] = at;
			if (!ret->start[i] && softirq_is_named(name, names[i]))
				ret->start[i] = at;
		}
	}
}

void softirq_code_read(struct softirq_code *ret)
{
	int fd = kallsyms_open();
	_cleanup_(fclosep) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	*ret = (struct softirq_code){0};
	if (!f)
		closep(&fd);
	else if (fseek(f, 0, SEEK_SET) == 0)
		softirq_code_parse(f, ret);
}

bool softirq_code_has(const struct softirq_code *c, const uint64_t *ips, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		for (int n = 0; n < SOFTIRQ_FUNCTIONS; n++)
			if (ips[i] >= c->start[n] && ips[i] < c->end[n])
				return true;
	return false;
}
