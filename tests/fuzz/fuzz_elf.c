// SPDX-License-Identifier: Apache-2.0
/* Any bytes as an ELF file: headers, notes, sections, addresses. */
#include "process/binary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void probe(struct binary *b, uint64_t vaddr)
{
	uint8_t to[64];

	binary_read_vaddr(b, vaddr, to, sizeof(to));
	binary_is_code(b, vaddr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct binary *b;
	uint64_t vaddr;
	uint8_t to[64];

	if (binary_open_memory(data, len, "fuzz", &b) < 0)
		return 0;
	for (uint16_t i = 0; i < b->nr_segments; i++) {
		probe(b, b->segments[i].vaddr);
		probe(b, b->segments[i].vaddr + b->segments[i].memsz - 1);
		binary_offset_to_vaddr(b, b->segments[i].offset, &vaddr);
	}
	for (uint16_t i = 0; i < b->nr_sections; i++)
		binary_read(b, b->sections[i].offset, to, sizeof(to));
	probe(b, b->entry);
	probe(b, b->eh_frame_hdr);
	binary_section(b, ".symtab");
	binary_put(b);
	return 0;
}
