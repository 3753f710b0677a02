// SPDX-License-Identifier: Apache-2.0
/* Destinations that get other requests than the engine's: presets, longer intervals, and their books. */
#include "otlp_fixture.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "export/export.h"
#include "export/preset.h"
#include "export/shape.h"
#include "tests/lib/counts.h"
#include "tests/lib/net_books.h"

Suite *shape_suite(void);

#define SEALS	 (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define WEIGHT	 10 /* samples of the fixture's request */
#define INTERVAL (100 * NSEC_PER_MSEC)

static char directory[64], url[2][80];
static struct ledger_net ledger;
static struct exporter *exporter;
static uint64_t next_id;

static void on_changed(void *ctx)
{
	net_books_balance(&ledger);
}

static struct export_config cfg(const char *name, int place, enum export_preset preset, uint64_t intervals)
{
	struct export_config c = {
		.endpoint = url[place],
		.preset = preset,
		.interval_ns = intervals * INTERVAL,
		.engine_interval_ns = INTERVAL,
		.retry_elapsed_ns = 60 * NSEC_PER_SEC,
		.queue_bytes = 8 << 20,
	};

	snprintf(c.name, sizeof(c.name), "%s", name);
	return c;
}

static void begin(const struct export_config *cfgs, uint32_t n)
{
	ck_assert_int_eq(exporter_new(cfgs, n, &ledger, on_changed, NULL, &exporter), 0);
}

static void submit_bytes(const void *data, size_t len)
{
	int fd = memfd_create("request", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct export_request *r;

	ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	ck_assert_int_eq(export_request_new(fd, next_id++, COUNTS(WEIGHT), len, &r), 0);
	exporter_submit(exporter, r);
	export_request_put(r);
}

static void submit(void (*change)(struct fixture *f))
{
	_cleanup_(buf_done) struct buf b = {0};

	fixture_encode(change, &b);
	submit_bytes(b.data, b.len);
}

static void run_for(uint64_t ns)
{
	uint64_t end = clock_now_ns() + ns;

	while (clock_now_ns() < end) {
		struct pollfd fds[4];
		int n = exporter_pollfds(exporter, fds, 4), ms = exporter_timeout_ms(exporter);

		poll(fds, (nfds_t)n, ms < 0 ? 10 : MIN(ms, 10));
		exporter_run(exporter);
	}
}

static void stop(void)
{
	exporter_stop(exporter, clock_now_ns() + 5 * NSEC_PER_SEC);
	while (!exporter_idle(exporter))
		exporter_run(exporter);
	on_changed(NULL);
}

/* What arrived at a place, and in how many requests. */
static struct recording *arrived(int place, int *ret_requests)
{
	struct recording *r;
	char name[256];

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	*ret_requests = recording_read_directory(r, url[place] + strlen("file://"), name, sizeof(name));
	return r;
}

/* Label sets, as a store counts that makes series of them: of resource, type and sample. */
static uint32_t series(const struct recording *r)
{
	struct intern sets;
	uint32_t n, count;

	intern_init(&sets, UINT32_MAX, SIZE_MAX);
	for (uint32_t i = 0; i < r->samples.count; i++) {
		const struct rec_sample *s = intern_key(&r->samples, i);
		const struct rec_series *p = intern_key(&r->series, s->series);
		const uint32_t key[] = {p->resource, p->type, p->period_type, s->attributes};

		ck_assert_int_eq(intern_number(&sets, key, sizeof(key), &n), 0);
	}
	count = sets.count;
	intern_done(&sets);
	return count;
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(name);
}

static void setup(void)
{
	memset(&ledger, 0, sizeof(ledger));
	next_id = 1;
	snprintf(directory, sizeof(directory), "/tmp/otprof-shape-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	for (int i = 0; i < 2; i++) {
		snprintf(url[i], sizeof(url[i]), "file://%s/%d", directory, i);
		ck_assert_int_eq(mkdir(url[i] + strlen("file://"), 0700), 0);
	}
}

static void teardown(void)
{
	exporter = exporter_free(exporter);
	nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void of_a_container(struct fixture *f)
{
	static int n;
	static char id[16];

	snprintf(id, sizeof(id), "%08d", n++);
	f->resource_attributes[1].key = (char *)"container.id";
	f->resource_values[1].string_value = id;
}

START_TEST(engines_requests_pass_unchanged_where_nothing_else_is_wanted)
{
	const struct export_config c = cfg("a", 0, EXPORT_PRESET_OTLP, 1);
	int requests;

	ck_assert(!shape_wanted(&c));
	begin(&c, 1);
	submit(NULL);
	submit(NULL);
	stop();
	recording_free(arrived(0, &requests));
	ck_assert_int_eq(requests, 2);
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 2 * WEIGHT);
}
END_TEST

START_TEST(longer_interval_is_one_request_with_all_values)
{
	const struct export_config c[] = {cfg("slow", 0, EXPORT_PRESET_OTLP, 3), cfg("fast", 1, EXPORT_PRESET_OTLP, 0)};
	struct recording *slow, *fast;
	int requests;

	begin(c, 2);
	for (int i = 0; i < 3; i++) {
		submit(NULL);
		run_for(INTERVAL);
	}
	run_for(INTERVAL);
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 3 * WEIGHT);
	stop();
	slow = arrived(0, &requests);
	ck_assert_int_eq(requests, 1);
	fast = arrived(1, &requests);
	ck_assert_int_eq(requests, 3);
	ck_assert_uint_eq(slow->total, fast->total);
	ck_assert_uint_eq(slow->total, 3 * WEIGHT);
	/* Merged, not concatenated: no entry more than of one of the requests. */
	ck_assert_uint_eq(slow->samples.count, fast->samples.count);
	ck_assert_uint_eq(slow->samples.count, 4);
	ck_assert_uint_eq(slow->series.count, 1);
	recording_free(slow);
	recording_free(fast);
}
END_TEST

