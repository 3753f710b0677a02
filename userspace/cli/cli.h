/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of otprof and what they share. Each verb is a program of its own:
 * argv[0] is "otprof VERB", the result is the exit status.
 */
#ifndef OTP_CLI_CLI_H
#define OTP_CLI_CLI_H

#include <stdint.h>

#define CLI_RUNTIME_DIR "/run/otprof"

/* Exit statuses besides 0. record, as env(1) and timeout(1): COMMAND's own, or one of the last three. */
enum cli_exit {
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_NOT_RUNNING = 3,
	CLI_RECORD_FAILED = 125,
	CLI_NOT_EXECUTABLE = 126,
	CLI_NOT_FOUND = 127,
};

int cmd_record(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_workloads(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_enable(int argc, char **argv);
int cmd_disable(int argc, char **argv);
int cmd_clear(int argc, char **argv);
int cmd_select(int argc, char **argv);
int cmd_ui(int argc, char **argv);

/* A line on stderr, after the program's name. */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* the same, for what is no error */
void cli_set_name(const char *name); /* borrowed: "otprof VERB" */
/* "Try 'otprof VERB --help' for more information."; returns status. */
int cli_try_help(int status);
/* Help goes to stdout, and an error in writing it is one. Returns the exit status. */
int cli_help(const char *text);

/* Whole numbers, and times such as 90, 1.5s, 500ms, 2m, 1h. -EINVAL: not one; -ERANGE: out of range. */
int cli_parse_number(const char *s, uint64_t min, uint64_t max, uint64_t *ret);
int cli_parse_time(const char *s, uint64_t *ret_ns);

#endif
