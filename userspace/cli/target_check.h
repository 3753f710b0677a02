/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a target of otprof record exists, asked before anything is started:
 * a name with a typing error is refused at once, instead of after a recording
 * without samples.
 *
 * Called by record's command line, one thread. Reads /proc, and the folders of
 * systemd's unit files and of PATH where no process matches. Patterns are those
 * of [targets] (process/target.h). Errors: what cannot be read counts as absent. Costs a few file
 * reads for each process of the host.
 */
#ifndef OTP_CLI_TARGET_CHECK_H
#define OTP_CLI_TARGET_CHECK_H

enum target_state {
	TARGET_ABSENT,	/* nothing by this name is known */
	TARGET_IDLE,	/* no process matches now, and one may later */
	TARGET_UNKNOWN, /* containers run, and this may be the name of one: only otprofd reads the names that runtimes give */
	TARGET_RUNS,
};

/* kind: unit, container, exe or user; any other counts as running. */
enum target_state target_check(const char *kind, const char *value);

#endif