START_TEST(what_is_held_is_queued_in_the_books)
{
	const struct export_config c = cfg("slow", 0, EXPORT_PRESET_OTLP, 600);

	begin(&c, 1);
	submit(NULL);
	submit(NULL);
	run_for(20 * NSEC_PER_MSEC);
	ck_assert_uint_eq(ledger.dest[0].queued.of[0], 2 * WEIGHT);
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 0);
	stop();
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 2 * WEIGHT);
}
END_TEST

START_TEST(reload_ends_the_interval)
{
	const struct export_config before = cfg("a", 0, EXPORT_PRESET_OTLP, 600), after = cfg("a", 0, EXPORT_PRESET_MINIMAL, 0);
	struct recording *r;
	int requests;

	begin(&before, 1);
	submit(NULL);
	submit(NULL);
	exporter_reload(exporter, &after, 1);
	submit(NULL);
	while (exporter_reloading(exporter))
		exporter_run(exporter);
	submit(NULL);
	stop();
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 4 * WEIGHT);
	r = arrived(0, &requests);
	ck_assert_int_eq(requests, 3);
	ck_assert_uint_eq(r->total, 4 * WEIGHT);
	recording_free(r);
}
END_TEST

START_TEST(interval_ends_early_where_a_request_would_grow_too_large)
{
	const struct export_config c = cfg("slow", 0, EXPORT_PRESET_OTLP, 600);
	_cleanup_(buf_done) struct buf b = {0};
	int requests;

	fixture_encode(NULL, &b);
	/* An unknown field: it counts as bytes of the request and means nothing. */
	buf_add(&b, "\xfa\x01\x80\x80\x80\x01", 6);
	memset(buf_reserve(&b, 2u << 20), 0, 2u << 20);
	buf_commit(&b, 2u << 20);
	begin(&c, 1);
	for (int i = 0; i < 3; i++)
		submit_bytes(b.data, b.len);
	ck_assert_uint_eq(ledger.dest[0].queued.of[0], 3 * WEIGHT);
	stop();
	recording_free(arrived(0, &requests));
	ck_assert_int_eq(requests, 3);
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 3 * WEIGHT);
}
END_TEST

START_TEST(request_that_cannot_be_read_is_lost_and_counted)
{
	const struct export_config c[] = {cfg("slow", 0, EXPORT_PRESET_OTLP, 600), cfg("fast", 1, EXPORT_PRESET_OTLP, 0)};

	begin(c, 2);
	submit(NULL);
	submit_bytes("\x0a\xff\xff\xff", 4);
	submit(NULL);
	stop();
	ck_assert_uint_eq(ledger.dest[0].lost[OTP_LOSS_ENCODE].of[0], WEIGHT);
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 2 * WEIGHT);
	ck_assert_uint_eq(ledger.dest[1].exported.of[0], 3 * WEIGHT);
}
END_TEST

static const struct {
	enum export_preset preset;
	uint32_t series; /* of three containers of one service, whose samples are of two threads */
} counts[] = {{EXPORT_PRESET_OTLP, 6}, {EXPORT_PRESET_PYROSCOPE, 1}, {EXPORT_PRESET_MINIMAL, 1}};

