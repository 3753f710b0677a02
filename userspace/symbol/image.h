/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole ELF file in the address space of the process that makes an index,
 * its compressed debug sections unpacked. The unpacked bytes lie in the
 * scratch file and are mapped behind the file; a section table that points to
 * them is laid over the file's own, so that libelf and libdw see an ordinary
 * file.
 *
 * Mapped, not read: only recently used pages stay resident (image_trim). A
 * file that shrinks meanwhile kills the process, which is disposable.
 * 64-bit little-endian files only: others are not unwound either.
 */
#ifndef OTP_SYMBOL_IMAGE_H
#define OTP_SYMBOL_IMAGE_H

#include <elf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/spool.h"

struct image {
	uint8_t *base; /* owned mapping */
	size_t len;
	size_t patched; /* offset of the section table laid over the file's own; len: none */
	const Elf64_Shdr *sections;
	uint32_t nr_sections;
	const char *names; /* of sections */
	size_t names_len;
	Elf *elf; /* owned */
};

struct image_part {
	const uint8_t *data;
	size_t len;
};

/* fd is borrowed, and may be closed afterwards. -EBADMSG: not an ELF file of the supported kind. */
int image_open(int fd, uint64_t offset, uint64_t len, struct scratch *scratch, struct image *ret);
/* The same with a section table that may be changed (image_table); image_reopen puts changes into effect. */
int image_open_over(int fd, uint64_t len, struct scratch *scratch, struct image *ret);
Elf64_Shdr *image_table(struct image *m);
int image_reopen(struct image *m);
void image_close(struct image *m);
void image_trim(const struct image *m);

/* A section's contents, within the image. False: no such section, or it has none. */
bool image_section(const struct image *m, const char *name, struct image_part *ret);
bool image_part(const struct image *m, const Elf64_Shdr *s, struct image_part *ret);
const char *image_section_name(const struct image *m, const Elf64_Shdr *s); /* "" where it has none */
/* Bytes of the build-id note, 0: none. */
size_t image_build_id(const struct image *m, uint8_t to[64]);

#endif
