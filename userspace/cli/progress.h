/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress of a recording, on stderr: on a terminal one line that changes
 * each second, else a line every ten seconds. Called by record, one thread.
 */
#ifndef OTP_CLI_PROGRESS_H
#define OTP_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool terminal, quiet;
	uint64_t start_ns, shown_ns, next_ns;
	const char *runtime_dir; /* borrowed: of the otprofd whose status is shown */
};

void progress_start(struct progress *p, const char *runtime_dir, bool quiet);
/* Prints the line if it is due. */
void progress_tick(struct progress *p);
/* Removes the changing line: called before anything else is printed. */
void progress_clear(struct progress *p);

#endif
