// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

static size_t whole_pages(size_t size)
{
	return ALIGN_UP(size, (size_t)sysconf(_SC_PAGESIZE));
}

void *secret_new(size_t size)
{
	void *p = mmap(NULL, whole_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, whole_pages(size), MADV_DONTDUMP);
	return p;
}

void secret_free(void *p, size_t size)
{
	if (p)
		munmap(p, whole_pages(size));
}

void *secret_grow(void *p, size_t size, size_t new_size)
{
	void *to = mremap(p, whole_pages(size), whole_pages(new_size), MREMAP_MAYMOVE);

	return to == MAP_FAILED ? NULL : to;
}

int secret_hide_stack(void)
{
	_cleanup_(fclosep) FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long here = (unsigned long)__builtin_frame_address(0), from, to;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && here >= from && here < to)
			return madvise((void *)from, to - from, MADV_DONTDUMP) < 0 ? -errno : 0;
	return maps ? -ENOENT : -errno;
}
