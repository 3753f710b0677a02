/* SPDX-License-Identifier: Apache-2.0 */
/* Text inside XML. Called by renderers; pure. */
#ifndef OTP_RENDER_XML_H
#define OTP_RENDER_XML_H

#include <stddef.h>

#include "base/buf.h"

/* Appends s, which is clean (base/utf8.h), with XML's special characters escaped. */
void xml_escape(struct buf *out, const char *s, size_t len);

#endif
