/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a verb that reads profiles reads: more is refused, in words.
 */
#ifndef OTP_CLI_LIMITS_H
#define OTP_CLI_LIMITS_H

#include <stddef.h>

#include "graph/tree.h"
#include "recording/recording.h"

#define CLI_TYPES        16             /* files that one recording becomes */
#define CLI_WRITER_BYTES (2ULL << 30)   /* messages of a file that is written */
#define CLI_OUTPUT_BYTES (1024u << 20) /* 1 GiB of SVG opens nowhere */

extern const struct recording_limits cli_recording_limits;
extern const struct tree_limits cli_tree_limits;

#endif
