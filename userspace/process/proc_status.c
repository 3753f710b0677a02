// SPDX-License-Identifier: Apache-2.0
#include "process/proc_status.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What follows the key, of the line that begins with it; NULL: there is none. */
static const char *proc_status_line(const char *text, const char *key)
{
	size_t len = strlen(key);

	while (strncmp(text, key, len) != 0) {
		text = strchr(text, '\n');
		if (!text)
			return NULL;
		text++;
	}
	return text + len;
}

/* The next number of the line; false at its end. */
static bool proc_status_number(const char **at, uint32_t *ret)
{
	const char *s = *at + strspn(*at, " \t");
	char *end;
	uint64_t n;

	if (*s < '0' || *s > '9')
		return false;
	n = strtoull(s, &end, 10);
	if (n > UINT32_MAX)
		return false;
	*at = end;
	*ret = (uint32_t)n;
	return true;
}

/* The real one is first, the effective one second. */
static bool proc_status_ids(const char *line, uint32_t *ret_real, uint32_t *ret_effective)
{
	return line && proc_status_number(&line, ret_real) && proc_status_number(&line, ret_effective);
}

int proc_status_parse(const char *text, struct proc_status *ret)
{
	const char *pids = proc_status_line(text, "NSpid:"), *groups = proc_status_line(text, "Groups:");
	struct proc_status s = {.groups = groups ? groups : ""};
	uint32_t real_gid;

	if (!proc_status_ids(proc_status_line(text, "Uid:"), &s.real_uid, &s.uid) ||
	    !proc_status_ids(proc_status_line(text, "Gid:"), &real_gid, &s.gid))
		return -EBADMSG;
	/* The innermost namespace is last. */
	while (pids && proc_status_number(&pids, &s.inner_pid))
		;
	*ret = s;
	return 0;
}

bool proc_status_has_group(const struct proc_status *s, uint32_t gid)
{
	const char *at = s->groups;
	uint32_t group;

	if (s->gid == gid)
		return true;
	while (proc_status_number(&at, &group))
		if (group == gid)
			return true;
	return false;
}
