/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded command: it is forked first, so that its pid is known, and
 * executed when sampling has started. Called by record, one thread.
 */
#ifndef OTP_CLI_COMMAND_H
#define OTP_CLI_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct command {
	pid_t pid; /* 0: none */
	int go;    /* pipe that the child waits on; -1 once it runs */
	int failed; /* pipe by which the child reports the errno of a failed exec */
	bool ended;
	int status; /* exit status as in a shell; valid if ended */
};

/* Forks; the child waits. argv is borrowed. -errno. */
int command_create(struct command *c, char *const argv[]);
/* Lets it run. 0, or the exec's -errno. */
int command_start(struct command *c);
/* Looks without waiting; true once it has ended. */
bool command_poll(struct command *c);
/* Waits for it. Returns its exit status. */
int command_wait(struct command *c);
/* Ends a child that was never started. */
void command_done(struct command *c);

#endif
