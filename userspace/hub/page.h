/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page's files, part of the program: they are compiled in from page/, each
 * with a hash of its content.
 *
 * Called by the server. Constant data.
 */
#ifndef OTP_HUB_PAGE_H
#define OTP_HUB_PAGE_H

#include <stddef.h>

struct page_file {
	const char *path; /* "/app.js" */
	const char *type; /* media type */
	const char *etag; /* of the content, with quotation marks */
	const char *data;
	size_t len;
};

/* "/" is index.html. NULL: there is no such file. */
const struct page_file *page_find(const char *path);

#endif
