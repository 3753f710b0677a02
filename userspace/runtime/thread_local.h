/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread-local variable of a program lies: its block is the first one
 * next to the thread pointer, in each thread, as the linker has laid it out (ELF
 * Handling For Thread-Local Storage, variant II). A library's block is elsewhere
 * in each process: the loader gives the library a number, writes it where its
 * relocations say, and keeps a table of blocks for each thread.
 *
 * Called by the attach of runtimes that know their variable, in a decoder. Reads
 * the file's symbols and program headers, and of a library its relocations, 24 MiB
 * at most, and 1,024 of its symbols.
 */
#ifndef OTP_RUNTIME_THREAD_LOCAL_H
#define OTP_RUNTIME_THREAD_LOCAL_H

#include "kmod/uapi/otprof_walk.h"
#include "runtime/runtime.h"

/*
 * The first step of a walk, from the thread pointer to what the variable, a pointer, leads to. 0; -ENOENT: the file has no
 * such variable; -ENOTSUP: another architecture, or of a library another C library, or none of its relocations tells.
 */
int thread_local_chain(const struct runtime_file *file, struct memory *m, const char *name, struct otp_walk *to);

#endif
