// SPDX-License-Identifier: Apache-2.0
/* Destinations with a spool: what goes to disk, what comes back and when, and that the books hold through every kill. */
#include "tests/unit/receiver.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/origin.h"
#include "export/spool_record.h"
#include "tests/unit/export_fixture.h"
#include "tests/lib/remove_tree.h"

Suite *export_spool_suite(void);

#define BUSY {.kind = STEP_ANSWER, .text = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"}
#define GOOD {.kind = STEP_ANSWER, .text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}

static struct receiver server;
static char top[64];
static struct export_spool place;

static void configure(void)
{
	for (int i = 0; i < 2; i++) {
		config[i].spool_bytes = 1 << 20;
		config[i].spool_age_ns = 3600 * NSEC_PER_SEC;
		config[i].spool = &place;
		config[i].compression = EXPORT_CODING_NONE;
	}
	config[1].name[0] = 't';
}

static void setup(void)
{
	fixture_setup();
	server.listener = -1;
	strcpy(top, "/tmp/otprof-check-spool-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	memset(place.origins, SPOOL_NO_ORIGIN, sizeof(place.origins));
	place.origins[0] = OTP_ORIGIN_CPU_CLOCK;
	place.dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	configure();
}

static void teardown(void)
{
	exporter = exporter_free(exporter);
	if (server.listener >= 0)
		receiver_stop(&server);
	server.listener = -1;
	closep(&place.dir);
	remove_tree(AT_FDCWD, top);
}

static void serve(const struct step *steps, size_t n)
{
	receiver_start(&server, steps, n);
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", server.port);
}

#define START(...)                                        \
	static const struct step steps[] = {__VA_ARGS__}; \
	serve(steps, ARRAY_SIZE(steps));                  \
	start_exporter(1)

static void start_with_good(void)
{
	START(GOOD);
}

/* By a reload. */
static void use_good_address(void)
{
	static const struct step steps[] = {GOOD};
	static struct export_config now;
	static char address[64];

	receiver_start(&server, steps, 1);
	snprintf(address, sizeof(address), "http://127.0.0.1:%u", server.port);
	now = config[0];
	now.endpoint = address;
	exporter_reload(exporter, &now, 1);
	RUN_UNTIL(!exporter_reloading(exporter));
}

/* A port that nobody listens on. */
static void start_away(uint32_t n)
{
	strcpy(endpoint, "http://127.0.0.1:1");
	start_exporter(n);
}

/* Request i is one byte. */
static void submit_letters(char from, char to, uint64_t samples)
{
	for (char c = from; c <= to; c++)
		submit_as(next_id++, &c, 1, samples);
}

static void check_arrived(size_t at, const char *letters)
{
	ck_assert_uint_ge(receiver_count(&server), at + strlen(letters));
	for (size_t i = 0; letters[i]; i++)
		ck_assert_msg(server.got[at + i].body[0] == letters[i], "place %zu has %c, not %c", at + i,
			      server.got[at + i].body[0], letters[i]);
}

static unsigned int segments_of(const char *name)
{
	int fd = openat(place.dir, name, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned int n = 0;

	while (dir && (entry = readdir(dir)))
		n += strstr(entry->d_name, ".seg") != NULL;
	if (dir)
		closedir(dir);
	return n;
}

/* As the monitor books the death of net. */
static void book_death(struct ledger_net *l)
{
	for (uint32_t i = 0; i < l->destinations; i++) {
		struct ledger_destination *d = &l->dest[i];

		ledger_counts_add(&d->lost[OTP_LOSS_NET_DIED], &d->queued);
		ledger_counts_add(&d->unconfirmed, &d->sending);
		d->queued = d->sending = (struct ledger_counts){0};
	}
}

static void end_exporter(void)
{
	exporter = exporter_free(exporter);
	book_death(&ledger);
}

/* --- what goes to disk, and comes back --- */

START_TEST(a_destination_that_works_writes_nothing)
{
	START(GOOD);
	submit_letters('a', 'j', 1);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 10);
	ck_assert_uint_eq(segments_of("sink"), 0);
	ck_assert_uint_eq(dest()->restored.of[0], 0);
}
END_TEST

START_TEST(what_waits_for_a_failing_destination_is_on_disk)
{
	start_away(1);
	submit_letters('a', 'e', 2);
	RUN_UNTIL(dest()->spooled.of[0] == 10);
	ck_assert_uint_eq(dest()->queued.of[0], 0);
	ck_assert_uint_eq(dest()->sending.of[0], 0);
	ck_assert_uint_eq(dest()->spool_requests, 5);
	ck_assert_uint_eq(segments_of("sink"), 1);
	ck_assert_uint_eq(events[EXPORT_FAILING], 1);
	ck_assert_uint_eq(events[EXPORT_DROPPED], 0);
}
END_TEST

START_TEST(requests_return_from_disk_in_their_order)
{
	START(BUSY, BUSY, BUSY, GOOD);
	submit_letters('a', 'h', 1);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 8);
	check_arrived(0, "aaaabcdefgh");
	ck_assert_uint_eq(dest()->retries, 3);
	ck_assert_uint_eq(dest()->spooled.of[0], 0);
	ck_assert_uint_eq(dest()->restored.of[0], 0);
	ck_assert_uint_eq(segments_of("sink"), 0);
	ck_assert_uint_eq(events[EXPORT_BACK], 1);
}
END_TEST

