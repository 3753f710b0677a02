/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules by which a word of [targets], or an option of otprof record,
 * matches the texts that describe a process. One home, so that record refuses
 * no target that otprofd would find.
 *
 * Called by the monitor (target_match.c), the configuration's parser and the
 * command line; any thread. Pure. In patterns * and ? match any text without a
 * slash. The cost is bounded by the product of both lengths, also for hostile
 * text.
 */
#ifndef OTP_PROCESS_TARGET_H
#define OTP_PROCESS_TARGET_H

#include <stdbool.h>

#include "process/cgroup.h"

#define TARGET_PATH_MAX 4096

enum target_kind { TARGET_CGROUP, TARGET_UNIT, TARGET_CONTAINER, TARGET_EXE, TARGET_USER, TARGET_PID };

bool target_glob(const char *pattern, const char *text);
/* The part of a path after its last slash; borrowed. */
const char *target_last(const char *path);
/* exe: the link /proc/PID/exe, "" if unknown; comm: of the first thread. */
bool target_is_program(const char *wanted, const char *exe, const char *comm);
/* By what the path of a cgroup has: the beginning of the id, or the name that LXC and nspawn put there. */
bool target_is_container(const char *wanted, const struct cgroup_facts *facts);
/* What systemctl appends to the name of a unit: ".service" if it has no type, else "". */
const char *target_unit_suffix(const char *name);

#endif
