// SPDX-License-Identifier: Apache-2.0
/* otprof status: a page about the running otprofd. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/screen.h"
#include "cli/select.h"

static const char help[] =
	"Usage: otprof status [OPTION]...\n"
	"Print the status of the running otprofd: its sampler, the ledger of samples, the\n"
	"quality of stacks and names, and its cost.\n"
	"\n"
	"      --json             print the whole status as JSON\n"
	"  -w, --watch[=TIME]     show it live, renewed every TIME (default: 2s); q ends.\n"
	"                           If the output is not a terminal, print it every TIME\n"
	"      --runtime-dir=DIR  directory of otprofd's socket (default: " CLI_RUNTIME_DIR ")\n"
	"      --help             display this help and exit\n"
	"\n"
	"Every sample taken is exported, unconfirmed, in flight, or lost for a reason that\n"
	"is shown. 'missed' counts ticks of a busy CPU that did not occur, for example\n"
	"while a hypervisor ran something else; they are not part of the sum. Only root\n"
	"may ask.\n"
	"\n"
	"Exit status is 0, 1 for an error, 2 for wrong usage, 3 if otprofd does not run.\n";

struct options {
	const char *runtime_dir;
	uint64_t every_ns; /* 0: once */
	bool json;
};

#define WORKLOADS_SHOWN 10

/* Figures of the last page, to show the change since. Process-wide: one page is shown at a time. */
static struct {
	uint64_t time_ns, taken, cpu_ns;
} last;