START_TEST(compressed_requests_return_as_they_were)
{
	static char data[30000];

	config[0].compression = EXPORT_CODING_GZIP;
	START(BUSY, GOOD);
	submit_as(1, data, sizeof(data), 3);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 3);
	ck_assert_ptr_nonnull(strcasestr(server.got[1].head, "\r\nContent-Encoding: gzip\r\n"));
	ck_assert_uint_eq(server.got[0].len, server.got[1].len);
	ck_assert_mem_eq(server.got[0].body, server.got[1].body, server.got[0].len);
}
END_TEST

/* It went to disk in zstd, which the receiver turns out not to take. */
START_TEST(what_waits_on_disk_in_zstd_is_sent_in_gzip_where_it_must)
{
	static char data[30000];

	config[0].compression = EXPORT_CODING_ZSTD;
	START(BUSY, ANSWER("415 Unsupported", ""), GOOD);
	submit_as(1, data, sizeof(data), 3);
	run();
	ck_assert_uint_eq(receiver_count(&server), 3);
	ck_assert_ptr_nonnull(strcasestr(server.got[1].head, "\r\nContent-Encoding: zstd\r\n"));
	ck_assert_ptr_nonnull(strcasestr(server.got[2].head, "\r\nContent-Encoding: gzip\r\n"));
	ck_assert_uint_eq(dest()->exported.of[0], 3);
	ck_assert_uint_eq(dest()->zstd_refused, 1);
	ck_assert_uint_eq(dest()->spool_requests, 0);
}
END_TEST

START_TEST(a_half_full_queue_goes_to_disk)
{
	static char data[40000];
	static const struct step hang[] = {{.kind = STEP_HANG}};

	config[0].queue_bytes = 1 << 18;
	serve(hang, 1);
	start_exporter(1);
	for (int i = 0; i < 5; i++) {
		submit_as(next_id++, data, sizeof(data), 1);
		turn(1);
	}
	/* Two of three that fill half of it, twice: the one that is being sent stays. */
	RUN_UNTIL(dest()->spooled.of[0] == 4);
	ck_assert_uint_eq(dest()->sending.of[0], 1);
	ck_assert_uint_eq(dest()->queued.of[0], 0);
}
END_TEST

START_TEST(new_requests_overtake_those_of_the_spool)
{
	static const struct step slow[] = {BUSY, {.kind = STEP_ANSWER, .late_ms = 60,
						   .text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}};

	serve(slow, 2);
	start_exporter(1);
	submit_letters('a', 'h', 1);
	RUN_UNTIL(receiver_count(&server) == 4);
	submit_letters('z', 'z', 1);
	run();
	/* a twice, then b and c are on their way at most. */
	ck_assert(server.got[4].body[0] == 'z' || server.got[5].body[0] == 'z');
	ck_assert_uint_eq(dest()->exported.of[0], 9);
}
END_TEST

