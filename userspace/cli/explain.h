/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otprof explain adds to the daemon's answer what each file lacks, and which
 * package has it.
 *
 * Called by the verb, one thread. explain_files.c reads the host (debug files,
 * packages), explain.c queries otprofd and prints.
 */
#ifndef OTP_CLI_EXPLAIN_H
#define OTP_CLI_EXPLAIN_H

#include <jansson.h>

/*
 * Adds to each file of the process: missing (text, "" for nothing),
 * debug_file, package, debug_package; to the process: advice (source line,
 * packages, own_root: whether they are to be installed in this root).
 * Everything below the process' root is read by a process of its own, which is
 * abandoned after 5 s. -ETIMEDOUT, or another error: only missing is added, by
 * the daemon's answer alone, and advice is empty.
 */
int explain_files(json_t *process, unsigned pid);

#endif
