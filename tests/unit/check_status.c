// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/report/status.h"
#include "runtime/runtime.h"
#include "unwind/unwind.h"

Suite *status_suite(void);

static struct config *config;
static struct otp_cpu_counters counters[3 * 3];
static struct origins origins;
static struct ledger_view view = {.counters = counters, .counters_stride = sizeof(counters[0]), .cpus = 3, .origins = &origins};
static struct status status;
static struct buf text;

static void setup(void)
{
	static const char file[] = "[exporter sink]\nendpoint = http://h\n[exporter disk]\nendpoint = file:///d\n";

	ck_assert_int_eq(config_parse("F", file, strlen(file), NULL, NULL, &config), 0);
	memset(counters, 0, sizeof(counters));
	origins = origins_of_clock(1000);
	buf_init(&text, 0);
	status = (struct status){.config = config,
				 .pid = 42,
				 .uptime_ns = 61 * NSEC_PER_SEC,
				 .mode = "bpf",
				 .why = "a \"reason\"\n",
				 .view = &view,
				 .workers = {{"engine", 43, 1}, {"net", 44, 0}}};
	status.ledger.destinations = 2;
	status.ledger.slots = 1;
	status.ledger.all.balanced = true;
}

static void teardown(void)
{
	buf_done(&text);
	config_free(config);
}

static bool says(const char *what)
{
	return strstr(buf_cstr(&text), what) != NULL;
}

/* Balanced outside strings, no control characters, and a comma exactly where two values meet. */
static bool is_well_formed(const char *s)
{
	char stack[64], before = 0;
	int depth = 0;

	for (; *s && *s != '\n'; s++) {
		char c = *s;

		if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x7f)
			return false;
		if (c == '"') {
			if (before == '"' || before == '}' || before == ']' || before == '0')
				return false;
			for (s++; *s && *s != '"'; s++)
				if (*s == '\\' && *++s == '\0')
					return false;
			if (!*s)
				return false;
		} else if (c == '{' || c == '[') {
			if (depth == 64 || before == '}' || before == '"')
				return false;
			stack[depth++] = c;
		} else if (c == '}' || c == ']') {
			if (!depth || before == ',' || stack[--depth] != (c == '}' ? '{' : '['))
				return false;
		}
		before = c >= '0' && c <= '9' ? '0' : c;
	}
	return depth == 0;
}

START_TEST(json_is_well_formed)
{
	counters[0].ticks = 5;
	counters[2].ticks = 6;
	status_json(&status, &text);
	ck_assert_msg(is_well_formed(buf_cstr(&text)), "%s", buf_cstr(&text));
	ck_assert(!text.failed);
}
END_TEST

START_TEST(json_has_every_reason_and_destination)
{
	status.ledger.all.taken = 100;
	status.ledger.all.dest[0].exported = 97;
	status.ledger.all.dest[1].lost[OTP_LOSS_WRITE] = 3;
	status_json(&status, &text);
	for (uint32_t r = 0; ledger_loss_name(r); r++)
		ck_assert(says(ledger_loss_name(r)));
	ck_assert(says("\"taken\":100"));
	ck_assert(says("\"exported\":{\"sink\":97,\"disk\":0}"));
	ck_assert(says("\"write\":3"));
	ck_assert(says("\"workers\":{\"engine\":{\"pid\":43,\"restarts\":1},\"net\":{\"pid\":44,\"restarts\":0}}"));
}
END_TEST

START_TEST(each_origin_has_its_own_figures)
{
	origins.count = 3;
	origins.slot[2] = (struct origin_slot){.origin = OTP_ORIGIN_PAGE_FAULTS, .sampled = true, .period = 1};
	status.ledger.slots = 3;
	status.ledger.origin[0].taken = 5;
	status.ledger.origin[2].taken = 7;
	status.ledger.origin[2].value = 700;
	status.ledger.origin[2].dest[1].exported = 6;
	status.ledger.origin[2].dest[1].restored = 8;
	status_json(&status, &text);
	ck_assert(is_well_formed(buf_cstr(&text)));
	ck_assert(says("\"origins\":{\"cpu-clock\":{\"type\":\"samples\","));
	ck_assert(says("\"page-faults\":{\"type\":\"page_faults\",\"balanced\":false,\"taken\":7,"));
	ck_assert(says("\"value\":700"));
	ck_assert(says("\"value\":5"));
	buf_reset(&text);
	status_prometheus(&status, &text);
	ck_assert(says("otprof_samples_taken_total{origin=\"page-faults\"} 7\n"));
	ck_assert(says("otprof_events_total{origin=\"page-faults\"} 700\n"));
	ck_assert(says("otprof_samples_exported_total{destination=\"disk\",origin=\"page-faults\"} 6\n"));
	ck_assert(says("otprof_samples_restored_total{destination=\"disk\",origin=\"page-faults\"} 8\n"));
	ck_assert(says("otprof_spool_bytes{destination=\"disk\"} 0\n"));
}
END_TEST

