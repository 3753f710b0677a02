/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information of one file: from an address to its row.
 * .eh_frame is found through the sorted table of .eh_frame_hdr (Linux Standard
 * Base 5.0, section 10.6), one FDE at a time; where that table is absent or
 * wrong, and for .debug_frame, through a lookup table that is built at first use.
 * A compressed .debug_frame (Go's linker makes it) is unpacked for that.
 *
 * Called by rules.c on a cache miss, and by tools that print rows.
 * Lifetime: a file's tables are kept in its binary (BINARY_SLOT_UNWIND).
 * Bounds: an FDE of CFI_FDE_MAX bytes, CFI_TABLE_MAX entries a file, of twice
 * as many looked at, CFI_UNPACKED_MAX bytes of a compressed section, and
 * CFI_BUDGET bytes of lookup tables and unpacked sections over all files.
 * Failure: -ENOENT no FDE covers the address, -EBADMSG the tables are broken.
 */
#ifndef OTP_UNWIND_CFI_H
#define OTP_UNWIND_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "process/binary.h"
#include "unwind/row.h"

#define CFI_FDE_MAX (1u << 18)
#define CFI_TABLE_MAX (1u << 18)
#define CFI_UNPACKED_MAX (4u << 20)
#define CFI_BUDGET (8u << 20)

/* Place of a table: by virtual address; by file offset where it is not loaded; from 0 on if unpacked. */
struct cfi_section {
	uint64_t start;
	uint64_t end;
	bool by_offset; /* .debug_frame, which also has its own conventions for ids and encodings */
};

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t insn, insn_end;
	uint8_t ra;
	uint8_t encoding; /* DW_EH_PE_* of the FDE's addresses */
	bool augmented;   /* an augmentation length precedes the instructions */
	bool signal;
};

struct fde {
	struct cie cie;
	uint64_t start, end; /* addresses covered */
	uint64_t insn, insn_end;
	bool by_offset;
};

/* As binary_read_vaddr; by_offset: pos is in .debug_frame, the file's or the unpacked one. */
ssize_t cfi_read(struct binary *b, bool by_offset, uint64_t pos, void *to, size_t len);

/* --- reading: a small window over the file; errors stick, reads then return 0 --- */
struct cfi_reader {
	struct binary *binary; /* borrowed */
	uint64_t pos, end;
	uint64_t window_at;
	uint32_t window_len;
	int error;
	bool by_offset;
	uint8_t window[128];
};

void reader_init(struct cfi_reader *r, struct binary *b, bool by_offset, uint64_t pos, uint64_t end);
uint64_t reader_uint(struct cfi_reader *r, unsigned size); /* little endian, 1 to 8 bytes */
uint64_t reader_uleb(struct cfi_reader *r);
int64_t reader_sleb(struct cfi_reader *r);
void reader_skip(struct cfi_reader *r, uint64_t len);
/*
 * A pointer as DW_EH_PE_* encodes it; data_base is what datarel counts from.
 * Indirect, text- and function-relative ones are errors: no linker writes them in these tables.
 */
uint64_t reader_encoded(struct cfi_reader *r, uint8_t encoding, uint64_t data_base);
unsigned encoded_size(uint8_t encoding); /* bytes; 0: variable or unknown */

/* --- parsing --- */
/* The last CIE read: neighbouring FDEs share one. Zeroed at first. */
struct cie_memo {
	uint64_t at;
	struct cie cie;
	bool filled;
};

/*
 * The entry at address at. 0: an FDE. -ENOENT: a CIE or the terminator.
 * *ret_next is the next entry's address, also when the entry's contents are
 * broken; unchanged where even the length is invalid. memo and ret_next may be
 * NULL.
 */
int fde_parse(struct binary *b, const struct cfi_section *s, uint64_t at, struct cie_memo *memo, struct fde *ret,
	      uint64_t *ret_next);

/* --- finding --- */
int cfi_find(struct binary *b, uint64_t vaddr, struct fde *ret);

/* Sorted by address; offsets count from the section's start and the lowest address. */
struct fde_table {
	struct {
		uint32_t start;
		uint32_t fde;
	} *at; /* owned */
	uint32_t count;
	uint64_t base;
	bool cut; /* the bound was reached */
};

int fde_table_build(struct binary *b, const struct cfi_section *s, struct fde_table *ret);
int fde_table_find(const struct fde_table *x, struct binary *b, const struct cfi_section *s, uint64_t vaddr,
		   struct fde *ret);
void fde_table_done(struct fde_table *x);

/* Of CFI_BUDGET; -ENOSPC. One thread. */
int cfi_budget_take(size_t bytes);
void cfi_budget_return(size_t bytes);

/* The tables that a file's FDEs are looked up in; wrong ones are left out. */
enum cfi_has {
	CFI_TABLE = 1,	     /* the linker's sorted table, in use */
	CFI_EH_FRAME = 2,    /* without it: our own table of .eh_frame */
	CFI_DEBUG_FRAME = 4, /* .debug_frame, for what neither covers */
	CFI_EH_TABLE_BUILT = 8, CFI_DEBUG_TABLE_BUILT = 16, /* the table is built */
};
unsigned cfi_has(struct binary *b);

/* --- running --- */
int cfi_run(struct binary *b, const struct fde *f, unsigned nr_regs, uint64_t vaddr, struct row *ret);

/* cfi_find, then cfi_run: the row for vaddr. */
int cfi_row(struct binary *b, unsigned nr_regs, uint64_t vaddr, struct row *ret);

#endif
