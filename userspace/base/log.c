// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

#define LOG_RATE_NS (10ULL * NSEC_PER_SEC)

static const char *log_role = "otprofd";
static enum log_level log_max = LOG_LEVEL_INFO;
static int log_fd = STDERR_FILENO;
static int log_journal = -1;

void log_init(const char *role, enum log_level level)
{
	log_role = role;
	log_max = level;
	log_journal = getenv("JOURNAL_STREAM") != NULL;
}

void log_set_fd(int fd)
{
	log_fd = fd;
}

static void log_vline(enum log_level level, const char *suffix, const char *fmt, va_list ap)
{
	char text[960], line[1024];
	int n;

	if (level > log_max)
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	if (log_journal > 0)
		n = snprintf(line, sizeof(line), "<%d>%s: %s%s\n", level, log_role, text, suffix);
	else
		n = snprintf(line, sizeof(line), "%s: %s%s\n", log_role, text, suffix);
	if (n >= (int)sizeof(line)) {
		n = sizeof(line);
		line[n - 1] = '\n';
	}
	/* One write a line, so that lines of several processes never mix. */
	if (write(log_fd, line, n) < 0)
		return; /* nowhere left to say so */
}

void log_line(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vline(level, "", fmt, ap);
	va_end(ap);
}

void log_rated(struct log_rate *rate, enum log_level level, const char *fmt, ...)
{
	uint64_t now = clock_now_ns();
	char suffix[48] = "";
	va_list ap;

	if (rate->last_ns && now - rate->last_ns < LOG_RATE_NS) {
		rate->suppressed++;
		return;
	}
	if (rate->suppressed)
		snprintf(suffix, sizeof(suffix), " (%u like this left out)", rate->suppressed);
	rate->last_ns = now;
	rate->suppressed = 0;
	va_start(ap, fmt);
	log_vline(level, suffix, fmt, ap);
	va_end(ap);
}