START_TEST(each_origin_has_its_equation_at_each_destination)
{
	struct ledger_sum_origin *o = &status.ledger.origin[0];

	o->taken = 9;
	o->dest[0] = (struct ledger_sum_destination){.exported = 6, .in_flight = 3, .spooled = 1, .restored = 2,
						     .repeated = 4, .balanced = true};
	o->dest[1] = (struct ledger_sum_destination){.earlier = 2, .unconfirmed = 3, .lost = {[OTP_LOSS_WRITE] = 4}};
	status_json(&status, &text);
	ck_assert(is_well_formed(buf_cstr(&text)));
	ck_assert(says("\"destinations\":{\"sink\":{\"balanced\":true,\"earlier\":0,\"exported\":6,\"unconfirmed\":0,"
		       "\"in_flight\":3,\"spooled\":1,\"restored\":2,\"repeated\":4,\"lost\":{"));
	ck_assert(says("\"disk\":{\"balanced\":false,\"earlier\":2,\"exported\":0,\"unconfirmed\":3,\"in_flight\":0,"
		       "\"spooled\":0,\"restored\":0,\"repeated\":0,\"lost\":{"));
	ck_assert(says("\"write\":4"));
}
END_TEST

START_TEST(cpus_that_never_ticked_are_left_out)
{
	counters[1] = (struct otp_cpu_counters){.ticks = 9, .taken = 8, .put = 7, .lost = {[0] = 1}};
	status_json(&status, &text);
	ck_assert(says("\"cpus\":[{\"cpu\":1,\"ticks\":9,\"taken\":8,\"put\":7,\"lost\":1}]"));
}
END_TEST

START_TEST(names_from_workers_are_escaped)
{
	snprintf(status.ledger.engine.top_name, sizeof(status.ledger.engine.top_name), "a\"b\\c\n\x1b\xc3");
	status_json(&status, &text);
	ck_assert(says("\"name\":\"a\\\"b\\\\c???\""));
	ck_assert(says("\"why\":\"a \\\"reason\\\"?\""));
	ck_assert(is_well_formed(buf_cstr(&text)));
}
END_TEST

START_TEST(sampling_begins_later_than_the_daemon)
{
	status_json(&status, &text);
	ck_assert(says("\"sampling\":false"));
	buf_reset(&text);
	status.sampling = true;
	status_json(&status, &text);
	ck_assert(says("\"sampling\":true"));
}
END_TEST

START_TEST(missed_is_what_did_not_tick)
{
	status.expected_ticks = 100;
	status.ledger.origin[0].ticks = 97;
	ck_assert_uint_eq(status_missed(&status), 3);
	status.ledger.origin[0].ticks = 101;
	ck_assert_uint_eq(status_missed(&status), 0);
}
END_TEST

/* Two CPUs: one is woken for its idle ticks, the other sleeps through them. */
START_TEST(a_tick_that_idle_cpus_sleep_through_is_not_missed)
{
	status.expected_ticks = 1000;
	status.ledger.origin[0].ticks = 600;
	status.ledger.origin[0].skip[OTP_SKIP_IDLE] = 100;
	status.idle_ticks = 490;
	ck_assert_uint_eq(status_missed(&status), 10);
	status.idle_ticks = 520;
	ck_assert_uint_eq(status_missed(&status), 0);
	/* More idle ticks came than the kernel's account has: nothing is added to what is missing. */
	status.idle_ticks = 50;
	ck_assert_uint_eq(status_missed(&status), 400);
}
END_TEST

START_TEST(missed_never_falls)
{
	status.expected_ticks = 100;
	status.ledger.origin[0].ticks = 97;
	status.missed_before = 5;
	ck_assert_uint_eq(status_missed(&status), 5);
}
END_TEST

