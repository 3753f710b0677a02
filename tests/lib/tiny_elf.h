/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small ELF file in memory with call frame information that a test writes
 * byte by byte: one segment, code at TINY_CODE, .eh_frame_hdr at TINY_HDR,
 * .eh_frame at TINY_EH, all addresses equal to file offsets.
 */
#ifndef OTP_TESTS_TINY_ELF_H
#define OTP_TESTS_TINY_ELF_H

#include <stddef.h>
#include <stdint.h>

#include "process/binary.h"
#include "process/space.h"

#define TINY_HDR 0x1000
#define TINY_EH 0x1400
#define TINY_CODE 0x2000
#define TINY_SIZE 0x3000

enum { TINY_NO_HDR = 1, TINY_NO_SECTIONS = 2 };

struct tiny {
	uint8_t image[TINY_SIZE];
	size_t eh_len;
	uint32_t cie; /* address of the last CIE */
	uint32_t nr;  /* pairs in the header's table */
};

void tiny_init(struct tiny *t, uint16_t machine, unsigned flags);
/* augmentation "zR" or "zRS"; insn: the initial instructions */
void tiny_cie(struct tiny *t, const char *augmentation, int8_t data_align, uint8_t ra, const void *insn, size_t len);
/* Adds its pair to the table too; call in order of start. */
void tiny_fde(struct tiny *t, uint32_t start, uint32_t len, const void *insn, size_t insn_len);
/* Instead of .eh_frame, in a file of TINY_NO_HDR | TINY_NO_SECTIONS: a section with these bytes and SHF_* flags. */
void tiny_section(struct tiny *t, const char *name, uint64_t flags, const void *bytes, size_t len);
struct binary *tiny_open(const struct tiny *t);
/* A space with the file's code at base + TINY_CODE. */
struct space *tiny_space(struct binary *b, uint64_t base);
void tiny_add_anon(struct space **s, uint64_t start, uint64_t end);

#endif
