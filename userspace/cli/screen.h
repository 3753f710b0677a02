/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live view on a terminal: the alternate screen, repainted in place, fitted
 * to the window; the terminal is restored at the end. Called by verbs that
 * watch, one thread. If stdin or stdout is not a terminal, the caller prints
 * page after page instead.
 */
#ifndef OTP_CLI_SCREEN_H
#define OTP_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

bool screen_possible(void);
/* The screen is also left at exit and on signals that end a program. -errno. */
int screen_enter(void);
void screen_leave(void);
void screen_paint(const char *page, size_t len);

enum screen_event { SCREEN_TIME, SCREEN_REPAINT, SCREEN_QUIT };
/* Waits until the time is over, the window has changed, or the user quits (q, Ctrl-C). */
enum screen_event screen_wait(uint64_t ns);

/* The part of a page that a window of so many rows and columns shows: whole lines, cut at its edges. */
void screen_fit(const char *page, size_t len, uint32_t rows, uint32_t columns, struct buf *to);

#endif
