/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of otprofd: their role is an argument of their program. Each role's
 * whole life is one call that returns the exit status.
 *
 * Two programs: otprof-worker has the roles without a network, and none of the
 * libraries that only the others need. Those would be most of what a decoder of
 * a short-lived process costs, and of the memory that an engine touches at its start.
 *
 * Called by the programs' main only. A worker inherits its socket to the monitor as
 * descriptor ROLE_SOCKET; the first message on it is CONFIG. Every worker dies
 * with the monitor (by signal, and by the end of its socket).
 */
#ifndef OTP_DAEMON_ROLES_H
#define OTP_DAEMON_ROLES_H

#include <stdbool.h>
#include <stddef.h>

struct config;

#define ROLE_SOCKET 3

struct monitor_options {
	const char *config_path;  /* borrowed; read again on reload */
	bool config_usual;        /* the usual path: the file may be missing */
	const char *capture_path; /* NULL: no capture; borrowed */
};

struct role {
	const char *name, *comm; /* static; comm: the process' name */
	int (*main)(int sock);
};
#define EXIT_USAGE 2
/* Runs the role of that name. An unknown name is an error line and EXIT_USAGE. */
int role_run(const struct role *roles, size_t n, const char *name);

int monitor_main(struct config *c, const struct monitor_options *options); /* takes ownership of c */
int engine_main(int sock); /* sock is borrowed, here and below */
int net_main(int sock);
int hub_main(int sock);
int opener_main(int sock);
int indexer_main(int sock);
int fetcher_main(int sock);
int decoder_main(int sock);
int try_main(const struct config *c); /* borrowed; tries every exporter, prints a line each */
int replay_main(const struct config *c, const char *file); /* both borrowed */

#endif