START_TEST(the_spool_leaves_half_of_the_time)
{
	static const struct step slow[] = {BUSY, {.kind = STEP_ANSWER, .late_ms = 50,
						   .text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}};
	uint64_t began;

	serve(slow, 2);
	start_exporter(1);
	submit_letters('a', 'h', 1);
	RUN_UNTIL(dest()->exported.of[0] == 1);
	began = clock_now_ns();
	RUN_UNTIL(dest()->exported.of[0] == 8);
	/* Seven answers, each after a pause as long. */
	ck_assert_uint_ge(clock_now_ns() - began, 7 * 2 * 50 * NSEC_PER_MSEC - 10 * NSEC_PER_MSEC);
}
END_TEST

/* --- restarts --- */

START_TEST(a_new_daemon_restores_what_is_on_disk)
{
	START(BUSY, GOOD);
	exporter = exporter_free(exporter);
	memset(&ledger, 0, sizeof(ledger));
	strcpy(endpoint, "http://127.0.0.1:1");
	start_exporter(1);
	submit_letters('a', 'd', 5);
	RUN_UNTIL(dest()->spooled.of[0] == 20);
	exporter = exporter_free(exporter);
	memset(&ledger, 0, sizeof(ledger));
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", server.port);
	start_exporter(1);
	ck_assert_uint_eq(dest()->restored.of[0], 20);
	ck_assert_uint_eq(dest()->spooled.of[0], 20);
	on_changed(NULL);
	run();
	ck_assert_uint_eq(dest()->exported.of[0], 20);
	ck_assert_uint_eq(events[EXPORT_RESTORED], 1);
	check_arrived(0, "aabcd");
}
END_TEST

START_TEST(a_net_that_is_started_again_has_its_spool_in_the_books)
{
	start_away(1);
	submit_letters('a', 'd', 5);
	RUN_UNTIL(dest()->spooled.of[0] == 20);
	end_exporter();
	start_exporter(1);
	ck_assert_uint_eq(dest()->spooled.of[0], 20);
	ck_assert_uint_eq(dest()->restored.of[0], 0);
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_NET_DIED].of[0], 0);
}
END_TEST

START_TEST(a_stop_leaves_on_disk_what_cannot_be_delivered)
{
	uint64_t began;

	start_away(1);
	submit_letters('a', 'c', 1);
	RUN_UNTIL(dest()->spooled.of[0] == 3);
	submit_letters('d', 'd', 1);
	began = clock_now_ns();
	exporter_stop(exporter, began + 10 * NSEC_PER_SEC);
	run();
	ck_assert_uint_lt(clock_now_ns() - began, 5 * NSEC_PER_SEC);
	ck_assert_uint_eq(dest()->spooled.of[0], 4);
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_SHUTDOWN].of[0], 0);
}
END_TEST

START_TEST(at_the_deadline_of_a_stop_everything_goes_to_disk)
{
	static const struct step hang[] = {{.kind = STEP_HANG}};

	serve(hang, 1);
	start_exporter(1);
	submit_letters('a', 'c', 1);
	turn(10);
	exporter_stop(exporter, clock_now_ns() + 300 * NSEC_PER_MSEC);
	run();
	ck_assert_uint_eq(dest()->spooled.of[0], 3);
	ck_assert_uint_eq(dest()->unconfirmed.of[0], 0);
	end_exporter();
	receiver_stop(&server);
	start_with_good();
	run();
	check_arrived(0, "abc");
	ck_assert_uint_eq(dest()->exported.of[0], 3);
	/* The first one had been sent, and nobody knows what became of it. */
	ck_assert_uint_eq(dest()->repeated.of[0], 1);
}
END_TEST

/* --- bounds --- */

START_TEST(a_full_spool_drops_its_oldest_and_counts_them)
{
	static char data[100000];

	start_away(1);
	for (int i = 0; i < 20; i++) {
		data[0] = (char)i;
		submit_as(next_id++, data, sizeof(data), 1);
		RUN_UNTIL(dest()->queued.of[0] == 0 && dest()->sending.of[0] == 0);
	}
	ck_assert_uint_le(dest()->spool_bytes, 1 << 20);
	ck_assert_uint_ge(dest()->spooled.of[0], 9);
	ck_assert_uint_eq(dest()->spooled.of[0] + dest()->lost[OTP_LOSS_SPOOL_FULL].of[0], 20);
	end_exporter();
	START(GOOD);
	run();
	/* The newest are left. */
	for (size_t i = 0, n = receiver_count(&server); i < n; i++)
		ck_assert_int_eq(server.got[i].body[0], (int)(20 - n + i));
}
END_TEST

