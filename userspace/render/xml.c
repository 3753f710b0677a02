// SPDX-License-Identifier: Apache-2.0
#include "render/xml.h"

void xml_escape(struct buf *out, const char *s, size_t len)
{
	size_t i, from = 0;

	for (i = 0; i < len; i++) {
		const char *entity = s[i] == '&' ? "&amp;" : s[i] == '<' ? "&lt;" : s[i] == '>' ? "&gt;" :
				     s[i] == '"' ? "&quot;" : NULL;

		if (!entity)
			continue;
		buf_add(out, s + from, i - from);
		buf_add_str(out, entity);
		from = i + 1;
	}
	if (from < len)
		buf_add(out, s + from, len - from);
}
