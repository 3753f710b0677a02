// SPDX-License-Identifier: Apache-2.0
/* Destinations that come, go, change and stay while requests are under way. */
#include "tests/unit/receiver.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/export.h"
#include "export/transport.h"
#include "tests/lib/counts.h"
#include "tests/lib/net_books.h"

Suite *export_reload_suite(void);

#define REQUEST "\x0a\x06\x12\x04\x12\x00\x12\x00"
#define SEALS	(F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define NOBODY	"http://127.0.0.1:9"

static struct receiver server;
static char good[64], directory[64], file_url[80], removed[256];
static struct ledger_net ledger;
static struct exporter *exporter;
static uint64_t next_id;

static void on_changed(void *ctx)
{
	net_books_balance(&ledger);
}

static void on_event(void *ctx, const char *name, enum export_event event, const char *text, uint64_t samples)
{
	size_t n = strlen(removed);

	if (event == EXPORT_REMOVED)
		snprintf(removed + n, sizeof(removed) - n, "%s: %s\n", name, text);
}

static struct export_config cfg(const char *name, char *endpoint)
{
	struct export_config c = {
		.endpoint = endpoint,
		.compression = EXPORT_CODING_GZIP,
		.timeout_ns = 2 * NSEC_PER_SEC,
		.retry_initial_ns = 20 * NSEC_PER_MSEC,
		.retry_max_ns = 50 * NSEC_PER_MSEC,
		.retry_elapsed_ns = 60 * NSEC_PER_SEC,
		.queue_bytes = 1 << 20,
	};

	snprintf(c.name, sizeof(c.name), "%s", name);
	return c;
}

static void begin(const struct export_config *cfgs, uint32_t n)
{
	ck_assert_int_eq(exporter_new(cfgs, n, &ledger, on_changed, NULL, &exporter), 0);
	exporter_on_event(exporter, on_event, NULL);
}

