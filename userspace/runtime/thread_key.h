/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread keeps its value of a pthread key. That is a C library's own
 * affair, and part of no interface; but glibc and musl have not changed it in the
 * years of the runtimes known here, on x86-64. On arm64 a thread's pointer is
 * behind glibc's description of it, whose size is another in each version: there
 * it is looked for in the memory of one thread.
 *
 * Called by the attach of runtimes that know their key, in a decoder. Reads the
 * file's dynamic section, and on arm64 a few KiB of the thread.
 */
#ifndef OTP_RUNTIME_THREAD_KEY_H
#define OTP_RUNTIME_THREAD_KEY_H

#include "kmod/uapi/otprof_walk.h"
#include "runtime/runtime.h"

/*
 * The first steps of a walk, from the thread pointer to the value. file uses the
 * library of its process. 0; -ENOTSUP: another architecture, library or key, or
 * the thread does not look as that library's.
 */
int thread_key_chain(const struct runtime_file *file, struct memory *m, uint32_t key, struct otp_walk *to);
/* Likewise, to a thread's block of thread-local variables of the library that the loader has given this number. glibc only. */
int thread_block_chain(const struct runtime_file *file, uint64_t module, struct otp_walk *to);

#endif
