// SPDX-License-Identifier: Apache-2.0
/* The text of /proc/kallsyms, which BPF programs and modules have a say in. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find(const struct kernel_symbols *k, uint64_t addr)
{
	struct kernel_symbol s;

	kernel_find(k, addr, &s);
	if (!s.name || !s.module || (s.named && (s.offset >= s.module_size || s.start > s.offset)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kernel_symbols *k = NULL;
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	if (fd < 0)
		return 0;
	if (write(fd, data, size) == (ssize_t)size && kernel_symbols_load(fd, &k) == 0) {
		for (unsigned bit = 0; bit < 64; bit++) {
			find(k, 1ULL << bit);
			find(k, 0xffffffff81000000ULL + (1ULL << bit));
		}
		find(k, 0);
		find(k, UINT64_MAX);
	}
	kernel_symbols_free(k);
	close(fd);
	return 0;
}
