/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A selection for a while: which workloads are sampled, at which rate and depth,
 * within what the configuration allows. As text it is one line of words:
 *
 *   hz=97 stack_bytes=65536 seconds=600 unit:nginx.service exe:redis-server
 *
 * Written by the command line and the hub, read by the monitor; all three use
 * this form, so there is one parser, and a word that it does not know is an error.
 * Pure functions, any thread. Whether a target is well-formed and a number within
 * the configuration's bounds is decided by config_select.
 */
#ifndef OTP_PROCESS_SELECTION_H
#define OTP_PROCESS_SELECTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define SELECTION_TARGETS_MAX 16
#define SELECTION_LINE_MAX    2048
#define SELECTION_WORDS_MAX   (SELECTION_LINE_MAX - 64) /* of the line, what targets take: the numbers before them fit */
#define SELECTION_WHY	      256
#define SELECTION_SECONDS     3600  /* where none are given */
#define SELECTION_SECONDS_MAX 86400 /* nobody forgets it for longer than a day */
#define SELECTION_HZ_MAX      1000
#define SELECTION_BY	      64

struct selection {
	char targets[SELECTION_WORDS_MAX]; /* as in [targets], a space between two; "": all that the configuration selects */
	uint32_t nr_targets;
	uint32_t hz, stack_bytes; /* 0: the configuration's */
	uint32_t seconds;
};

/* One that is in force, as it is shown. */
struct selection_shown {
	struct selection what;
	uint64_t since_ns, until_ns; /* Unix; since 0: none is in force */
	char by[SELECTION_BY];	     /* who asked for it: "uid 0", "hub" */
};

/* -EINVAL and why, a sentence without its end; ret is then untouched. text needs no end. */
int selection_parse(const char *text, size_t len, struct selection *ret, char why[SELECTION_WHY]);
/* Adds one target. -EINVAL, -ENOSPC with why. */
int selection_add(struct selection *s, const char *target, size_t len, char why[SELECTION_WHY]);
/* Appends the line, without its end. */
void selection_print(const struct selection *s, struct buf *to);

#endif
