// SPDX-License-Identifier: Apache-2.0
#include "source/cpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"

#define CPU_LIST "/sys/devices/system/cpu/"

static int cpus_parse_number(const char **p, uint32_t *ret)
{
	uint32_t n = 0;

	if (**p < '0' || **p > '9')
		return -EINVAL;
	for (; **p >= '0' && **p <= '9'; (*p)++) {
		n = n * 10 + (uint32_t)(**p - '0');
		if (n >= CPUS_MAX)
			return -ERANGE;
	}
	*ret = n;
	return 0;
}

static int cpus_parse_range(const char **p, struct cpus *to)
{
	uint32_t first, last;
	int err = cpus_parse_number(p, &first);

	if (err < 0)
		return err;
	last = first;
	if (**p == '-') {
		(*p)++;
		err = cpus_parse_number(p, &last);
		if (err < 0)
			return err;
	}
	if (last < first)
		return -EINVAL;
	for (; first <= last; first++)
		to->word[first / 64] |= 1ULL << first % 64;
	return 0;
}

int cpus_parse(const char *text, struct cpus *ret)
{
	struct cpus to = {0};
	int err;

	do {
		text += strspn(text, " \t");
		err = cpus_parse_range(&text, &to);
		if (err < 0)
			return err;
		text += strspn(text, " \t\n");
	} while (*text++ == ',');
	if (text[-1])
		return -EINVAL;
	*ret = to;
	return 0;
}

static int cpus_read(const char *path, struct cpus *ret)
{
	char text[4096];
	ssize_t n = file_read_text(path, text, sizeof(text));

	return n < 0 ? (int)n : cpus_parse(text, ret);
}

int cpus_online(struct cpus *ret)
{
	return cpus_read(CPU_LIST "online", ret);
}

int cpus_possible(uint32_t *ret_nr)
{
	struct cpus all;
	int err = cpus_read(CPU_LIST "possible", &all);

	if (err < 0)
		return err;
	*ret_nr = 0;
	for (uint32_t cpu = 0; cpu < CPUS_MAX; cpu++)
		if (cpus_has(&all, cpu))
			*ret_nr = cpu + 1;
	return 0;
}
