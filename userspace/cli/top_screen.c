// SPDX-License-Identifier: Apache-2.0
#include "cli/top_screen.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define SLICE_MS 100 /* within which a signal is seen that arrives just before a wait */

static SCREEN *top_terminal;
static volatile sig_atomic_t top_ended;
static uint32_t top_first, top_rows, top_window; /* the first row shown, rows that there are, and that have room */

void top_screen_leave(void)
{
	if (!top_terminal)
		return;
	endwin();
	delscreen(top_terminal);
	top_terminal = NULL;
}

static void top_on_signal(int number)
{
	top_ended = 1;
}

/* A change of the window's size is ncurses' own signal. */
static void top_take_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = top_on_signal};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaction(numbers[i], &action, NULL);
}

int top_screen_enter(void)
{
	setlocale(LC_CTYPE, ""); /* else names outside ASCII are shown byte by byte */
	top_terminal = newterm(NULL, stdout, stdin);
	if (!top_terminal)
		return -ENOTTY;
	atexit(top_screen_leave);
	top_take_signals();
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	curs_set(0);
	return 0;
}

/* One line of the screen: what does not fit is cut, and what was there before goes. */
static void top_put(int y, const char *line, size_t len, attr_t attributes)
{
	move(y, 0);
	clrtoeol();
	attrset(attributes);
	addnstr(line, (int)len);
	/* A line that wrapped, of wide characters: the next one is put over it. */
	if (attributes)
		mvchgat(y, 0, -1, attributes, 0, NULL);
	attrset(A_NORMAL);
}

static size_t top_line(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return (size_t)((newline ? newline : end) - at);
}

/* As far as the width goes: bytes of UTF-8 are at most four for a column. */
static size_t top_fit(const char *line, size_t len)
{
	size_t i = 0;

	for (int n = 0; i < len && n < COLS; n++)
		for (i++; i < len && ((unsigned char)line[i] & 0xc0) == 0x80; i++)
			;
	return i;
}

static uint32_t top_count_rows(const struct top_page *p)
{
	uint32_t lines = 0;

	for (size_t i = 0; i < p->len; i++)
		lines += p->text[i] == '\n';
	return lines > p->head ? lines - p->head : 0;
}

static void top_scroll_to(int64_t first)
{
	int64_t last = top_rows > top_window ? top_rows - top_window : 0;

	top_first = (uint32_t)(first < 0 ? 0 : MIN(first, last));
}

void top_screen_paint(const struct top_page *p)
{
	const char *at = p->text, *end = p->text + p->len;
	uint32_t line = 0;
	int y = 0;

	top_rows = top_count_rows(p);
	top_window = LINES > (int)p->head + 1 ? (uint32_t)LINES - p->head - 1 : 0;
	top_scroll_to(top_first);
	for (; at < end && y < LINES - 1; line++) {
		size_t len = top_line(at, end);

		if (line < p->head || line >= p->head + top_first)
			top_put(y++, at, top_fit(at, len), line + 1 == p->head ? A_REVERSE : A_NORMAL);
		at += MIN(len + 1, (size_t)(end - at));
	}
	while (y < LINES - 1)
		top_put(y++, "", 0, A_NORMAL);
	top_put(LINES - 1, p->keys, top_fit(p->keys, strlen(p->keys)), A_DIM);
	refresh();
}

/* Whether the key moves the rows. */
static bool top_scrolls(int key)
{
	switch (key) {
	case KEY_DOWN:
		top_scroll_to((int64_t)top_first + 1);
		return true;
	case KEY_UP:
		top_scroll_to((int64_t)top_first - 1);
		return true;
	case KEY_NPAGE:
		top_scroll_to((int64_t)top_first + top_window);
		return true;
	case KEY_PPAGE:
		top_scroll_to((int64_t)top_first - top_window);
		return true;
	case KEY_HOME:
		top_scroll_to(0);
		return true;
	case KEY_END:
		top_scroll_to(top_rows);
		return true;
	default:
		return key == KEY_RESIZE;
	}
}

int top_screen_wait(uint64_t ns)
{
	uint64_t deadline = clock_now_ns() + ns;

	while (!top_ended && clock_now_ns() < deadline) {
		int key;

		timeout(SLICE_MS);
		key = getch();
		if (key == 'q' || key == 'Q' || key == 4) /* Ctrl-D */
			return TOP_KEY_QUIT;
		if (key != ERR)
			return top_scrolls(key) ? TOP_KEY_REPAINT : key;
		if (feof(stdin) || ferror(stdin))
			return TOP_KEY_QUIT;
	}
	return top_ended ? TOP_KEY_QUIT : TOP_KEY_TIME;
}
