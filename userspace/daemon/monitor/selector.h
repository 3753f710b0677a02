/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A selection for a while, laid over the configuration: only some workloads are
 * sampled, or at another rate or depth. [targets] stays the outer bound: a process
 * is sampled where the configuration and the selection select it. It ends by
 * itself, by request, or with otprofd, and is shown as long as it is in force.
 *
 * Called by the monitor, one thread: by the server of query.sock for root and the
 * socket's group, and for the hub where [hub] selection allows it. A request is
 * checked whole before anything changes; it is put in force within three seconds,
 * as a reload is, so that the ledger holds.
 */
#ifndef OTP_DAEMON_MONITOR_SELECTOR_H
#define OTP_DAEMON_MONITOR_SELECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "process/selection.h"

struct config;
struct monitor;

struct selector {
	struct selection_shown shown;
	struct config *base;   /* the configuration without the selection; owned; NULL: none is in force */
	uint64_t until_ns;     /* of base/clock.h */
	bool wanted;	       /* next is to be put in force; without targets, rate and depth: the end of the present one */
	struct selection_shown next;
	/* next over the configuration, while names of containers are resolved; freed by config_deselect */
	struct config *config;
	uint64_t names_deadline_ns;
};

/* -EINVAL and why; -EAGAIN: not now, with why. by: who asks, for people. */
int selector_set(struct monitor *m, const struct selection *s, const char *by, char why[SELECTION_WHY]);
void selector_end(struct monitor *m, const char *by);
/* What is in force, or will be in a moment. */
const struct selection_shown *selector_shown(const struct monitor *m);
void selector_run(struct monitor *m, uint64_t now);
void selector_done(struct monitor *m); /* m->config is the configuration itself from now on */

/* For a reload: whether it has to wait; the configuration without a selection, borrowed. */
bool selector_is_busy(const struct monitor *m);
struct config *selector_base(const struct monitor *m);
/* Puts c, owned from now on, in m->config, under the selection that is in force. The caller frees the former two. */
void selector_rebase(struct monitor *m, struct config *c);

#endif
