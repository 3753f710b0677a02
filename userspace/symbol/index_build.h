/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making the address index of an ELF file, from its symbols and its debug
 * information: its own, that of a separate file (build-id, debuglink), what
 * dwz moved to a third (debugaltlink), what split DWARF left in .dwo and .dwp;
 * of a Go program without any, from the table that its runtime uses.
 *
 * Called by the indexer process, and by tests. Everything it reads is hostile
 * and may crash libdw: so the calling process is disposable and has limits on
 * memory, CPU time and file size. Memory is bounded by the largest unit, not
 * by the file: sorting uses the scratch file, pages of the input are released.
 */
#ifndef OTP_SYMBOL_INDEX_BUILD_H
#define OTP_SYMBOL_INDEX_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#define INDEX_SCRATCH_MAX (3ull << 29) /* bytes of the scratch file; directories follow */

/* As they are searched. FETCHED: downloaded files instead of a root; the path is a build-id in hexadecimal. */
enum index_root { INDEX_ROOT_HOST, INDEX_ROOT_TARGET, INDEX_ROOT_FETCHED };

struct index_job {
	int elf_fd, out_fd, scratch_fd; /* borrowed; the last two empty, readable and writable */
	const char *path;	 /* of the file, as its process sees it */
	const char *debug_dirs;	 /* separated by spaces */
	bool symbols_only;	 /* skip the debug information, which a first attempt did not survive */
	bool inlines, lines;
	/*
	 * Another ELF file by its path in one of the roots; 0 and a descriptor that is the caller's, or -errno. It
	 * serves every process that runs the file: the callee opens none whose writers could not write the file.
	 */
	int (*open)(void *ctx, enum index_root root, const char *path, int *ret_fd);
	void *ctx;
};

struct index_report {
	uint32_t flags; /* enum index_flags */
	uint64_t functions, symbols, lines; /* rows */
	uint64_t scratch_bytes, index_bytes;
};

/* -EBADMSG: not an ELF file of the supported kind; -EDQUOT: disk full; -ENOSPC, -EFBIG: too large; -ENOMEM, -EIO. */
int index_build(const struct index_job *job, struct index_report *ret);

#endif
