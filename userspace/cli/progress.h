/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is going on, on stderr: one line that changes each second on a
 * terminal, a line now and then elsewhere. Called by record, one thread.
 */
#ifndef OTP_CLI_PROGRESS_H
#define OTP_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool terminal, quiet;
	uint64_t start_ns, shown_ns, next_ns;
	const char *runtime_dir; /* borrowed: whose status is shown */
};

void progress_start(struct progress *p, const char *runtime_dir, bool quiet);
/* Shows what is due. */
void progress_tick(struct progress *p);
/* Before anything else is printed: takes the changing line away. */
void progress_clear(struct progress *p);

#endif
