/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file as the profiler sees it: identity, segments, sections, and
 * bounded reads through one small page cache. unwind/ and symbol/ read files
 * only through it. Everything in a file is hostile.
 *
 * Called by the engine, one thread. Files are read by pread, never mapped: one
 * that is truncated meanwhile causes a short read, not a SIGBUS.
 * Lifetime: reference counted. Binaries are shared by all processes and keyed
 * by the file's own identity (device, inode, size, change time) and its path,
 * never by build-id alone, which a hostile file can claim. The path names frames
 * without symbols, and a mount can put any file below any path: so the first to
 * map a file does not choose its path for others.
 * Cost: opening reads the ELF header, the tables and the notes, a few pages
 * however large the file is. A cached read is a memcpy.
 */
#ifndef OTP_PROCESS_BINARY_H
#define OTP_PROCESS_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strpool.h"
#include "process/host.h"

#define BINARY_BUILD_ID_MAX 20
#define BINARY_SEGMENTS_MAX 64
#define BINARY_SECTIONS_MAX 256

struct binary_segment { /* PT_LOAD */
	uint64_t vaddr, offset, filesz, memsz;
	uint32_t flags; /* PF_* */
};

struct binary_section {
	char name[24]; /* cut */
	uint64_t addr, offset, size, entsize, flags;
	uint32_t type, link;
};

/* What unwind/, symbol/ and go_table.h keep with a binary; freed with it. */
enum binary_slot { BINARY_SLOT_UNWIND, BINARY_SLOT_SYMBOLS, BINARY_SLOT_DEBUG, BINARY_SLOT_GO, BINARY_SLOT_NR };

struct binary {
	uint32_t refs;
	uint32_t id; /* small, unique for the life of the engine, from 1 */
	struct str *path; /* as its processes see it; owned */
	struct host_ticket ticket; /* for questions about it to the host; zero where the host gave none */
	uint64_t dev, ino, size, ctime_ns;
	uint8_t build_id[BINARY_BUILD_ID_MAX];
	uint8_t build_id_len; /* 0: none */
	uint8_t htlhash[16];  /* first 16 bytes of SHA-256(head 4096, tail 4096, length as big-endian u64) */
	bool root_only; /* nobody but root may write it; in a replay, always */
	bool is_elf;
	bool is_64;
	uint16_t machine; /* EM_* */
	uint16_t type;    /* ET_* */
	uint64_t entry;
	int8_t runtime;   /* the engine's own: 0 until it looked for one, 1 none, else index in runtime_list + 2 */
	uint16_t nr_segments;
	uint16_t nr_sections;
	struct binary_segment *segments; /* owned */
	struct binary_section *sections; /* owned */
	uint64_t eh_frame_hdr, eh_frame_hdr_size; /* PT_GNU_EH_FRAME: vaddr, memsz; 0: none */
	void *slot[BINARY_SLOT_NR];
	void (*slot_free[BINARY_SLOT_NR])(void *);
};

/*
 * Takes fd over, also on failure. A file that is not ELF becomes a binary with
 * is_elf false (its frames are named by path and offset). A file that is open
 * already below this path: another reference to the same object. -ENOMEM; -EIO, also for
 * anything but a regular file.
 */
int binary_open(int fd, const char *path, struct binary **ret);
/* The same from memory (the vDSO, tests): copies it. */
int binary_open_memory(const void *image, size_t len, const char *name, struct binary **ret);

/* Borrowed, to be passed to another process; -1: the binary was made from memory or a capture. */
int binary_fd(const struct binary *b);

/*
 * Whether both are of one file, under whatever paths: that of a process with a root of its own is seen as the process has it
 * when it maps the file, and as its reader has it when its mappings are read.
 */
bool binary_is_same_file(const struct binary *a, const struct binary *b);

struct binary *binary_ref(struct binary *b);
struct binary *binary_put(struct binary *b); /* NULL; the last one closes the file */

/* Open binaries: each file holds one descriptor. */
uint32_t binary_count(void);

/* Bytes read, fewer at the end of the file, or negative errno. */
ssize_t binary_read(struct binary *b, uint64_t offset, void *to, size_t len);
/* The same by virtual address, within one segment's file contents; -EFAULT outside. */
ssize_t binary_read_vaddr(struct binary *b, uint64_t vaddr, void *to, size_t len);

const struct binary_section *binary_section(const struct binary *b, const char *name); /* NULL if absent */
/* false where no segment covers it. */
bool binary_offset_to_vaddr(const struct binary *b, uint64_t offset, uint64_t *ret_vaddr);
bool binary_is_code(const struct binary *b, uint64_t vaddr); /* within an executable segment */

/* Bound of the page cache over all files, bytes; default 4 MiB. */
void binary_cache_limit(size_t bytes);
size_t binary_cache_used(void);

/*
 * Capture and replay. The hook gets every page that the cache reads, for a
 * capture; a replay supplies pages in place of a file. hook may be NULL.
 */
typedef void binary_page_hook_fn(void *ctx, const struct binary *b, uint64_t offset, const void *data, size_t len);
void binary_set_page_hook(binary_page_hook_fn *fn, void *ctx);
/* Reads a page of a captured file: bytes, 0 beyond the capture. */
typedef ssize_t binary_reader_fn(void *ctx, uint64_t offset, void *to, size_t len);
struct binary_replay { uint64_t dev, ino, size, ctime_ns; binary_reader_fn *read; void *ctx; };
int binary_open_replay(const struct binary_replay *r, const char *path, struct binary **ret);

#endif