START_TEST(a_request_above_the_spool_costs_no_other)
{
	static char data[1200000];

	config[0].queue_bytes = 4 << 20;
	start_away(1);
	submit_letters('a', 'c', 1);
	submit_as(next_id++, data, sizeof(data), 7);
	submit_letters('d', 'e', 1);
	RUN_UNTIL(dest()->spooled.of[0] == 5);
	ck_assert_uint_eq(dest()->queued.of[0], 7);
	ck_assert_uint_eq(events[EXPORT_DROPPED], 0);
}
END_TEST

START_TEST(what_is_too_old_is_dropped_and_counted)
{
	config[0].spool_age_ns = NSEC_PER_SEC;
	start_away(1);
	submit_letters('a', 'c', 1);
	RUN_UNTIL(dest()->lost[OTP_LOSS_SPOOL_EXPIRED].of[0] == 3);
	ck_assert_uint_eq(dest()->spooled.of[0], 0);
	ck_assert_uint_eq(segments_of("sink"), 0);
}
END_TEST

/* --- faults of the disk --- */

START_TEST(a_disk_that_fails_leaves_requests_in_memory)
{
	char path[128];

	start_away(1);
	submit_letters('a', 'b', 1);
	RUN_UNTIL(dest()->spooled.of[0] == 2);
	end_exporter();
	snprintf(path, sizeof(path), "%s/sink", top);
	start_exporter(1);
	remove_tree(AT_FDCWD, path);
	submit_letters('c', 'e', 1);
	for (int i = 0; i < 20; i++) {
		turn(20);
		submit_letters('f', 'f', 1);
	}
	ck_assert_uint_eq(events[EXPORT_SPOOL_FAILING], 1);
	ck_assert_uint_eq(dest()->queued.of[0] + dest()->sending.of[0], 23);
	use_good_address();
	RUN_UNTIL(dest()->exported.of[0] == 23);
	/* What was on it before is gone. */
	RUN_UNTIL(dest()->lost[OTP_LOSS_SPOOL_DAMAGED].of[0] == 2);
	ck_assert_uint_eq(dest()->spooled.of[0], 0);
}
END_TEST

START_TEST(a_damaged_request_is_counted_and_the_rest_delivered)
{
	char path[128];
	int fd;

	start_away(1);
	submit_letters('a', 'd', 1);
	RUN_UNTIL(dest()->spooled.of[0] == 4);
	end_exporter();
	snprintf(path, sizeof(path), "%s/sink/%016x.seg", top, 1);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, "!", 1, sizeof(struct spool_header) + sizeof(struct spool_header) + 1), 1);
	close(fd);
	START(GOOD);
	run();
	check_arrived(0, "acd");
	ck_assert_uint_eq(dest()->lost[OTP_LOSS_SPOOL_DAMAGED].of[0], 1);
	ck_assert_uint_eq(dest()->exported.of[0], 3);
}
END_TEST

START_TEST(a_spool_that_another_process_has_is_reported_and_not_touched)
{
	struct ledger_net before;
	struct exporter *first;

	start_away(1);
	submit_letters('a', 'b', 1);
	RUN_UNTIL(dest()->spooled.of[0] == 2);
	first = exporter;
	before = ledger;
	memset(&ledger, 0, sizeof(ledger));
	start_exporter(1);
	submit_letters('c', 'd', 1);
	RUN_UNTIL(events[EXPORT_SPOOL_FAILING] == 1);
	ck_assert_str_eq(last_text, "another process uses it");
	ck_assert_uint_eq(dest()->queued.of[0], 2);
	exporter_free(exporter);
	exporter = first;
	ledger = before;
}
END_TEST

/* --- destinations --- */

