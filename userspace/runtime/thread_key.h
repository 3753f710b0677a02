/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread keeps its value of a pthread key. That is a C library's own
 * affair, and part of no interface; but glibc and musl have not changed it in the
 * years of the runtimes known here. On x86-64 alone.
 *
 * Called by the attach of runtimes that know their key, in a decoder. Reads the
 * file's dynamic section; no bound is needed but that on its entries.
 */
#ifndef OTP_RUNTIME_THREAD_KEY_H
#define OTP_RUNTIME_THREAD_KEY_H

#include "kmod/uapi/otprof_walk.h"
#include "process/binary.h"

/*
 * The first steps of a walk, from the thread pointer to the value. b: a file that
 * uses the library of its process. 0; -ENOTSUP: another architecture, library or key.
 */
int thread_key_chain(struct binary *b, uint32_t key, struct otp_walk *to);

#endif
