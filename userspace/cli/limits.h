/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a verb that reads profiles reads: more is refused, in words.
 */
#ifndef OTP_CLI_LIMITS_H
#define OTP_CLI_LIMITS_H

#include "recording/recording.h"

extern const struct recording_limits cli_recording_limits;

#endif
