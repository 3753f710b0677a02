// SPDX-License-Identifier: Apache-2.0
/* Input: a byte that says how, then a section of frame tables as it lies in a file, packed or not. */
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/tiny_elf.h"
#include "unwind/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tiny tiny;
	struct binary *b;
	struct row row;

	if (!size)
		return 0;
	tiny_init(&tiny, EM_X86_64, TINY_NO_HDR | TINY_NO_SECTIONS);
	tiny_section(&tiny, data[0] & 1 ? ".zdebug_frame" : ".debug_frame", data[0] & 2 ? SHF_COMPRESSED : 0, data + 1,
		     MIN(size - 1, (size_t)(TINY_CODE - TINY_EH)));
	b = tiny_open(&tiny);
	if (!b)
		abort();
	for (uint64_t at = TINY_CODE; at < TINY_CODE + 64; at += 16)
		(void)cfi_row(b, OTP_REGS_X86_64, at, &row);
	binary_put(b);
	if (cfi_budget_take(CFI_BUDGET) < 0)
		abort(); /* something was kept */
	cfi_budget_return(CFI_BUDGET);
	return 0;
}
