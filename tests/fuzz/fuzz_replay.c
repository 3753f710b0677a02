// SPDX-License-Identifier: Apache-2.0
/* A capture file from anywhere: the whole engine behind it, no kernel. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/engine/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *ctx, const char *line)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config *config;
	struct replay_result result;
	struct replay_options o;
	int fd = memfd_create("capture", MFD_CLOEXEC);

	if (!config && config_parse("defaults", "", 0, ignore, NULL, &config) < 0)
		abort();
	o = (struct replay_options){.config = config};
	if (fd >= 0 && write(fd, data, size) == (ssize_t)size)
		replay_run(fd, &o, &result);
	close(fd);
	return 0;
}