START_TEST(preset_bounds_the_series_of_a_store)
{
	const struct export_config c = cfg("a", 0, counts[_i].preset, 3);
	struct recording *r;
	int requests;

	begin(&c, 1);
	for (int i = 0; i < 3; i++)
		submit(of_a_container);
	stop();
	r = arrived(0, &requests);
	ck_assert_int_eq(requests, 1);
	ck_assert_uint_eq(r->total, 3 * WEIGHT);
	ck_assert_uint_eq(series(r), counts[_i].series);
	recording_free(r);
}
END_TEST

static uint32_t addresses(const struct recording *r, bool named)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->locations.count; i++) {
		const struct rec_location *l = intern_key(&r->locations, i);

		n += l->address && named == !!recording_lines(r, i);
	}
	return n;
}

START_TEST(preset_leaves_names_alone_and_their_addresses_out)
{
	const struct export_config c[] = {cfg("a", 0, EXPORT_PRESET_MINIMAL, 0), cfg("b", 1, EXPORT_PRESET_OTLP, 0)};
	struct recording *minimal, *all;
	int requests;

	begin(c, 2);
	submit(NULL);
	stop();
	minimal = arrived(0, &requests);
	all = arrived(1, &requests);
	ck_assert_uint_eq(minimal->functions.count, all->functions.count);
	ck_assert_uint_eq(minimal->locations.count, all->locations.count);
	ck_assert_uint_eq(minimal->mappings.count, all->mappings.count);
	ck_assert_uint_eq(minimal->stacks.count, all->stacks.count);
	ck_assert_uint_eq(minimal->frames, all->frames);
	ck_assert_uint_gt(addresses(all, true), 0);
	ck_assert_uint_eq(addresses(minimal, true), 0);
	ck_assert_uint_eq(addresses(minimal, false), addresses(all, false));
	ck_assert_str_eq(recording_service(minimal, 0), "app");
	ck_assert_ptr_null(recording_find(minimal, ((const struct rec_resource *)intern_key(&minimal->resources, 1))->attributes,
					  "host.name"));
	recording_free(minimal);
	recording_free(all);
}
END_TEST

START_TEST(presets_keep_what_their_page_says)
{
	static const struct {
		const char *key;
		bool pyroscope, minimal;
	} resource[] = {{"service.name", true, true},	  {"service.namespace", true, true}, {"service.version", true, false},
			{"host.name", true, false},	  {"host.id", false, false},	      {"container.id", false, false},
			{"container.name", true, false}, {"k8s.pod.name", true, false},     {"k8s.pod.uid", false, false},
			{"team", true, false}},
	  sample[] = {{"process.executable.name", true, false}, {"process.pid", false, false},
		      {"thread.name", false, false},		 {"thread.id", false, false},
		      {"cpu.logical_number", false, false}};

	for (size_t i = 0; i < ARRAY_SIZE(resource); i++) {
		ck_assert(preset_keeps_resource(EXPORT_PRESET_OTLP, resource[i].key));
		ck_assert_msg(preset_keeps_resource(EXPORT_PRESET_PYROSCOPE, resource[i].key) == resource[i].pyroscope, "%s", resource[i].key);
		ck_assert_msg(preset_keeps_resource(EXPORT_PRESET_MINIMAL, resource[i].key) == resource[i].minimal, "%s", resource[i].key);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sample); i++) {
		ck_assert(preset_keeps_sample(EXPORT_PRESET_OTLP, sample[i].key));
		ck_assert_msg(preset_keeps_sample(EXPORT_PRESET_PYROSCOPE, sample[i].key) == sample[i].pyroscope, "%s", sample[i].key);
		ck_assert_msg(preset_keeps_sample(EXPORT_PRESET_MINIMAL, sample[i].key) == sample[i].minimal, "%s", sample[i].key);
	}
}
END_TEST

Suite *shape_suite(void)
{
	Suite *s = suite_create("shape");
	TCase *t = tcase_create("exporter");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, engines_requests_pass_unchanged_where_nothing_else_is_wanted);
	tcase_add_test(t, longer_interval_is_one_request_with_all_values);
	tcase_add_test(t, what_is_held_is_queued_in_the_books);
	tcase_add_test(t, reload_ends_the_interval);
	tcase_add_test(t, interval_ends_early_where_a_request_would_grow_too_large);
	tcase_add_test(t, request_that_cannot_be_read_is_lost_and_counted);
	tcase_add_loop_test(t, preset_bounds_the_series_of_a_store, 0, ARRAY_SIZE(counts));
	tcase_add_test(t, preset_leaves_names_alone_and_their_addresses_out);
	suite_add_tcase(s, t);
	t = tcase_create("presets");
	tcase_add_test(t, presets_keep_what_their_page_says);
	suite_add_tcase(s, t);
	return s;
}