START_TEST(destinations_have_spools_of_their_own)
{
	static const struct step steps[] = {GOOD};
	static char away[] = "http://127.0.0.1:1";

	serve(steps, 1);
	config[1].endpoint = away;
	start_exporter(2);
	submit_letters('a', 'd', 1);
	RUN_UNTIL(dest()->exported.of[0] == 4 && ledger.dest[1].spooled.of[0] == 4);
	ck_assert_uint_eq(segments_of("sink"), 0);
	ck_assert_uint_eq(segments_of("tink"), 1);
}
END_TEST

START_TEST(the_spool_of_a_removed_destination_waits_for_its_name)
{
	static const struct step steps[] = {GOOD};
	static char away[] = "http://127.0.0.1:1";
	struct export_config both[2];

	serve(steps, 1);
	config[1].endpoint = away;
	memcpy(both, config, sizeof(both));
	start_exporter(2);
	submit_letters('a', 'c', 1);
	RUN_UNTIL(ledger.dest[1].spooled.of[0] == 3);
	exporter_reload(exporter, config, 1);
	RUN_UNTIL(!exporter_reloading(exporter));
	ck_assert_str_eq(last_text, "exported 0, unconfirmed 0, lost 0; 3 stay on disk, for a destination of this name");
	both[1].endpoint = endpoint;
	exporter_reload(exporter, both, 2);
	RUN_UNTIL(!exporter_reloading(exporter));
	ck_assert_uint_eq(ledger.dest[1].restored.of[0], 3);
	run();
	ck_assert_uint_eq(ledger.dest[1].exported.of[0], 3);
}
END_TEST

START_TEST(a_spool_that_is_switched_off_is_still_sent)
{
	struct export_config off;

	start_away(1);
	submit_letters('a', 'c', 1);
	RUN_UNTIL(dest()->spooled.of[0] == 3);
	off = config[0];
	off.spool_bytes = 0;
	off.retry_elapsed_ns = 0;
	exporter_reload(exporter, &off, 1);
	RUN_UNTIL(!exporter_reloading(exporter));
	submit_letters('d', 'd', 1);
	RUN_UNTIL(dest()->lost[OTP_LOSS_RETRY_EXPIRED].of[0] == 1);
	ck_assert_uint_eq(dest()->spooled.of[0], 3);
}
END_TEST

/* --- kills --- */

/*
 * A process that runs the exporter is killed at its k-th statement of the books,
 * before or after it is published; another one goes on with what was published.
 * Request i has one sample in the i-th digit, so that sums say of which requests.
 */
#define KILL_REQUESTS 6
#define DIGIT(i)      (1ull << (4 * (i)))

struct published {
	struct ledger_net ledger;
	unsigned int books;
};

static struct published *shared;
static unsigned int kill_at;
static bool kill_before;

static void publish(void *ctx)
{
	bool now = kill_at && ++shared->books == kill_at;

	if (now && kill_before)
		_exit(1);
	shared->ledger = ledger;
	if (now)
		_exit(1);
}

/* As the engine: what net has not published as received is sent to it again. */
static void run_to_the_end(void)
{
	ledger = shared->ledger;
	ck_assert_int_eq(exporter_new(config, 1, &ledger, publish, NULL, &exporter), 0);
	publish(NULL);
	for (uint64_t id = ledger.received_id + 1; id <= KILL_REQUESTS; id++) {
		char letter = (char)('a' + id - 1);

		submit_as(id, &letter, 1, DIGIT(id - 1));
		turn(1);
	}
	run();
	exporter = exporter_free(exporter);
}

/* Whether it ended by itself. */
static bool run_in_a_process(uint16_t port)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", port);
		run_to_the_end();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status) == 0;
}

static unsigned int digit(const struct ledger_counts *n, unsigned int i)
{
	return n->of[0] >> (4 * i) & 15;
}

/* How often each request was answered with success. */
static void count_deliveries(unsigned int failures, unsigned int delivered[KILL_REQUESTS])
{
	for (size_t i = failures, n = receiver_count(&server); i < n && i < RECEIVED_MAX; i++)
		delivered[server.got[i].body[0] - 'a']++;
}

