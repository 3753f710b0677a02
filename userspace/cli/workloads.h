/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of workloads as text, for 'otprof workloads' and 'otprof top'. Called by these, one thread.
 */
#ifndef OTP_CLI_WORKLOADS_H
#define OTP_CLI_WORKLOADS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

/* answer: of the API's /workloads, borrowed; all: nothing was left out. Appends a page. */
void workloads_page(const json_t *answer, bool all, struct buf *b);

#endif
