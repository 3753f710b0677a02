/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers of an ELF file, of either class, into struct binary.
 * Only binary.c calls it, once per file. Everything read is hostile: tables
 * that lie about their size or place are cut to what the file holds, and what
 * cannot be made sense of is left out, so a broken file is a poorer binary,
 * not an error.
 */
#ifndef OTP_PROCESS_ELF_PARSE_H
#define OTP_PROCESS_ELF_PARSE_H

#include "process/binary.h"

/* 0, also for what is no little-endian ELF (is_elf stays false); -ENOMEM. */
int elf_parse(struct binary *b);

#endif
