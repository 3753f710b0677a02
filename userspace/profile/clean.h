/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that may leave the host: cleaned (base/utf8.h), never blank, bounded.
 * Names come from hostile files and processes, and receivers refuse a whole
 * request for one bad byte. Used within profile/ only.
 */
#ifndef OTP_PROFILE_CLEAN_H
#define OTP_PROFILE_CLEAN_H

#include <stddef.h>

#include "base/strpool.h"

/*
 * A new reference: s itself where it is clean and has at most max bytes, else
 * a cleaned copy, cut between characters. Blank or NULL becomes "[unknown]".
 * Returns NULL without memory.
 */
struct str *clean_str(struct str *s, size_t max);

#endif
