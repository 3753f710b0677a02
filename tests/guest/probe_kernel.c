// SPDX-License-Identifier: Apache-2.0
/* Names of the kernel's functions, by the library that names the frames of a profile. */
#include <fcntl.h>

#include "base/cleanup.h"
#include "probe.h"
#include "symbol/symbol.h"

static struct kernel_symbols *kernel_symbols;

/* Anew each time: BPF programs and modules come and go. */
bool kernel_names_load(void)
{
	_cleanup_(closep) int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);

	kernel_symbols = kernel_symbols_free(kernel_symbols);
	return fd >= 0 && kernel_symbols_load(fd, &kernel_symbols) == 0;
}

const char *kernel_name(uint64_t addr)
{
	struct kernel_symbol sym;

	kernel_find(kernel_symbols, addr, &sym);
	return sym.name;
}
