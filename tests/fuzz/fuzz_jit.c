// SPDX-License-Identifier: Apache-2.0
/* A perf map or a jitdump, by the first byte; then the rest of it once more, as if it had grown. */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/jit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("jit", MFD_CLOEXEC), mine;
	struct jit_map *m;

	if (fd < 0 || size < 2 || write(fd, data + 1, size - 1) < 0) {
		close(fd);
		return 0;
	}
	mine = dup(fd);
	if (jit_map_new(fd, data[0] & 1 ? JIT_DUMP : JIT_PERF_MAP, &m) == 0) {
		for (uint64_t pc = 0; pc < 65536; pc += 257) {
			struct symbol_line l;

			if (jit_map_find(m, pc, &l) == 0)
				symbol_line_done(&l);
		}
		if (write(mine, data + 1, size - 1) > 0)
			jit_map_refresh(m);
		jit_map_free(m);
	}
	close(mine);
	return 0;
}
