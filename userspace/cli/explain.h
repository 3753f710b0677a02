/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What otprof explain makes of the daemon's answer: of each file what is
 * missing, and where it is to be had.
 *
 * Called by the verb, one thread. explain_files.c looks at the host (debug
 * files, packages), explain.c asks and prints.
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
