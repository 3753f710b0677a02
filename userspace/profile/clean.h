/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that may leave the host: valid UTF-8 without control characters, never
 * blank, bounded. Names come from hostile files and processes, and receivers
 * refuse a whole request for one bad byte. Used within profile/ only.
 */
#ifndef OTP_PROFILE_CLEAN_H
#define OTP_PROFILE_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strpool.h"

bool clean_is(const char *s, size_t len);
/*
 * A new reference: s itself where it is clean and has at most max bytes, else
 * a copy with '?' for each bad byte, cut between characters. Blank or NULL
 * becomes "[unknown]". NULL without memory.
 */
struct str *clean_str(struct str *s, size_t max);

#endif
