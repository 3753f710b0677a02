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
 */
void explain_files(json_t *process, unsigned pid);

#endif
