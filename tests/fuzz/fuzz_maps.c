// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the text of /proc/PID/maps, into a space. */
#include <stdlib.h>

#include "process/maps_text.h"
#include "process/space.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct mapped_file *file = mapped_file_new(MAPPED_FILE, "/x", 2);
	struct space *space = space_new();
	struct maps_text text;
	struct maps_line line;

	maps_text_init(&text, (const char *)data, len);
	while (maps_text_next(&text, &line)) {
		if (line.name[line.name_len])
			abort();
		space_map(&space, line.start, line.end, line.offset, file);
	}
	for (uint32_t i = 1; i < space->count; i++)
		if (space->maps[i - 1].end > space->maps[i].start)
			abort();
	space_put(space);
	mapped_file_put(file);
	return 0;
}
