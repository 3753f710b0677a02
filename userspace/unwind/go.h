/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of code that Go compiled or assembled, from the table that is in each of
 * its programs (process/go_table.h): exact for prologues, for functions without
 * a frame, and in stripped programs.
 *
 * go_row is called by rules.c on a cache miss, go_stands_in by unwind.c. Where a stack ends (goexit, rt0_go) the row
 * has no return address. Where a function has left its caller's stack (systemstack,
 * asmcgocall), the row is ROW_SWITCHED, or ROW_RETURNS where a register still
 * holds the former stack pointer; where asmcgocall is on a stack of the thread
 * already and only aligns it, the row is by the word that holds that.
 * Failure: -ENOENT not Go's code, or code that the table says nothing of;
 * -EBADMSG the table is broken. Other tables may still have a row then.
 */
#ifndef OTP_UNWIND_GO_H
#define OTP_UNWIND_GO_H

#include "unwind/arch.h"

int go_row(const struct arch *arch, struct binary *b, uint64_t vaddr, struct row *ret);
/*
 * Whether a goroutine's saved pc stands for the function at vaddr, which left its stack: it is in a function for that
 * purpose, of which a plugin and its program each have one, or, of asmcgocall before Go 1.17, in the function itself. Cost:
 * two searches of the file's table.
 */
bool go_stands_in(struct binary *b, uint64_t vaddr, uint64_t saved);

#endif