START_TEST(prometheus_has_help_and_type_before_each_family)
{
	const char *line, *next;
	char family[64] = "";

	status_prometheus(&status, &text);
	for (line = buf_cstr(&text); *line; line = next) {
		next = strchr(line, '\n') + 1;
		if (!strncmp(line, "# TYPE ", 7))
			sscanf(line + 7, "%63s", family);
		else if (*line != '#')
			ck_assert_msg(!strncmp(line, family, strlen(family)) &&
					      strchr(" {", line[strlen(family)]), "%.60s after %s", line, family);
	}
	ck_assert(says("otprof_samples_lost_total{destination=\"disk\",origin=\"cpu-clock\",reason=\"write\"} 0\n"));
	ck_assert(says("otprof_ledger_balanced 1\n"));
	ck_assert(says("otprof_worker_restarts_total{worker=\"engine\"} 1\n"));
}
END_TEST

START_TEST(selection_is_shown_as_long_as_it_is_in_force)
{
	struct selection_shown shown = {.what = {.targets = "exe:\"a", .nr_targets = 1, .hz = 49}, .until_ns = 9000000};

	status.selection = &shown;
	status_json(&status, &text);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&text), "\"selection\":{\"on\":false}"));
	shown.since_ns = 5000000;
	buf_reset(&text);
	status_json(&status, &text);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&text), "\"targets\":\"exe:\\\"a\",\"frequency_hz\":49"));
	ck_assert_ptr_nonnull(strstr(buf_cstr(&text), "\"until_ms\":9"));
	buf_reset(&text);
	status_prometheus(&status, &text);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&text), "\notprof_selection_active 1\n"));
}
END_TEST

START_TEST(seconds_have_nine_decimals)
{
	status.cost.monitor_cpu_ns = 1500000001;
	status_prometheus(&status, &text);
	ck_assert(says("otprof_cpu_seconds_total{process=\"monitor\"} 1.500000001\n"));
}
END_TEST

START_TEST(guard_and_tick_have_their_figures)
{
	static struct guard guard;

	guard = (struct guard){.limits.cpu_permyriad = 400,
			       .cpu = {.share = 123, .files_share = 5, .credit_ns = 2500 * NSEC_PER_MSEC}};
	status.guard.state = &guard;
	status.cost.kernel_limit_ns = 50000;
	status.cost.kernel_limit_bytes = 24000;
	status.cost.files_cpu_ns = 7 * NSEC_PER_SEC;
	status_json(&status, &text);
	ck_assert(says("\"kernel_limit_ns\":50000,\"kernel_limit_bytes\":24000,"));
	ck_assert(says("\"files_cpu_ns\":7000000000,"));
	ck_assert(says("\"cpu_permyriad\":123,\"files_permyriad\":5,\"credit_ns\":2500000000,"));
	buf_reset(&text);
	status_prometheus(&status, &text);
	ck_assert(says("otprof_tick_copy_limit_seconds 0.000050000\n"));
	ck_assert(says("otprof_tick_copy_limit_bytes 24000\n"));
	ck_assert(says("otprof_files_cpu_seconds_total 7.000000000\n"));
	ck_assert(says("otprof_guard_cpu_limit_ratio 0.0400\n"));
	ck_assert(says("otprof_guard_cpu_ratio 0.0123\n"));
	ck_assert(says("otprof_guard_files_ratio 0.0005\n"));
	ck_assert(says("otprof_guard_credit_seconds 2.500000000\n"));
}
END_TEST

START_TEST(decoders_have_their_figures)
{
	status.ledger.engine = (struct ledger_engine){.decoders_live = 2, .decoders_waiting = 3, .decoders_started = 40,
					     .decoders_late = 5, .decoders_died = 6, .functions_decoded = 70,
					     .functions_failed = 8,
					     .line_files = {[RUNTIME_LINES_READ] = 9, [RUNTIME_LINES_TOO_MANY] = 10}};
	status_json(&status, &text);
	ck_assert(says("\"decoders\":{\"live\":2,\"waiting\":3,\"started\":40,\"late\":5,\"died\":6,\"functions\":70,"
		       "\"functions_failed\":8,\"line_files\":{\"read\":9,\"missing\":0,"));
	ck_assert(says("\"too_many\":10}}"));
	buf_reset(&text);
	status_prometheus(&status, &text);
	ck_assert(says("otprof_decoders 2\n"));
	ck_assert(says("otprof_decoders_waiting 3\n"));
	ck_assert(says("otprof_decoders_started_total 40\n"));
	ck_assert(says("otprof_decoders_late_total 5\n"));
	ck_assert(says("otprof_decoders_died_total 6\n"));
	ck_assert(says("otprof_functions_decoded_total 70\n"));
	ck_assert(says("otprof_functions_failed_total 8\n"));
	ck_assert(says("otprof_line_files_total{result=\"read\"} 9\n"));
	ck_assert(says("otprof_line_files_total{result=\"too_many\"} 10\n"));
}
END_TEST

