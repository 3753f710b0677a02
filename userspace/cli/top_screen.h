/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The full screen of 'otprof top', by ncurses: a head that stays, rows that scroll,
 * and a line of keys.
 *
 * Called by 'otprof top', one thread, on a terminal (screen_possible). The terminal
 * is restored at the end, at exit, and when a signal ends the program.
 */
#ifndef OTP_CLI_TOP_SCREEN_H
#define OTP_CLI_TOP_SCREEN_H

#include <stddef.h>
#include <stdint.h>

struct top_page {
	const char *text; /* lines, UTF-8 */
	size_t len;
	uint32_t head; /* lines that do not scroll; the last of them is the rows' head */
	const char *keys; /* the last line of the screen */
};

enum { TOP_KEY_TIME = -1, TOP_KEY_REPAINT = -2, TOP_KEY_QUIT = -3 };

/* -ENOTTY: the terminal is not known. */
int top_screen_enter(void);
void top_screen_leave(void);
void top_screen_paint(const struct top_page *p);
/* Waits for a key, at most so long: a character, or one of TOP_KEY_. Keys that scroll are handled here: REPAINT. */
int top_screen_wait(uint64_t ns);

#endif
