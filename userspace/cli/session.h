/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private otprofd for one recording: its configuration, runtime directory
 * and file destination are below a directory that no other user can enter,
 * removed with the recording. It can run beside another otprofd. Called by
 * record, one thread; doctor starts otprofd as it does.
 */
#ifndef OTP_CLI_SESSION_H
#define OTP_CLI_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "recording/recording.h"
#include "source/event_list.h"

#define SESSION_PIDS_MAX    32
#define SESSION_TARGETS_MAX 32

/* A selection that is not a pid. */
struct session_target {
	const char *kind;  /* static: the configuration's prefix, such as "unit:" */
	const char *value; /* borrowed; without blanks */
};

struct session_options {
	struct event_list events; /* sampled */
	uint32_t frequency_hz;
	uint32_t pids[SESSION_PIDS_MAX];
	uint32_t nr_pids;
	struct session_target targets[SESSION_TARGETS_MAX];
	uint32_t nr_targets; /* with nr_pids 0: the whole host */
	bool verbose;     /* otprofd logs to stderr */
	const char *sampler; /* NULL: auto; borrowed */
};

struct session {
	char dir[64], runtime[80], out[80], config[80], log[80];
	pid_t pid; /* of otprofd, 0: not running */
	int status; /* of waitpid, once it ended */
};

/* Makes the directory and starts otprofd. -errno; session_done is called in any case. */
int session_start(struct session *s, const struct session_options *o);
/* 1: it samples; 0: not yet; -ECHILD: it ended. */
int session_ready(struct session *s);
/* Whether it runs. */
bool session_alive(struct session *s);
/* Stops it and waits for its last profiles. -ETIME: it was killed; -ECHILD: it failed. */
int session_stop(struct session *s);
/* Reads all profiles that it wrote. 0 or negative errno. */
int session_read(struct session *s, struct recording *r);
/* Prints the end of its log on stderr. */
void session_print_log(const struct session *s);
/* Stops it if it runs, removes the directory. */
void session_done(struct session *s);

/* In a child: otprofd from this program's directory (a build tree), the packages' directory, or PATH. Returns on failure. */
void session_exec_otprofd(char *const argv[]);

#endif
