/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private otprofd for one recording: its own configuration, runtime
 * directory and file destination below a directory that nobody else can
 * enter, gone with the recording. It runs beside another otprofd as well as
 * alone. Called by record, one thread.
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

/* What else is selected, by the configuration's name for it ("unit:"). */
struct session_target {
	const char *kind;  /* static */
	const char *value; /* borrowed; without blanks */
};

struct session_options {
	struct event_list events; /* what is sampled */
	uint32_t frequency_hz;
	uint32_t pids[SESSION_PIDS_MAX];
	uint32_t nr_pids;
	struct session_target targets[SESSION_TARGETS_MAX];
	uint32_t nr_targets; /* with nr_pids 0: the whole host */
	bool verbose;     /* otprofd's log goes to stderr */
	const char *sampler; /* NULL: auto; borrowed */
};

struct session {
	char dir[64], runtime[80], out[80], config[80], log[80];
	pid_t pid; /* of otprofd, 0: not running */
	int status; /* of waitpid, once it ended */
};

/* Makes the directory and starts otprofd. -errno after session_done has nothing left to do. */
int session_start(struct session *s, const struct session_options *o);
/* Does it sample? 1 yes, 0 not yet, -ECHILD: it ended. */
int session_ready(struct session *s);
/* True as long as it runs. */
bool session_alive(struct session *s);
/* Ends it, waits for its last profiles. -ETIME: it had to be killed; -ECHILD: it failed. */
int session_stop(struct session *s);
/* All profiles that it wrote. */
int session_read(struct session *s, struct recording *r);
/* The end of its log, on stderr. */
void session_print_log(const struct session *s);
/* Ends it if it runs, removes the directory. */
void session_done(struct session *s);

#endif
