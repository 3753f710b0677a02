/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches one target of [targets] against the texts that describe a process or
 * cgroup.
 *
 * Called by the monitor (targets*.c). Pure, but for the name of a container,
 * which the caller's function looks up. The rules and their cost are those of
 * process/target.h.
 */
#ifndef OTP_DAEMON_MONITOR_TARGET_MATCH_H
#define OTP_DAEMON_MONITOR_TARGET_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"
#include "process/target.h"

static inline bool target_by_cgroup(const struct config_target *t)
{
	return t->kind == TARGET_CGROUP || t->kind == TARGET_UNIT || t->kind == TARGET_CONTAINER;
}
static inline bool target_by_process(const struct config_target *t)
{
	return t->kind == TARGET_EXE || t->kind == TARGET_USER;
}

/*
 * A process is selected where a line of each of these lists matches it; a list without lines asks for nothing. The
 * second one is that of a selection for a while, which so narrows what [targets] includes.
 */
enum target_list { LIST_INCLUDE = 1, LIST_LIVE = 2, LISTS_ALL = LIST_INCLUDE | LIST_LIVE };

static inline unsigned int target_list_of(const struct config_target *t)
{
	return t->exclude ? 0 : t->live ? LIST_LIVE : LIST_INCLUDE;
}
/* The lists that have lines. */
unsigned int target_lists(const struct config *c);

/* The name of the container with this id; NULL: unknown. Borrowed for the match. */
typedef const char *target_name_fn(void *ctx, const char *id);

/*
 * path: of one cgroup below its hierarchy's root ("/system.slice/a.service").
 * pattern: of TARGET_CGROUP, from its root.
 */
bool target_fits_cgroup(const struct config_target *t, const char *pattern, const char *path, target_name_fn *name,
			void *ctx);
/* The same for the cgroup of a process: it, or any above it. */
bool target_fits_below(const struct config_target *t, const char *pattern, const char *path, target_name_fn *name,
		       void *ctx);
/* exe: the link /proc/PID/exe, "" if unknown; comm: of the first thread. */
bool target_fits_exe(const struct config_target *t, const char *exe, const char *comm);

#endif
