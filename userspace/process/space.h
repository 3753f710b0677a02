/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable mappings of a process, and the files behind them.
 *
 * Called by the engine, one thread. A space is reference counted and, once a
 * second holder exists, copied on write: a sample that waits for a file keeps
 * the mappings of its own moment.
 * Bounds: SPACE_MAPPINGS_MAX mappings a process (the oldest anonymous ones go
 * first), counted by the table.
 */
#ifndef OTP_PROCESS_SPACE_H
#define OTP_PROCESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/binary.h"

#define SPACE_MAPPINGS_MAX 4096

enum mapped_state {
	MAPPED_NEW,     /* not requested yet */
	MAPPED_OPENING, /* requested from the host */
	MAPPED_READY,   /* binary is set */
	MAPPED_FAILED,  /* could not be opened: frames are path+offset */
};

enum mapped_kind {
	MAPPED_FILE,
	MAPPED_ANON, /* no file: JIT or generated code */
	MAPPED_VDSO,
	MAPPED_MEMFD,
	MAPPED_VSYSCALL,
};

/* A file as a mapping names it; shared by the mappings that mean the same file. */
struct mapped_file {
	uint32_t refs;
	uint8_t state; /* enum mapped_state */
	uint8_t kind;  /* enum mapped_kind */
	uint8_t build_id_len;
	uint8_t deleted;
	uint8_t build_id[BINARY_BUILD_ID_MAX]; /* of the side-band's record */
	struct str *path;                      /* as the target sees it; owned */
	uint64_t dev, ino;                     /* 0 where the side-band's record has a build-id instead */
	uint64_t container;                    /* cgroup id: paths mean nothing across containers */
	struct binary *binary;                 /* READY; owned */
	int error;                             /* FAILED: why */
	/* The file registry's own. */
	uint64_t ino_generation; /* differs for a reused inode; 0: unknown */
	uint64_t idle_since_ns, retry_ns, retry_wait_ns;
	struct mapped_file *next;
};

struct mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	struct mapped_file *file; /* owned reference, never NULL */
	uint32_t born; /* generation of the space when it was added */
};

struct space {
	uint32_t refs;
	uint32_t count;
	uint32_t cap;
	uint32_t generation; /* changes with every change */
	struct mapping *maps; /* sorted, disjoint; owned */
};

struct space *space_new(void);
struct space *space_ref(struct space *s);
struct space *space_put(struct space *s); /* NULL */
/*
 * Adds a mapping; mappings that it overlaps are cut or removed. Takes a
 * reference to file. *slot may be replaced (copy on write).
 * 0; 1 if an older mapping was removed to make room; -EINVAL for an empty range; -ENOMEM.
 */
int space_map(struct space **slot, uint64_t start, uint64_t end, uint64_t offset, struct mapped_file *file);
int space_unmap(struct space **slot, uint64_t start, uint64_t end);
const struct mapping *space_find(const struct space *s, uint64_t pc); /* borrowed; NULL if uncovered */

/* Room for mappings over all spaces, shared ones counted once: what memory they cost. */
size_t space_total(void);

/*
 * The address within the file: ELF vaddr; file offset where the file is not ELF
 * or not open; pc itself where there is no file (generated code, vsyscall).
 */
uint64_t mapping_address(const struct mapping *m, uint64_t pc);

/* A MAPPED_NEW file, refs 1. path: borrowed, as the target sees it. NULL without memory. */
struct mapped_file *mapped_file_new(enum mapped_kind kind, const char *path, size_t path_len);
/*
 * Whether its code was written by a running program, into memory or into a file that it maps: it has no tables, and
 * mostly cannot be read.
 */
bool mapped_file_is_generated(const struct mapped_file *f);
/*
 * Likewise, of the code at pc. It is also true outside of an ELF file's segments: a .NET program of one file carries its
 * assemblies behind the program and maps their code from there, which the program's tables do not describe.
 */
bool mapping_is_generated(const struct mapping *m, uint64_t pc);
struct mapped_file *mapped_file_ref(struct mapped_file *f);
struct mapped_file *mapped_file_put(struct mapped_file *f); /* NULL */

#endif
