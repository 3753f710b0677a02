/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for other people's secrets: stack bytes and registers. It is left out
 * of core dumps, and goes back to the kernel when it is freed, so nothing of
 * it lingers in a heap.
 * Called by the engine for what it copies out of the ring. Each block is whole
 * pages of its own: some microseconds, so for what is kept, not for each sample.
 */
#ifndef OTP_BASE_SECRET_H
#define OTP_BASE_SECRET_H

#include <stddef.h>

void *secret_new(size_t size); /* zeroed; NULL without memory */
void secret_free(void *p, size_t size); /* NULL: nothing */
/* Another size; what was there moves along. NULL without memory, then p is as it was. */
void *secret_grow(void *p, size_t size, size_t new_size);
/* This thread's stack, on which registers of others lie while they are unwound; before any sandbox. 0 or -errno. */
int secret_hide_stack(void);

#endif
