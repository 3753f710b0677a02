/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listed roots: entry points without a caller that no unwind table marks as
 * such. Checked only where no table covers the address, or where the table's
 * row leads to no caller.
 */
#ifndef OTP_UNWIND_ROOTS_H
#define OTP_UNWIND_ROOTS_H

#include "unwind/arch.h"

bool root_is_listed(const struct arch *arch, struct binary *b, uint64_t vaddr, const struct code *code);

#endif