START_TEST(debt_is_no_credit_and_no_limit_is_no_figure)
{
	static struct guard guard;

	guard = (struct guard){.limits.cpu_permyriad = 400, .cpu.credit_ns = -1};
	status.guard.state = &guard;
	status_json(&status, &text);
	ck_assert(says("\"credit_ns\":0,"));
	buf_reset(&text);
	status_prometheus(&status, &text);
	ck_assert(says("otprof_guard_credit_seconds 0.000000000\n"));
	buf_reset(&text);
	guard.limits.cpu_permyriad = 0;
	status_prometheus(&status, &text);
	ck_assert(!says("otprof_guard_c"));
	ck_assert(says("otprof_guard_level{cause=\"cpu\"} 0\n"));
}
END_TEST

START_TEST(workloads_stand_in_order_with_their_sources_and_are_escaped)
{
	struct ledger_workload *w = status.ledger.engine.workloads;

	snprintf(w[0].service, sizeof(w[0].service), "idle");
	memset(w[3].service, 'x', sizeof(w[3].service)); /* of an engine that forgot the NUL */
	snprintf(w[5].service, sizeof(w[5].service), "a\"b\n");
	w[3].recent = 5;
	w[5].recent = 9;
	w[5].quality = (struct ledger_quality){.stacks = 7, .stacks_root = 6, .cut = {[UNWIND_SHORT] = 1},
					       .frames = 20, .by = {[NAME_PLT] = 19, [NAME_RAW] = 1}};
	status_json(&status, &text);
	ck_assert(says("\"workloads\":[{\"service\":\"a\\\"b?\",\"executable\":\"\",\"stacks\":7,\"complete\":6,"
		       "\"cut\":{\"short\":1},\"frames\":20,\"frames_named\":19,"));
	ck_assert(says("\"service\":\"idle\""));
	ck_assert(is_well_formed(buf_cstr(&text)));
	buf_reset(&text);
	status_prometheus(&status, &text);
	ck_assert(says("otprof_workload_stacks_total{service=\"a\\\"b?\",executable=\"\",end=\"short\"} 1\n"));
	ck_assert(says("otprof_workload_frames_total{service=\"a\\\"b?\",executable=\"\",source=\"plt\"} 19\n"));
}
END_TEST

Suite *status_suite(void)
{
	Suite *s = suite_create("status");
	TCase *t = tcase_create("texts");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, json_is_well_formed);
	tcase_add_test(t, json_has_every_reason_and_destination);
	tcase_add_test(t, sampling_begins_later_than_the_daemon);
	tcase_add_test(t, each_origin_has_its_own_figures);
	tcase_add_test(t, each_origin_has_its_equation_at_each_destination);
	tcase_add_test(t, cpus_that_never_ticked_are_left_out);
	tcase_add_test(t, names_from_workers_are_escaped);
	tcase_add_test(t, missed_is_what_did_not_tick);
	tcase_add_test(t, a_tick_that_idle_cpus_sleep_through_is_not_missed);
	tcase_add_test(t, missed_never_falls);
	tcase_add_test(t, prometheus_has_help_and_type_before_each_family);
	tcase_add_test(t, workloads_stand_in_order_with_their_sources_and_are_escaped);
	tcase_add_test(t, selection_is_shown_as_long_as_it_is_in_force);
	tcase_add_test(t, seconds_have_nine_decimals);
	tcase_add_test(t, guard_and_tick_have_their_figures);
	tcase_add_test(t, decoders_have_their_figures);
	tcase_add_test(t, debt_is_no_credit_and_no_limit_is_no_figure);
	suite_add_tcase(s, t);
	return s;
}