static void submit(uint64_t samples)
{
	int fd = memfd_create("request", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct export_request *r;

	ck_assert_int_eq(write(fd, REQUEST, sizeof(REQUEST) - 1), (ssize_t)sizeof(REQUEST) - 1);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	ck_assert_int_eq(export_request_new(fd, next_id++, COUNTS(samples), sizeof(REQUEST) - 1, &r), 0);
	exporter_submit(exporter, r);
	export_request_put(r);
}

static void turn(void)
{
	struct pollfd fds[4];
	int n = exporter_pollfds(exporter, fds, 4), ms = exporter_timeout_ms(exporter);

	poll(fds, (nfds_t)n, ms < 0 ? 20 : MIN(ms, 20));
	exporter_run(exporter);
}

#define RUN_UNTIL(condition)                                                   \
	do {                                                                   \
		uint64_t _end = clock_now_ns() + 20 * NSEC_PER_SEC;            \
		while (!(condition) && clock_now_ns() < _end)                  \
			turn();                                                \
		ck_assert_msg(condition, "%s does not come true", #condition); \
	} while (0)

static void reload(const struct export_config *cfgs, uint32_t n)
{
	exporter_reload(exporter, cfgs, n);
	RUN_UNTIL(exporter_reloading(exporter) == 0);
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(name);
}

static void setup(void)
{
	static const struct step always[] = {ANSWER_OK};

	memset(&ledger, 0, sizeof(ledger));
	removed[0] = '\0';
	next_id = 1;
	receiver_start(&server, always, ARRAY_SIZE(always));
	snprintf(good, sizeof(good), "http://127.0.0.1:%u", server.port);
	snprintf(directory, sizeof(directory), "/tmp/otprof-reload-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(file_url, sizeof(file_url), "file://%s", directory);
}

static void teardown(void)
{
	exporter = exporter_free(exporter);
	receiver_stop(&server);
	nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

START_TEST(what_waits_goes_to_the_new_address)
{
	struct export_config one = cfg("a", NOBODY), two = cfg("a", good);

	begin(&one, 1);
	submit(5);
	submit(7);
	RUN_UNTIL(ledger.dest[0].retries > 0 || *ledger.dest[0].last_error);
	reload(&two, 1);
	RUN_UNTIL(ledger.dest[0].exported.of[0] == 12);
	ck_assert_uint_eq(receiver_count(&server), 2);
	ck_assert_uint_eq(ledger.dest[0].earlier.of[0], 0);
	ck_assert_str_eq(removed, "");
}
END_TEST

/* A try that is cut short may have been delivered: then the receiver would have its request twice. */
START_TEST(try_under_way_ends_before_its_transport_does)
{
	static const struct step late = {
		.kind = STEP_ANSWER, .text = OTLP_HEAD("200 OK"), .body = "", .late_ms = 300};
	struct export_config before = cfg("a", good), after = before;

	server.steps = &late;
	after.timeout_ns = 3 * NSEC_PER_SEC;
	begin(&before, 1);
	submit(5);
	RUN_UNTIL(receiver_count(&server) == 1);
	ck_assert_uint_eq(ledger.dest[0].sending.of[0], 5);
	submit(6);
	reload(&after, 1);
	RUN_UNTIL(ledger.dest[0].exported.of[0] == 11);
	ck_assert_uint_eq(receiver_count(&server), 2);
	ck_assert_uint_eq(ledger.dest[0].retries, 0);
}
END_TEST

START_TEST(try_that_hangs_does_not_hold_a_reload_for_ever)
{
	static const struct step hangs[] = {{.kind = STEP_HANG}, ANSWER_OK};
	struct export_config before = cfg("a", good), after;

	server.steps = hangs;
	server.nr_steps = ARRAY_SIZE(hangs);
	before.timeout_ns = 60 * NSEC_PER_SEC;
	after = before;
	after.timeout_ns = NSEC_PER_SEC;
	begin(&before, 1);
	submit(5);
	RUN_UNTIL(receiver_count(&server) == 1);
	reload(&after, 1);
	RUN_UNTIL(ledger.dest[0].exported.of[0] == 5);
	ck_assert_uint_eq(receiver_count(&server), 2);
}
END_TEST

START_TEST(books_follow_their_name)
{
	struct export_config before[2] = {cfg("a", file_url), cfg("b", NOBODY)}, after[2] = {before[1], before[0]};

	begin(before, 2);
	submit(5);
	RUN_UNTIL(ledger.dest[0].exported.of[0] == 5);
	reload(after, 2);
	ck_assert_str_eq(ledger.dest[0].name, "b");
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 0);
	ck_assert_str_eq(ledger.dest[1].name, "a");
	ck_assert_uint_eq(ledger.dest[1].exported.of[0], 5);
	submit(3);
	RUN_UNTIL(ledger.dest[1].exported.of[0] == 8);
	ck_assert_uint_eq(ledger.dest[0].queued.of[0] + ledger.dest[0].sending.of[0], 8);
}
END_TEST

START_TEST(one_that_goes_counts_and_one_that_comes_begins)
{
	struct export_config before[2] = {cfg("gone", NOBODY), cfg("stays", file_url)};
	struct export_config after[2] = {cfg("stays", file_url), cfg("new", good)};

	begin(before, 2);
	submit(5);
	RUN_UNTIL(ledger.dest[1].exported.of[0] == 5);
	exporter_reload(exporter, after, 2);
	submit(4); /* while what goes still tries */
	RUN_UNTIL(exporter_reloading(exporter) == 0);
	ck_assert_str_eq(removed, "gone: exported 0, unconfirmed 0, lost 9\n");
	ck_assert_uint_eq(ledger.destinations, 2);
	ck_assert_str_eq(ledger.dest[1].name, "new");
	ck_assert_uint_eq(ledger.dest[1].earlier.of[0], 9);
	submit(2);
	RUN_UNTIL(ledger.dest[0].exported.of[0] == 11 && ledger.dest[1].exported.of[0] == 2);
}
END_TEST

START_TEST(one_that_goes_delivers_first)
{
	struct export_config before[1] = {cfg("a", good)}, after[1] = {cfg("b", file_url)};

	begin(before, 1);
	submit(5);
	submit(6);
	reload(after, 1);
	ck_assert_str_eq(removed, "a: exported 11, unconfirmed 0, lost 0\n");
	ck_assert_uint_eq(ledger.dest[0].earlier.of[0], 11);
}
END_TEST

/* What is compressed for the network is no file: the old one delivers, the new one begins. */
START_TEST(same_name_of_another_kind_is_another_destination)
{
	struct export_config before = cfg("a", good), after = cfg("a", file_url);

	begin(&before, 1);
	submit(5);
	reload(&after, 1);
	ck_assert_str_eq(removed, "a: exported 5, unconfirmed 0, lost 0\n");
	ck_assert_uint_eq(ledger.dest[0].earlier.of[0], 5);
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 0);
	submit(3);
	RUN_UNTIL(ledger.dest[0].exported.of[0] == 3);
}
END_TEST

START_TEST(next_exporter_finds_books_by_name)
{
	struct export_config before[2] = {cfg("a", file_url), cfg("b", good)}, after[2] = {cfg("b", good), cfg("c", good)};

	begin(before, 2);
	submit(5);
	RUN_UNTIL(ledger.dest[0].exported.of[0] == 5 && ledger.dest[1].exported.of[0] == 5);
	exporter = exporter_free(exporter);
	begin(after, 2);
	ck_assert_str_eq(ledger.dest[0].name, "b");
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 5);
	ck_assert_uint_eq(ledger.dest[1].earlier.of[0], 5);
	on_changed(NULL);
}
END_TEST

/*
 * Two configurations that differ in every field, and for each field whether a
 * change of it alone opens an http and a file transport anew. The initializers
 * are positional: a field of the structure that the list lacks is an error of
 * the compiler, in whatever place it stands.
 */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"

enum { KEEPS = true, REOPENS = false };

/* X(field, one, another, http, file) */
#define CONFIG_FIELDS(X)                                             \
	X(name, "one", "another", KEEPS, KEEPS)                      \
	X(endpoint, "one", "another", REOPENS, REOPENS)              \
	X(protocol, 0, 1, REOPENS, KEEPS)                            \
	X(preset, 0, 1, KEEPS, KEEPS)                                \
	X(interval_ns, 1, 2, KEEPS, KEEPS)                           \
	X(engine_interval_ns, 1, 2, KEEPS, KEEPS)                    \
	X(compression, 0, 2, KEEPS, KEEPS)                           \
	X(endpoint_is_full, false, true, REOPENS, KEEPS)             \
	X(headers, {"A: one"}, {"A: another"}, REOPENS, KEEPS)       \
	X(nr_headers, 1, 2, REOPENS, KEEPS)                          \
	X(nr_headers_file, 0, 1, KEEPS, KEEPS)                       \
	X(nr_headers_env, 0, 1, KEEPS, KEEPS)                        \
	X(headers_file, NULL, "/headers", KEEPS, KEEPS)              \
	X(tls_ca, NULL, "/ca", REOPENS, KEEPS)                       \
	X(tls_cert, NULL, "/cert", REOPENS, KEEPS)                   \
	X(tls_key, NULL, "/key", REOPENS, KEEPS)                     \
	X(tls_insecure, false, true, REOPENS, KEEPS)                 \
	X(timeout_ns, 1, 2, REOPENS, KEEPS)                          \
	X(retry_initial_ns, 1, 2, KEEPS, KEEPS)                      \
	X(retry_max_ns, 1, 2, KEEPS, KEEPS)                          \
	X(retry_elapsed_ns, 1, 2, KEEPS, KEEPS)                      \
	X(queue_bytes, 1, 2, KEEPS, KEEPS)                           \
	X(spool_bytes, 0, 1, KEEPS, KEEPS)                           \
	X(spool_age_ns, 1, 2, KEEPS, KEEPS)                          \
	X(spool, NULL, &a_spool, KEEPS, KEEPS)                       \
	X(file_keep, 1, 2, KEEPS, REOPENS)                           \
	X(metrics, false, true, KEEPS, KEEPS)                        \
	X(metrics_endpoint, NULL, "another", KEEPS, KEEPS)           \
	X(signal, 0, 1, KEEPS, KEEPS)                                \
	X(file_dir, 0, 3, KEEPS, KEEPS)

static const struct export_spool a_spool;

#define ONE(field, one, another, http, file) one,
#define ANOTHER(field, one, another, http, file) another,
static const struct export_config config_one = {CONFIG_FIELDS(ONE)}, config_another = {CONFIG_FIELDS(ANOTHER)};
#pragma GCC diagnostic pop

static const struct config_field {
	const char *name;
	size_t offset, size;
	bool http, file;
} config_fields[] = {
#define FIELD(field, one, another, http, file) \
	{#field, offsetof(struct export_config, field), sizeof(config_one.field), http, file},
	CONFIG_FIELDS(FIELD)
#undef FIELD
};

static void change_field(struct export_config *c, const struct config_field *f)
{
	memcpy((char *)c + f->offset, (const char *)&config_another + f->offset, f->size);
}

START_TEST(every_field_of_a_configuration_keeps_or_reopens_a_transport)
{
	const struct config_field *f = &config_fields[_i];
	const struct transport_ops *const ops[] = {&transport_http, &transport_https, &transport_grpc, &transport_grpcs,
						    &transport_file};

	ck_assert_msg(memcmp((const char *)&config_one + f->offset, (const char *)&config_another + f->offset, f->size),
		      "%s is the same in both configurations", f->name);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		bool keeps = ops[i] == &transport_file ? f->file : f->http;
		struct export_config changed = config_one;

		ck_assert(ops[i]->same(&config_one, &changed));
		change_field(&changed, f);
		ck_assert_msg(ops[i]->same(&config_one, &changed) == keeps, "%s: %s", ops[i]->scheme, f->name);
		ck_assert_msg(ops[i]->same(&changed, &config_one) == keeps, "%s: %s", ops[i]->scheme, f->name);
	}
}
END_TEST

/* A file of a key may hold another one under the same name. */
START_TEST(same_file_names_of_tls_reopen)
{
	struct export_config c = config_one;

	c.tls_ca = "/ca";
	ck_assert(!transport_https.same(&c, &c));
}
END_TEST

Suite *export_reload_suite(void)
{
	Suite *s = suite_create("export_reload");
	TCase *t = tcase_create("reload");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, what_waits_goes_to_the_new_address);
	tcase_add_test(t, try_under_way_ends_before_its_transport_does);
	tcase_add_test(t, try_that_hangs_does_not_hold_a_reload_for_ever);
	tcase_add_test(t, books_follow_their_name);
	tcase_add_test(t, one_that_goes_counts_and_one_that_comes_begins);
	tcase_add_test(t, one_that_goes_delivers_first);
	tcase_add_test(t, same_name_of_another_kind_is_another_destination);
	tcase_add_test(t, next_exporter_finds_books_by_name);
	suite_add_tcase(s, t);
	t = tcase_create("same");
	tcase_add_loop_test(t, every_field_of_a_configuration_keeps_or_reopens_a_transport, 0, ARRAY_SIZE(config_fields));
	tcase_add_test(t, same_file_names_of_tls_reopen);
	suite_add_tcase(s, t);
	return s;
}
