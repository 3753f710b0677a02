// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/utf8.h"
#include "cli/client.h"

#define SPARSE_NS (10 * NSEC_PER_SEC)
#define NAME_MAX_SHOWN 40

void progress_start(struct progress *p, const char *runtime_dir, bool quiet)
{
	*p = (struct progress){.terminal = isatty(STDERR_FILENO), .quiet = quiet, .runtime_dir = runtime_dir};
	p->start_ns = p->shown_ns = clock_now_ns();
	p->next_ns = p->start_ns + (p->terminal ? NSEC_PER_SEC : SPARSE_NS);
}

static void progress_add_top(struct buf *b, const char *top)
{
	_cleanup_(buf_done) struct buf clean = {0};

	if (!*top)
		return;
	utf8_add_clean(&clean, top, strlen(top));
	buf_add_str(b, ", hottest ");
	buf_add(b, clean.data, utf8_bytes(buf_cstr(&clean), NAME_MAX_SHOWN));
}

static void progress_add_status(struct buf *b, const char *runtime_dir)
{
	_cleanup_(json_decrefp) json_t *s = NULL;
	uint64_t lost;
	char text[32];

	if (client_status(runtime_dir, &s) < 0)
		return;
	lost = client_sum(s, "ledger.lost");
	buf_printf(b, ", %s samples", format_count(text, sizeof(text), client_number(s, "ledger.taken")));
	if (lost)
		buf_printf(b, ", %s lost", format_count(text, sizeof(text), lost));
	progress_add_top(b, client_text(s, "top.name"));
}

void progress_tick(struct progress *p)
{
	_cleanup_(buf_done) struct buf b = {0};
	uint64_t now = clock_now_ns();
	char text[32];

	if (p->quiet || now < p->next_ns)
		return;
	p->next_ns = now + (p->terminal ? NSEC_PER_SEC : SPARSE_NS);
	buf_printf(&b, "recording: %s", format_duration(text, sizeof(text), (now - p->start_ns) / NSEC_PER_SEC * NSEC_PER_SEC));
	progress_add_status(&b, p->runtime_dir);
	if (!b.failed)
		fprintf(stderr, "%s%s%s", p->terminal ? "\r\033[K" : "otprof record: ", buf_cstr(&b), p->terminal ? "" : "\n");
}

void progress_clear(struct progress *p)
{
	if (p->terminal && !p->quiet)
		fputs("\r\033[K", stderr);
}
