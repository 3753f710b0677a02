// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Alternate screen, no cursor, and no wrapping: a character may be wider than we count. And back. */
static const char enter_text[] = "\033[?1049h\033[?25l\033[?7l";
static const char leave_text[] = "\033[?7h\033[?25h\033[?1049l";

static struct termios before;
static volatile sig_atomic_t inside, resized, ended;
static sigset_t waiting_mask;

bool screen_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb");
}

static void put(const char *s, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, s, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		s += n;
		len -= (size_t)n;
	}
}

void screen_leave(void)
{
	if (!inside)
		return;
	inside = 0;
	put(leave_text, sizeof(leave_text) - 1);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

static void on_signal(int number)
{
	if (number == SIGWINCH)
		resized = 1;
	else
		ended = 1;
}

/* They are delivered only while we wait, so none is missed between a look and the wait. */
static void take_signals(void)
{
	static const int numbers[] = {SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		sigaction(numbers[i], &action, NULL);
		sigaddset(&blocked, numbers[i]);
	}
	sigprocmask(SIG_BLOCK, &blocked, &waiting_mask);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigdelset(&waiting_mask, numbers[i]);
}

int screen_enter(void)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return -errno;
	raw = before;
	raw.c_lflag &= (tcflag_t)~(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) < 0)
		return -errno;
	take_signals();
	inside = 1;
	atexit(screen_leave);
	put(enter_text, sizeof(enter_text) - 1);
	return 0;
}

static bool is_continuation(char c)
{
	return (c & 0xc0) == 0x80;
}

/* Bytes of a line's first columns characters. */
static size_t cut(const char *line, size_t len, uint32_t columns)
{
	size_t i = 0;

	for (uint32_t n = 0; i < len && n < columns; n++)
		for (i++; i < len && is_continuation(line[i]); i++)
			;
	return i;
}

void screen_fit(const char *page, size_t len, uint32_t rows, uint32_t columns, struct buf *to)
{
	const char *end = page + len;

	for (uint32_t row = 0; row < rows && page < end; row++) {
		const char *newline = memchr(page, '\n', (size_t)(end - page));
		size_t whole = (size_t)((newline ? newline : end) - page);

		/* No newline behind the last row: it would scroll the first one away. */
		if (row)
			buf_add_str(to, "\r\n");
		/* Before the text: behind a full row it would take the last character. */
		buf_add_str(to, "\033[K");
		buf_add(to, page, cut(page, whole, columns));
		page += whole + (newline != NULL);
	}
}

void screen_paint(const char *page, size_t len)
{
	_cleanup_(buf_done) struct buf out = {0};
	struct winsize window;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) < 0 || !window.ws_row || !window.ws_col)
		window = (struct winsize){.ws_row = 24, .ws_col = 80};
	/* Home, repaint over what was there, erase below: no flicker of a cleared screen. */
	buf_add_str(&out, "\033[H");
	screen_fit(page, len, window.ws_row, window.ws_col, &out);
	buf_add_str(&out, "\033[J");
	if (!out.failed)
		put((const char *)out.data, out.len);
}

static bool wants_to_quit(void)
{
	char keys[32];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	for (ssize_t i = 0; i < n; i++)
		if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == 3 || keys[i] == 4)
			return true;
	return false;
}

enum screen_event screen_wait(uint64_t ns)
{
	uint64_t deadline = clock_now_ns() + ns;

	for (;;) {
		struct pollfd input = {STDIN_FILENO, POLLIN, 0};
		uint64_t now = clock_now_ns(), left = deadline > now ? deadline - now : 0;
		struct timespec t = {.tv_sec = (time_t)(left / NSEC_PER_SEC), .tv_nsec = (long)(left % NSEC_PER_SEC)};
		int n = ppoll(&input, 1, &t, &waiting_mask);

		if (ended || (n > 0 && (input.revents & (POLLHUP | POLLERR) || wants_to_quit())))
			return SCREEN_QUIT;
		if (resized) {
			resized = 0;
			return SCREEN_REPAINT;
		}
		if (n == 0)
			return SCREEN_TIME;
	}
}