static void check_kill(const struct ledger_destination *d, unsigned int failures)
{
	unsigned int delivered[KILL_REQUESTS] = {0};

	count_deliveries(failures, delivered);
	for (unsigned int i = 0; i < KILL_REQUESTS; i++) {
		unsigned int lost = digit(&d->lost[OTP_LOSS_NET_DIED], i), unknown = digit(&d->unconfirmed, i);

		ck_assert_msg(delivered[i] || lost || unknown, "%u: request %u is nowhere", kill_at, i);
		ck_assert_msg(delivered[i] <= 1 || digit(&d->restored, i) || digit(&d->repeated, i),
			      "%u: request %u came %u times", kill_at, i, delivered[i]);
	}
	ck_assert_uint_eq(d->exported.of[0] + d->unconfirmed.of[0] + d->lost[OTP_LOSS_NET_DIED].of[0] + d->spooled.of[0] +
				  d->queued.of[0] + d->sending.of[0] + d->lost[OTP_LOSS_SPOOL_DAMAGED].of[0],
			  shared->ledger.received.of[0] + d->restored.of[0]);
	ck_assert_uint_eq(d->spooled.of[0] + d->queued.of[0] + d->sending.of[0] + d->lost[OTP_LOSS_SPOOL_DAMAGED].of[0], 0);
}

START_TEST(the_books_hold_through_a_kill_at_every_step)
{
	static const struct step steps[] = {BUSY, BUSY, GOOD};
	bool over = false;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	kill_before = _i;
	for (kill_at = 1; !over; kill_at++) {
		unsigned int at = kill_at;

		memset(shared, 0, sizeof(*shared));
		serve(steps, ARRAY_SIZE(steps));
		over = run_in_a_process(server.port);
		book_death(&shared->ledger);
		kill_at = 0;
		ck_assert(run_in_a_process(server.port));
		kill_at = at;
		check_kill(&shared->ledger.dest[0], 2);
		receiver_stop(&server);
		remove_tree(place.dir, "sink");
	}
	ck_assert_uint_gt(kill_at, 25);
	server.listener = -1;
	munmap(shared, sizeof(*shared));
}
END_TEST

Suite *export_spool_suite(void)
{
	Suite *s = suite_create("export_spool");
	TCase *t = tcase_create("export_spool");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_destination_that_works_writes_nothing);
	tcase_add_test(t, what_waits_for_a_failing_destination_is_on_disk);
	tcase_add_test(t, requests_return_from_disk_in_their_order);
	tcase_add_test(t, compressed_requests_return_as_they_were);
	tcase_add_test(t, what_waits_on_disk_in_zstd_is_sent_in_gzip_where_it_must);
	tcase_add_test(t, a_half_full_queue_goes_to_disk);
	tcase_add_test(t, new_requests_overtake_those_of_the_spool);
	tcase_add_test(t, the_spool_leaves_half_of_the_time);
	tcase_add_test(t, a_new_daemon_restores_what_is_on_disk);
	tcase_add_test(t, a_net_that_is_started_again_has_its_spool_in_the_books);
	tcase_add_test(t, a_stop_leaves_on_disk_what_cannot_be_delivered);
	tcase_add_test(t, at_the_deadline_of_a_stop_everything_goes_to_disk);
	tcase_add_test(t, a_full_spool_drops_its_oldest_and_counts_them);
	tcase_add_test(t, a_request_above_the_spool_costs_no_other);
	tcase_add_test(t, what_is_too_old_is_dropped_and_counted);
	tcase_add_test(t, a_disk_that_fails_leaves_requests_in_memory);
	tcase_add_test(t, a_damaged_request_is_counted_and_the_rest_delivered);
	tcase_add_test(t, a_spool_that_another_process_has_is_reported_and_not_touched);
	tcase_add_test(t, destinations_have_spools_of_their_own);
	tcase_add_test(t, the_spool_of_a_removed_destination_waits_for_its_name);
	tcase_add_test(t, a_spool_that_is_switched_off_is_still_sent);
	tcase_add_loop_test(t, the_books_hold_through_a_kill_at_every_step, 0, 2);
	suite_add_tcase(s, t);
	return s;
}
