/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of processes (names, arguments, environment) as shared strings, and
 * parts of paths. Called by the process table, one thread.
 */
#ifndef OTP_PROCESS_TEXT_H
#define OTP_PROCESS_TEXT_H

#include <stddef.h>

#include "base/strpool.h"

#define TEXT_MAX 1024u

/* Cleaned (base/utf8.h) and cut to at most max bytes, TEXT_MAX at most; owned. NULL without memory. */
struct str *text_str(const char *from, size_t len, size_t max);

/* The part after the last slash, trailing slashes ignored; borrowed from path. */
const char *text_basename(const char *path, size_t len, size_t *ret_len);

#endif