/* Text from otprofd may hold anything: it is cleaned for the terminal. */
static void status_row(struct buf *b, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void status_row(struct buf *b, const char *name, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_printf(b, "  %-13s ", name);
	utf8_add_clean(b, text, strlen(text));
	buf_add_str(b, "\n");
}

static void status_workload_row(struct buf *b, const char *name, const char *stacks, double whole, double named)
{
	size_t wide = utf8_count(name), left_out = wide > 22 ? utf8_bytes(name, wide - 22) : 0;

	/* The end of a long name distinguishes more than its beginning. */
	buf_add_str(b, "  ");
	utf8_add_clean(b, name + left_out, strlen(name + left_out));
	buf_printf(b, "%*s%14s %6.2f %% %6.2f %%\n", wide < 22 ? (int)(22 - wide) : 0, "", stacks, whole, named);
}

static void status_count_row(struct buf *b, const char *name, uint64_t n, const char *note)
{
	char text[32];

	status_row(b, name, "%15s%s%s", format_count(text, sizeof(text), n), *note ? "   " : "", note);
}

/* The rate is the clock's; the guard lowers events in proportion to it. */
static void print_events_rate(struct buf *b, uint64_t hz, uint64_t wanted, uint64_t cpus)
{
	if (!hz || hz == wanted)
		status_row(b, "rate", "events on %" PRIu64 " CPUs", cpus);
	else
		status_row(b, "rate", "events on %" PRIu64 " CPUs, at %.1f %% of the configured rate", cpus,
			   format_percent(hz, wanted));
}

static void print_rate(struct buf *b, const json_t *s)
{
	uint64_t wanted = client_number(s, "sampler.frequency_hz"), hz = client_number(s, "sampler.rate_hz");
	uint64_t cpus = client_number(s, "sampler.cpus");

	if (!json_object_get(client_at(s, "ledger.origins"), "cpu-clock"))
		print_events_rate(b, hz, wanted, cpus);
	else if (!hz || hz == wanted)
		status_row(b, "rate", "%" PRIu64 " Hz on %" PRIu64 " CPUs", wanted, cpus);
	else
		status_row(b, "rate", "%" PRIu64 " Hz on %" PRIu64 " CPUs; %" PRIu64 " Hz are configured", hz, cpus,
			   wanted);
}

static bool status_has_no_sampler(const json_t *s)
{
	return !strcmp(client_text(s, "sampler.mode"), "none");
}

static void print_selection(struct buf *b, const json_t *s)
{
	_cleanup_(buf_done) struct buf text = {0};

	if (!client_is_true(s, "selection.on"))
		return;
	select_sentence(client_at(s, "selection"), &text);
	status_row(b, "selection", "%s", buf_cstr(&text));
}

static void print_hub(struct buf *b, const json_t *s)
{
	const char *error = client_text(s, "hub.error");

	if (!client_is_true(s, "hub.on"))
		return;
	status_row(b, "hub", "%s%s%s", client_text(s, "hub.listen"), *error ? ": " : "",
		   *error ? error : client_is_true(s, "hub.ready") ? "" : " (starting)");
}

static void print_sampler(struct buf *b, const json_t *s)
{
	const char *why = client_text(s, "sampler.why");
	char ring[32], used[32], peak[32];

	buf_add_str(b, "\nSampler\n");
	status_row(b, "mode", "%s%s%s%s", client_text(s, "sampler.mode"), *why ? " (" : "", why, *why ? ")" : "");
	print_hub(b, s);
	if (status_has_no_sampler(s))
		return;
	print_selection(b, s);
	print_rate(b, s);
	status_row(b, "ring", "%s, %s unread, %s at most", format_bytes(ring, sizeof(ring), client_number(s, "sampler.ring_bytes")),
		   format_bytes(used, sizeof(used), client_number(s, "sampler.ring_used")),
		   format_bytes(peak, sizeof(peak), client_number(s, "sampler.ring_peak")));
}

/* A row for each reason with a count. */
static void print_reasons(struct buf *b, const json_t *counts)
{
	const char *reason;
	json_t *n;

	json_object_foreach((json_t *)counts, reason, n)
		if (client_number(n, ""))
			status_count_row(b, "", client_number(n, ""), reason);
}

/* Only where there is, or was, something on disk. */
static void print_spool(struct buf *b, const json_t *d)
{
	uint64_t requests = client_number(d, "spool.requests"), torn = client_number(d, "spool.torn");
	uint64_t restored = client_number(d, "restored"), repeated = client_number(d, "repeated");
	char bytes[32];

	if (requests)
		status_row(b, "  on disk", "%15" PRIu64 "   in %" PRIu64 " requests, %s", client_number(d, "spooled"), requests,
			   format_bytes(bytes, sizeof(bytes), client_number(d, "spool.bytes")));
	if (restored)
		status_count_row(b, "  restored", restored, "from disk, besides those taken");
	if (repeated)
		status_count_row(b, "  repeated", repeated, "of those exported, perhaps twice");
	if (torn)
		status_count_row(b, "  torn", torn, "requests on disk that cannot be read");
}

static void print_destination(struct buf *b, const char *name, const json_t *d)
{
	const char *error = client_text(d, "last_error");
	uint64_t lost = client_sum(d, "lost");

	status_row(b, "to", "%s", name);
	if (*error)
		status_row(b, "  now", "%s", error);
	if (client_is_true(d, "zstd_refused"))
		status_row(b, "  compression", "gzip: it does not take zstd");
	status_count_row(b, "  exported", client_number(d, "exported"), "");
	status_count_row(b, "  unconfirmed", client_number(d, "unconfirmed"), "");
	status_count_row(b, "  in flight", client_number(d, "in_flight"), "");
	print_spool(b, d);
	status_count_row(b, "  lost", lost, lost ? "of which" : "");
	print_reasons(b, client_at(d, "lost"));
}

static void origin_row(struct buf *b, const char *name, const json_t *o)
{
	char taken[32], lost[32], value[32];

	buf_printf(b, "  %-18s %12s %12s %15s %s%s\n", name, format_count(taken, sizeof(taken), client_number(o, "taken")),
		   format_count(lost, sizeof(lost), client_lost(o, "")),
		   format_count(value, sizeof(value), client_number(o, "value")), client_text(o, "type"),
		   json_is_false(client_at(o, "balanced")) ? "   DOES NOT BALANCE" : "");
}

/* Of the CPU clock alone it would repeat the page above it. */
static void print_origins(struct buf *b, const json_t *s)
{
	const json_t *origins = client_at(s, "ledger.origins");
	const char *name;
	json_t *o;

	if (json_object_size(origins) <= 1 && json_object_get(origins, "cpu-clock"))
		return;
	buf_printf(b, "\n%-20s %12s %12s %15s\n", "Origins", "taken", "lost", "stand for");
	json_object_foreach((json_t *)origins, name, o)
		origin_row(b, name, o);
}

static bool status_restored(const json_t *destinations)
{
	const char *name;
	json_t *d;

	json_object_foreach((json_t *)destinations, name, d)
		if (client_number(d, "restored"))
			return true;
	return false;
}

static void print_ledger(struct buf *b, const json_t *s)
{
	const json_t *destinations = client_at(s, "ledger.destinations");
	const char *name;
	json_t *d;

	buf_printf(b, "\nSamples: taken%s = exported + unconfirmed + in flight + lost%s\n",
		   status_restored(destinations) ? " + restored" : "",
		   json_is_false(client_at(s, "ledger.balanced")) ? "   DOES NOT BALANCE" : "");
	status_count_row(b, "taken", client_number(s, "ledger.taken"), "");
	json_object_foreach((json_t *)destinations, name, d)
		print_destination(b, name, d);
	if (!json_object_size(destinations)) {
		status_count_row(b, "in flight", client_number(s, "ledger.in_flight"), "");
		status_count_row(b, "lost", client_sum(s, "ledger.lost"), "");
		print_reasons(b, client_at(s, "ledger.lost"));
	}
	status_count_row(b, "missed", client_number(s, "ledger.missed"), "ticks of a busy CPU that did not occur");
	status_count_row(b, "not wanted", client_number(s, "skipped.not_selected"),
			 "ticks and events of processes that are not selected");
	status_count_row(b, "idle", client_number(s, "skipped.idle"),
			 "ticks and events of an idle CPU that ran no softirq");
	status_count_row(b, "resting", client_number(s, "skipped.resting"), "ticks too soon after another on their CPU");
	print_origins(b, s);
}

static void print_shares(struct buf *b, const json_t *parts, uint64_t whole, const char *what)
{
	const char *name;
	json_t *n;

	json_object_foreach((json_t *)parts, name, n)
		if (client_number(n, ""))
			status_row(b, "", "%8.2f %%  %s%s", format_percent(client_number(n, ""), whole), what, name);
}

/* The busiest workloads, with the share of whole stacks and named frames of each. */
static void print_workloads(struct buf *b, const json_t *all)
{
	size_t i;
	json_t *w;

	if (!json_array_size(all))
		return;
	buf_add_str(b, "\nQuality of the busiest        stacks    whole    named\n");
	json_array_foreach((json_t *)all, i, w) {
		const char *service = client_text(w, "service"), *exe = client_text(w, "executable");
		uint64_t stacks = client_number(w, "stacks"), frames = client_number(w, "frames");
		char name[128], count[32];

		if (i == WORKLOADS_SHOWN)
			break;
		snprintf(name, sizeof(name), "%s%s%s", service, *exe && strcmp(service, exe) ? " " : "",
			 strcmp(service, exe) ? exe : "");
		status_workload_row(b, name, format_count(count, sizeof(count), stacks),
				    format_percent(client_number(w, "complete"), stacks),
				    format_percent(client_number(w, "frames_named"), frames));
	}
}

/* Processes that read interpreters' memory, and interpreters that wait for one. */
static void print_decoders(struct buf *b, const json_t *s)
{
	const json_t *at = client_at(s, "quality.interpreted.decoders");
	uint64_t started = client_number(at, "started"), waiting = client_number(at, "waiting");

	if (started || waiting)
		status_row(b, "decoders",
			   "%15" PRIu64 "   started: %" PRIu64 " work, %" PRIu64 " wait, %" PRIu64 " too late, %" PRIu64
			   " ended in a question",
			   started, client_number(at, "live"), waiting, client_number(at, "late"),
			   client_number(at, "died"));
}

static void print_quality(struct buf *b, const json_t *s)
{
	uint64_t stacks = client_number(s, "quality.stacks"), frames = client_number(s, "quality.frames");
	char text[32];

	buf_add_str(b, "\nQuality\n");
	status_row(b, "stacks", "%15s", format_count(text, sizeof(text), stacks));
	status_row(b, "whole stacks", "%8.2f %%", format_percent(client_number(s, "quality.complete"), stacks));
	print_shares(b, client_at(s, "quality.cut"), stacks, "cut: ");
	status_row(b, "frames", "%15s", format_count(text, sizeof(text), frames));
	status_row(b, "named frames", "%8.2f %%", format_percent(client_number(s, "quality.frames_named"), frames));
	print_shares(b, client_at(s, "quality.named_by"), frames, "by ");
	print_shares(b, client_at(s, "quality.kinds"), frames, "of kind ");
	print_shares(b, client_at(s, "quality.guessed"), frames, "guessed: ");
	if (client_number(s, "quality.interpreted.frames"))
		status_row(b, "interpreted", "%8.2f %% of frames named, %" PRIu64 " runtimes",
			   format_percent(client_number(s, "quality.interpreted.frames") -
						  client_number(s, "quality.interpreted.frames_unknown"),
					  client_number(s, "quality.interpreted.frames")),
			   client_number(s, "quality.interpreted.runtimes"));
	if (client_number(s, "quality.interpreted.of_heap") || client_number(s, "quality.interpreted.without_heap"))
		status_row(b, "callers in heap", "%15s   shown, %" PRIu64 " left out",
			   format_count(text, sizeof(text), client_number(s, "quality.interpreted.of_heap")),
			   client_number(s, "quality.interpreted.without_heap"));
	if (client_number(s, "quality.interpreted.labels_left"))
		status_row(b, "labels left out", "%15s",
			   format_count(text, sizeof(text), client_number(s, "quality.interpreted.labels_left")));
	print_decoders(b, s);
	status_row(b, "waiting", "%15s   for their files or names", format_count(text, sizeof(text), client_number(s, "quality.parked")));
	print_workloads(b, client_at(s, "quality.workloads"));
}

static void status_cost_row(struct buf *b, const json_t *s, const char *name, const char *path)
{
	uint64_t ns = client_number(s, path), uptime = client_number(s, "uptime_s") * NSEC_PER_SEC;
	uint64_t taken = client_number(s, "ledger.taken");

	status_row(b, name, "%8.3f %% of one CPU, %.2f \xc2\xb5s a sample", format_percent(ns, uptime),
		   taken ? (double)ns / 1000 / (double)taken : 0);
}

static void status_kernel_row(struct buf *b, const json_t *s)
{
	if (client_number(s, "cost.kernel_runs"))
		status_cost_row(b, s, "kernel", "cost.kernel_ns");
	else
		status_row(b, "kernel", "not measured by this sampler");
}

/* Of the samplers that measure themselves: perf's ticks have no such bound. */
static void print_tick_limit(struct buf *b, const json_t *s)
{
	uint64_t us = client_number(s, "cost.kernel_limit_ns") / NSEC_PER_USEC;
	uint64_t bytes = client_number(s, "cost.kernel_limit_bytes");
	char most[32];

	if (!client_number(s, "cost.kernel_runs"))
		return;
	if (bytes)
		status_row(b, "  first copy", "%s at most of an unknown program's stack, for %" PRIu64 " \xc2\xb5s",
			   format_bytes(most, sizeof(most), bytes), us);
	else
		status_row(b, "  first copy", "no bound: any stack is copied within %" PRIu64 " \xc2\xb5s", us);
}

static void print_cost(struct buf *b, const json_t *s)
{
	char memory[32];

	buf_add_str(b, "\nCost since the start\n");
	status_kernel_row(b, s);
	print_tick_limit(b, s);
	status_cost_row(b, s, "engine", "cost.engine_cpu_ns");
	status_cost_row(b, s, "net", "cost.net_cpu_ns");
	if (client_number(s, "cost.hub_cpu_ns"))
		status_cost_row(b, s, "hub", "cost.hub_cpu_ns");
	status_cost_row(b, s, "monitor", "cost.monitor_cpu_ns");
	status_cost_row(b, s, "openers", "cost.opener_cpu_ns");
	status_cost_row(b, s, "all for files", "cost.files_cpu_ns");
	status_row(b, "memory", "%s", format_bytes(memory, sizeof(memory), client_number(s, "cost.memory_bytes")));
}

static void print_ladder(struct buf *b, const json_t *s, const char *cause)
{
	char path[64];
	uint64_t level, lowered, raised;

	snprintf(path, sizeof(path), "guard.%s.level", cause);
	level = client_number(s, path);
	snprintf(path, sizeof(path), "guard.%s.lowered", cause);
	lowered = client_sum(s, path);
	snprintf(path, sizeof(path), "guard.%s.raised", cause);
	raised = client_sum(s, path);
	if (level || lowered)
		status_row(b, "  given up", "%" PRIu64 " steps now; %" PRIu64 " down, %" PRIu64 " up since the start", level, lowered, raised);
}

/* Permyriads of one CPU. */
static void print_cpu_limit(struct buf *b, const json_t *s, uint64_t limit)
{
	uint64_t files = client_number(s, "guard.files_permyriad");
	char credit[48];

	status_row(b, "CPU", "%8.2f %% of one CPU, of %.2f %%", (double)client_number(s, "guard.cpu_permyriad") / 100,
		   (double)limit / 100);
	if (files)
		status_row(b, "  for files", "%8.2f %% of one CPU, paid from the credit for reading files", (double)files / 100);
	status_row(b, "  credit", "%s of CPU time left for reading files",
		   format_duration(credit, sizeof(credit), client_number(s, "guard.credit_ns")));
}

static void print_guard(struct buf *b, const json_t *s)
{
	uint64_t cpu = client_number(s, "guard.cpu_limit_permyriad"), memory = client_number(s, "guard.memory_limit_bytes");
	char used[32], limit[32];

	if (!client_at(s, "guard"))
		return;
	buf_add_str(b, "\nLimits\n");
	if (cpu)
		print_cpu_limit(b, s, cpu);
	else
		status_row(b, "CPU", "none");
	print_ladder(b, s, "cpu");
	if (memory)
		status_row(b, "memory", "%s, of %s",
			   format_bytes(used, sizeof(used), client_number(s, "guard.memory_bytes")),
			   format_bytes(limit, sizeof(limit), memory));
	else
		status_row(b, "memory", "none");
	print_ladder(b, s, "memory");
}

static void print_debuginfod(struct buf *b, const json_t *s)
{
	const json_t *d = client_at(s, "debuginfod");
	const char *error = client_text(d, "last_error");
	char bytes[32];

	if (!client_is_true(d, "on"))
		return;
	buf_add_str(b, "\nDebug files by debuginfod\n");
	status_count_row(b, "fetched", client_number(d, "fetched"), "");
	status_count_row(b, "failed", client_sum(d, "failed"), "");
	print_reasons(b, client_at(d, "failed"));
	status_count_row(b, "waiting", client_number(d, "waiting"),
			 client_is_true(d, "paused") ? "no server can be reached; tried again soon" : "");
	status_row(b, "kept", "%s", format_bytes(bytes, sizeof(bytes), client_number(d, "cached_bytes")));
	if (*error)
		status_row(b, "last error", "%s", error);
}

static void print_head(struct buf *b, const json_t *s)
{
	char text[48];

	buf_printf(b, "otprofd %s, process %" PRIu64 ", running for %s\n", client_text(s, "version"),
		   client_number(s, "pid"),
		   format_duration(text, sizeof(text), client_number(s, "uptime_s") * NSEC_PER_SEC));
}

static uint64_t status_cpu_ns(const json_t *s)
{
	return client_number(s, "cost.kernel_ns") + client_number(s, "cost.monitor_cpu_ns") +
	       client_number(s, "cost.engine_cpu_ns") + client_number(s, "cost.net_cpu_ns") +
	       client_number(s, "cost.hub_cpu_ns") + client_number(s, "cost.opener_cpu_ns") + client_number(s, "cost.indexer_cpu_ns");
}

/* On a page that is renewed: the change since the previous one. */
static void print_since(struct buf *b, const json_t *s)
{
	uint64_t now = clock_now_ns(), taken = client_number(s, "ledger.taken"), cpu = status_cpu_ns(s), ns = now - last.time_ns;

	if (last.time_ns && ns && taken >= last.taken && cpu >= last.cpu_ns) {
		status_row(b, "samples", "%8.0f a second", (double)(taken - last.taken) * NSEC_PER_SEC / (double)ns);
		status_row(b, "cost", "%8.3f %% of one CPU", format_percent(cpu - last.cpu_ns, ns));
	}
	last.time_ns = now;
	last.taken = taken;
	last.cpu_ns = cpu;
}

static void print_rest(struct buf *b, const json_t *s)
{
	const char *top = client_text(s, "top.name");

	buf_add_str(b, "\nNow\n");
	print_since(b, s);
	status_row(b, "processes", "%" PRIu64, client_number(s, "processes"));
	if (*top)
		status_row(b, "hottest", "%s", top);
	status_row(b, "restarts", "engine %" PRIu64 ", net %" PRIu64, client_number(s, "workers.engine.restarts"),
		   client_number(s, "workers.net.restarts"));
}

/* The figures that change most are first, where a small window shows them. */
static void status_format_page(struct buf *b, const json_t *s)
{
	print_head(b, s);
	if (status_has_no_sampler(s)) {
		print_sampler(b, s);
		print_cost(b, s);
		return;
	}
	print_rest(b, s);
	print_sampler(b, s);
	print_ledger(b, s);
	print_quality(b, s);
	print_cost(b, s);
	print_guard(b, s);
	print_debuginfod(b, s);
}

static int status_page(const struct options *o, struct buf *b)
{
	_cleanup_(json_decrefp) json_t *s = NULL;
	int r = client_status(o->runtime_dir, &s);

	if (r < 0)
		return client_failed(o->runtime_dir, "status.sock", r);
	status_format_page(b, s);
	return 0;
}

static int status_raw(const struct options *o, struct buf *b)
{
	int r = client_read(o->runtime_dir, b);

	if (r < 0)
		return client_failed(o->runtime_dir, "status.sock", r);
	if (b->len && b->data[b->len - 1] != '\n')
		buf_add_str(b, "\n");
	return 0;
}

static int status_print_once(const struct options *o)
{
	_cleanup_(buf_done) struct buf b = {0};
	int r = o->json ? status_raw(o, &b) : status_page(o, &b);

	if (r)
		return r;
	if (fwrite(b.data, 1, b.len, stdout) != b.len || fflush(stdout) == EOF) {
		cli_error("write error: %s", strerror(errno));
		return CLI_FAILED;
	}
	return 0;
}

static int status_print_again(const struct options *o)
{
	struct timespec ts = {.tv_sec = (time_t)(o->every_ns / NSEC_PER_SEC), .tv_nsec = (long)(o->every_ns % NSEC_PER_SEC)};
	int r;

	while (!(r = status_print_once(o)))
		nanosleep(&ts, NULL);
	return r;
}

/* While otprofd restarts, the page waits for it; if it did not answer at first, that is an error. */
static void status_absent_page(const struct options *o, struct buf *b)
{
	buf_printf(b, "otprofd does not answer at %s/status.sock; waiting for it\n", o->runtime_dir);
}

static int status_read_page(const struct options *o, struct buf *b)
{
	_cleanup_(json_decrefp) json_t *s = NULL;
	int r = client_status(o->runtime_dir, &s);

	if (r == 0)
		status_format_page(b, s);
	return r;
}

static int status_show_live(const struct options *o)
{
	_cleanup_(buf_done) struct buf b = {0};
	enum screen_event event = SCREEN_REPAINT;
	int r = status_read_page(o, &b);

	if (r < 0)
		return client_failed(o->runtime_dir, "status.sock", r);
	r = screen_enter();
	if (r < 0)
		return client_failed(o->runtime_dir, "status.sock", r);
	while (event != SCREEN_QUIT) {
		if (event == SCREEN_TIME) {
			buf_reset(&b);
			if (status_read_page(o, &b) < 0)
				status_absent_page(o, &b);
		}
		screen_paint(buf_cstr(&b), b.len);
		event = screen_wait(o->every_ns);
	}
	screen_leave();
	return 0;
}

int cmd_status(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},
		{"watch", optional_argument, NULL, 'w'},
		{"runtime-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options o = {.runtime_dir = CLI_RUNTIME_DIR};
	int c;

	while ((c = getopt_long(argc, argv, "w::", longs, NULL)) != -1) {
		if (c == 'j') {
			o.json = true;
		} else if (c == 'r') {
			o.runtime_dir = optarg;
		} else if (c == 'w') {
			o.every_ns = 2 * NSEC_PER_SEC;
			if (optarg && cli_parse_time(optarg, &o.every_ns) < 0) {
				cli_error("invalid time '%s'", optarg);
				return cli_try_help(CLI_USAGE);
			}
		} else {
			return c == 'h' ? cli_help(help) : cli_try_help(CLI_USAGE);
		}
	}
	if (optind < argc) {
		cli_error("extra operand '%s'", argv[optind]);
		return cli_try_help(CLI_USAGE);
	}
	if (!o.every_ns)
		return status_print_once(&o);
	return !o.json && screen_possible() ? status_show_live(&o) : status_print_again(&o);
}
