// SPDX-License-Identifier: Apache-2.0
/*
 * A whole file with debug information, made into an index: sections, symbols,
 * compressed parts, links to debug files. libdw has fuzzers of its own, and a
 * process of its own here; what it would crash on is not told from what we do,
 * so the debug information itself is left to the other targets.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/index_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every question leads to the file itself: a debug file that is hostile too. */
static int open_same(void *ctx, enum index_root root, const char *path, int *ret_fd)
{
	*ret_fd = dup(*(int *)ctx);
	return *ret_fd < 0 ? -errno : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct index_job job = {.path = "/bin/program", .debug_dirs = "/usr/lib/debug /opt", .symbols_only = true,
				.inlines = true, .lines = true, .open = open_same};
	struct index_report report;

	job.elf_fd = memfd_create("elf", MFD_CLOEXEC);
	job.out_fd = memfd_create("index", MFD_CLOEXEC);
	job.scratch_fd = memfd_create("scratch", MFD_CLOEXEC);
	job.ctx = &job.elf_fd;
	if (size && write(job.elf_fd, data, size) == (ssize_t)size)
		index_build(&job, &report);
	close(job.elf_fd);
	close(job.out_fd);
	close(job.scratch_fd);
	return 0;
}
