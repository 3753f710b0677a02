/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves addresses to names, by a list of resolvers: the first result counts.
 * A new source of names is a file and a line in the list. Results are cached by
 * (binary, address), bounded, shared by all processes.
 *
 * Called by profile/ when a profile is encoded, one thread, off the sampling
 * path. Never blocks. A name is never blank: binary+0xoffset at the least.
 * Addresses are the file's own (ELF vaddr); a return address must be passed
 * as pc - 1.
 */
#ifndef OTP_SYMBOL_SYMBOL_H
#define OTP_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strpool.h"
#include "process/binary.h"

#define SYMBOL_LINES_MAX 32

/* One line of a location: the innermost inlined function first. */
struct symbol_line {
	struct str *name;      /* readable; owned by the line's holder, as is file */
	struct str *file;      /* source, NULL: unknown */
	uint32_t line, column; /* 0: unknown */
	uint32_t start_line;   /* of the function, likewise */
};

void symbol_line_copy(struct symbol_line *to, const struct symbol_line *from); /* with references of its own */
void symbol_line_done(struct symbol_line *l);

struct symbol_result {
	uint32_t count; /* at least 1 */
	const char *resolver; /* name of the resolver that found it, static; NULL: binary+0xoffset */
	bool function_start; /* no name, but the place where the function begins */
	struct symbol_line lines[SYMBOL_LINES_MAX];
};

void symbol_result_done(struct symbol_result *r);

struct symbol_limits {
	uint32_t cached;      /* results, default 32768 */
	size_t table_bytes;   /* symbol tables in memory, default 12 MiB */
	/*
	 * Where the function around vaddr begins, by other means than symbols
	 * (unwind tables); 0 or negative errno. A function without a name is then
	 * one node, binary+0x<its start>, not one per address. May be NULL.
	 */
	int (*function_start)(struct binary *b, uint64_t vaddr, uint64_t *ret);
	/*
	 * Names, inlined calls and lines of debug information: indexes are
	 * requested from the host, NULL: never. Names of files without a symbol
	 * table, and of those that contain debug information, wait for their index
	 * up to wait_ns.
	 */
	struct host *host; /* borrowed */
	bool inlines, lines, show_clones;
	uint64_t wait_ns;
	/* Called when an index has arrived or was refused: names that waited can be resolved. May be NULL. */
	void (*index_settled)(void *ctx);
	void *ctx;
};

struct symbol_stats {
	uint64_t cache_hits, table_bytes, tables_evicted;
};

struct symbolizer;
int symbolizer_new(const struct symbol_limits *limits, struct symbolizer **ret);
struct symbolizer *symbolizer_free(struct symbolizer *s); /* NULL */
/* Changes the bounds: bytes of results, and of symbol tables. The excess is dropped at once. */
void symbolizer_limit(struct symbolizer *s, size_t cached_bytes, size_t table_bytes);

/* The process that runs the file: debug files are searched for in its root. */
struct symbol_asker {
	uint32_t pid;
	uint64_t pid_start_ns; /* 0: unknown */
	uint64_t cgroup_id; /* whose turn the question takes */
	uint64_t now_ns;
};

/*
 * Requests the file's address index, unless that was done. True: names should
 * wait, as the index is pending and will hold more than the file's symbols.
 */
bool symbol_want(struct symbolizer *s, struct binary *b, const struct symbol_asker *asker);

/* Whether names should still wait for any index that symbol_want requested. */
bool symbol_waits(const struct symbolizer *s, uint64_t now_ns);

/* Always fills ret (owned by the caller). path names a file without binary. */
void symbol_find(struct symbolizer *s, struct binary *b, const char *path, uint64_t vaddr,
		 struct symbol_result *ret);
/* The sources of a file's names, as they are now. */
enum symbol_index { SYMBOL_INDEX_OFF, SYMBOL_INDEX_NEW, SYMBOL_INDEX_ASKED, SYMBOL_INDEX_READY, SYMBOL_INDEX_REFUSED };
struct symbol_state {
	enum symbol_index index;
	int error;	    /* REFUSED: why */
	bool dwarf;	    /* READY: functions, inlined calls and lines */
	bool go;	    /* likewise, of the table that Go's runtime uses */
	bool debug_symbols; /* likewise: the whole symbol table, of the file or of its debug file */
	bool packed;	    /* likewise: of .gnu_debugdata */
	bool incomplete;    /* likewise: a bound was reached, or parts of debug information are missing */
	bool fetched;	    /* likewise: some of it was downloaded */
	uint32_t fetch;	    /* as symbol_set_fetch set it */
	bool own_dwarf, symtab, dynsym; /* sections of the file itself */
};
/*
 * The host reports how far it is with downloading a file's debug information
 * (fetch: a number of its own), and whether a new index would hold more (again):
 * then one is requested when the file is used again. htlhash NULL: for all files
 * without debug information; their fetch becomes 0.
 */
void symbol_set_fetch(struct symbolizer *s, const uint8_t *htlhash, uint32_t fetch, bool again);
void symbol_state(const struct symbolizer *s, const struct binary *b, struct symbol_state *ret);
void symbolizer_stats(const struct symbolizer *s, struct symbol_stats *ret);

/*
 * Kernel, module and BPF symbols, from the text of /proc/kallsyms. Loading
 * keeps code symbols only. kernel_find returns the module ("vmlinux", "bpf" or
 * the module's name), the address relative to that module's start (a kernel
 * address itself never leaves the host) and the name.
 */
struct kernel_symbols;
/* fd is borrowed. -EPERM: addresses are hidden; -ENODATA: no code symbol. */
int kernel_symbols_load(int fd, struct kernel_symbols **ret);
struct kernel_symbols *kernel_symbols_free(struct kernel_symbols *k); /* NULL */

struct kernel_symbol {
	const char *name;   /* borrowed until the next load or free; never NULL */
	const char *module; /* likewise */
	uint64_t offset;    /* of the address in the module */
	uint64_t start;     /* of the symbol in the module */
	uint64_t module_size;
	bool named;
};
size_t kernel_symbols_bytes(const struct kernel_symbols *k); /* memory held */
void kernel_find(const struct kernel_symbols *k, uint64_t addr, struct kernel_symbol *ret);
/*
 * How many lookups of kernel_find another load may improve: those of code in no
 * known module, and of BPF programs, whose ends the text lacks, so that a
 * program loaded since may be found under its neighbour's name.
 */
uint64_t kernel_symbols_unsure(const struct kernel_symbols *k);

/* Readable form of a C++ or Rust name, NULL for any other; owned (malloc). Bounded by length and time. */
char *symbol_demangle(const char *name);

#endif
