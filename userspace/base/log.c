// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"

#define LOG_RATE_NS  (10ULL * NSEC_PER_SEC)
#define LOG_RATE_LONGEST_NS (600ULL * NSEC_PER_SEC)
#define LOG_KINDS    64
#define LOG_TEXT     960
#define JOURNAL_PATH "/run/systemd/journal/socket"

/* How often a format was used lately; two that share a place push each other out. */
struct kind {
	const char *fmt;
	uint64_t since_ns;
	uint32_t lines, suppressed;
};

/*
 * The log's state is the process' own: there is one standard error and one role, and any function may log. It is set
 * at the start and when the configuration changes; the counters of formats are used by the thread that logs.
 */
static const char *log_role = "otprofd";
static enum log_level log_max = LOG_LEVEL_INFO;
static int log_fd = STDERR_FILENO;
static int log_journal = -1;
static bool log_priorities;
static struct kind log_kinds[LOG_KINDS];

static const char *const event_ids[] = {
	[LOG_EVENT_NONE] = NULL,
#define X(NAME, id, text) [LOG_EVENT_##NAME] = id,
	LOG_EVENTS(X)
#undef X
};

/* Somebody up the line may have set it for a stream that is not ours any more: a shell that redirects. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uint64_t dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
	       st.st_dev == dev && st.st_ino == ino;
}

static int journal_open(void)
{
	const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JOURNAL_PATH};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

void log_init(const char *role, enum log_level level)
{
	log_role = role;
	log_max = level;
	if (log_priorities || !stderr_is_journal())
		return;
	log_priorities = true;
	log_set_journal(journal_open());
}

bool log_is_journal(void)
{
	return log_priorities;
}

void log_set_fd(int fd)
{
	log_fd = fd;
}

void log_set_journal(int fd)
{
	if (log_journal >= 0)
		close(log_journal);
	log_journal = fd;
}

static bool is_monitor(void)
{
	return !strcmp(log_role, "otprofd");
}

static int field(char *to, size_t size, const char *name, const char *value)
{
	return value && size > 1 ? snprintf(to, size, "%s=%s\n", name, value) : 0;
}

/* The journal's own protocol: NAME=value lines, one datagram an entry. */
static bool to_journal(const struct log_tag *tag, enum log_level level, const char *text)
{
	static const struct log_tag none;
	const char *worker = is_monitor() ? "monitor" : log_role;
	char entry[LOG_TEXT + 512];
	size_t size = sizeof(entry), n;

	if (log_journal < 0)
		return false;
	tag = tag ? tag : &none;
	n = (size_t)snprintf(entry, size, "PRIORITY=%d\nSYSLOG_IDENTIFIER=otprofd\nMESSAGE=%s%s%s\n", (int)level,
			     is_monitor() ? "" : log_role, is_monitor() ? "" : ": ", text);
	n += (size_t)field(entry + n, size - n, "OTPROF_WORKER", tag->worker ? tag->worker : worker);
	n += (size_t)field(entry + n, size - n, "OTPROF_DESTINATION", tag->destination);
	n += (size_t)field(entry + n, size - n, "MESSAGE_ID", event_ids[tag->event]);
	return n < size && write(log_journal, entry, n) == (ssize_t)n;
}

static void to_stream(enum log_level level, const char *text)
{
	char line[LOG_TEXT + 64], priority[8] = "";
	int n;

	if (log_priorities)
		snprintf(priority, sizeof(priority), "<%d>", (int)level);
	n = snprintf(line, sizeof(line), "%s%s: %s\n", priority, log_role, text);
	if (n >= (int)sizeof(line)) {
		n = sizeof(line);
		line[n - 1] = '\n';
	}
	/* One write a line, so that lines of several processes never mix. */
	if (write(log_fd, line, (size_t)n) < 0)
		return; /* nowhere left to say so */
}

static void log_put(const struct log_tag *tag, enum log_level level, uint32_t left_out, const char *fmt, va_list ap)
{
	char text[LOG_TEXT];
	int n = vsnprintf(text, sizeof(text) - 48, fmt, ap);

	n = MAX(MIN(n, (int)sizeof(text) - 49), 0);
	if (left_out)
		snprintf(text + n, sizeof(text) - (size_t)n, " (%u like this left out)", left_out);
	/* A line is a line, and holds nothing that a terminal obeys, whatever a name in it holds. */
	for (char *s = text; *s; s++)
		if (*s == '\n' || *s == '\t')
			*s = ' ';
	utf8_clean_str(text);
	if (!to_journal(tag, level, text))
		to_stream(level, text);
}

/* false: there were enough of this kind. ret_left_out: since the last one that was written. */
static bool may_say(const char *fmt, uint32_t *ret_left_out)
{
	struct kind *k = &log_kinds[(uintptr_t)fmt / 8 % LOG_KINDS];
	uint64_t now = clock_now_ns();

	if (k->fmt != fmt)
		*k = (struct kind){.fmt = fmt, .since_ns = now};
	if (now - k->since_ns >= LOG_RATE_NS) {
		k->since_ns = now;
		k->lines = 0;
	}
	if (k->lines >= LOG_KIND_LINES) {
		k->suppressed++;
		return false;
	}
	k->lines++;
	*ret_left_out = k->suppressed;
	k->suppressed = 0;
	return true;
}

static void say(const struct log_tag *tag, enum log_level level, const char *fmt, va_list ap)
{
	uint32_t left_out;

	if (level <= log_max && may_say(fmt, &left_out))
		log_put(tag, level, left_out, fmt, ap);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(NULL, level, fmt, ap);
	va_end(ap);
}

void log_tagged(const struct log_tag *tag, enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(tag, level, fmt, ap);
	va_end(ap);
}

bool log_rate_takes(struct log_rate *rate, uint64_t now)
{
	uint64_t pause = MAX(rate->pause_ns, LOG_RATE_NS), since = now - rate->last_ns;
	bool first = !rate->last_ns || since > 2 * pause;

	if (rate->last_ns && since < pause) {
		rate->suppressed++;
		return false;
	}
	rate->pause_ns = first || !rate->grows ? LOG_RATE_NS : MIN(2 * pause, LOG_RATE_LONGEST_NS);
	rate->last_ns = now;
	return true;
}

static void say_rated(struct log_rate *rate, const struct log_tag *tag, enum log_level level, const char *fmt,
		      va_list ap)
{
	uint32_t left_out = rate->suppressed;

	if (!log_rate_takes(rate, clock_now_ns()))
		return;
	rate->suppressed = 0;
	if (level <= log_max)
		log_put(tag, level, left_out, fmt, ap);
}

void log_rated(struct log_rate *rate, enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_rated(rate, NULL, level, fmt, ap);
	va_end(ap);
}

void log_rated_tagged(struct log_rate *rate, const struct log_tag *tag, enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_rated(rate, tag, level, fmt, ap);
	va_end(ap);
}
