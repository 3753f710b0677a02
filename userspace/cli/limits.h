/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds of verbs that read profiles; more is refused with an error message.
 */
#ifndef OTP_CLI_LIMITS_H
#define OTP_CLI_LIMITS_H

#include <stddef.h>

#include "graph/tree.h"
#include "recording/recording.h"

#define CLI_TYPES        16             /* files written for one recording */
#define CLI_WRITER_BYTES (2ULL << 30)   /* memory of the messages of a file to write */
#define CLI_OUTPUT_BYTES (1024u << 20) /* of one file: no viewer opens a larger SVG */

extern const struct recording_limits cli_recording_limits;
extern const struct tree_limits cli_tree_limits;

#endif
