// SPDX-License-Identifier: Apache-2.0
/* Input: 16 bytes of two register values, one of which registers are known, then a DWARF expression. */
#include <errno.h>
#include <string.h>

#include "unwind/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD 17

/* Every fourth word cannot be read. */
static int load(void *ctx, uint64_t addr, uint64_t *ret)
{
	*ret = addr * 0x9e3779b97f4a7c15u;
	return addr & 24 ? 0 : -EFAULT;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t reg[64], cfa, result;
	struct expr_env env = {.reg = reg, .nr_regs = 33, .load = load};

	if (size < HEAD)
		return 0;
	for (size_t i = 0; i < 64; i++)
		memcpy(&reg[i], data + i % 2 * 8, 8);
	cfa = reg[0];
	env.valid = data[16] & 1 ? ~0ULL : data[16];
	(void)expr_eval(data + HEAD, size - HEAD, &env, NULL, &result);
	(void)expr_eval(data + HEAD, size - HEAD, &env, &cfa, &result);
	return 0;
}
