/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers of an ELF file, of either class, into struct binary.
 * Called by binary.c only, once per file. Everything read is hostile: tables
 * with a wrong size or place are cut to what the file holds, and invalid parts
 * are left out, so a broken file is an incomplete binary, not an error.
 */
#ifndef OTP_PROCESS_ELF_PARSE_H
#define OTP_PROCESS_ELF_PARSE_H

#include "process/binary.h"

/* 0, also for a file that is not little-endian ELF (is_elf stays false); -ENOMEM. */
int elf_parse(struct binary *b);

#endif
