/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for other people's secrets: stack bytes and registers. It is left out
 * of core dumps, and is unmapped when it is freed, so that no copy remains in
 * a heap.
 * Called by the engine for what it copies out of the ring. Each block is whole
 * pages of its own, and a call costs microseconds: for memory that is kept, not
 * for each sample.
 */
#ifndef OTP_BASE_SECRET_H
#define OTP_BASE_SECRET_H

#include <stddef.h>

void *secret_new(size_t size); /* zeroed; NULL without memory */
void secret_free(void *p, size_t size); /* NULL: nothing */
/* Changes the size and keeps the contents. NULL without memory: then p is unchanged. */
void *secret_grow(void *p, size_t size, size_t new_size);
/* Leaves this thread's stack, which holds others' registers during unwinding, out of core dumps. Before any sandbox. */
int secret_hide_stack(void);

#endif
