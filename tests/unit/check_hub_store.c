// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "hub/store.h"
#include "hub_fixture.h"

Suite *hub_store_suite(void);

static struct store *store;

static void setup(void)
{
	ck_assert_int_eq(store_new(&hub_limits_default, &store), 0);
}

static void teardown(void)
{
	store = store_free(store);
}

static const struct hf_stack three[] = {{"main;work", 2}, {"main;idle", 1}};

static struct hf_request request_of(const char *service)
{
	return (struct hf_request){.attributes = {{"service.name", service}}, .stacks = three, .n = 2,
				   .start_ns = HF_START, .duration_ns = HF_STEP};
}

static int take(const struct hf_request *q)
{
	_cleanup_(buf_done) struct buf b = {0};

	hf_encode(q, &b);
	return store_take(store, b.data, b.len, &hf_limits, q->start_ns + q->duration_ns);
}

static struct workload *only_workload(void)
{
	ck_assert_uint_eq(store->count, 1);
	return store->list[0];
}

static struct workload *find_name(const char *name)
{
	for (uint32_t i = 0; i < store->count; i++)
		if (strcmp(store->list[i]->name, name) == 0)
			return store->list[i];
	ck_abort_msg("no workload %s", name);
	return NULL;
}

static void assert_balanced(void)
{
	struct store_counts c;

	store_counts(store, &c);
	ck_assert_uint_eq(c.slots.taken, c.slots.kept + c.slots.folded + c.slots.evicted + c.slots.refused);
}

/* What attributes make which workload. */
static const struct {
	const char *attributes[8][2], *executable;
	enum workload_kind kind;
	const char *name, *namespace, *host;
} identities[] = {
	{{{"service.name", "nginx"}, {"otprof.systemd.unit", "nginx.service"}, {"process.executable.name", "nginx"},
	  {"host.name", "a"}}, NULL, WORKLOAD_UNIT, "nginx.service", "", "a"},
	{{{"service.name", "gcc"}, {"otprof.systemd.unit", "session-3.scope"}, {"process.executable.name", "cc1"}},
	 NULL, WORKLOAD_EXECUTABLE, "gcc", "", ""},
	{{{"service.name", "bash"}, {"otprof.systemd.unit", "user@1000.service"}, {"process.executable.name", "bash"}},
	 NULL, WORKLOAD_EXECUTABLE, "bash", "", ""},
	{{{"container.id", "0123456789abcdef0123456789abcdef"}, {"service.name", "x"}}, NULL, WORKLOAD_CONTAINER,
	 "0123456789ab", "", ""},
	{{{"container.id", "0123456789abcdef"}, {"container.name", "redis"}}, NULL, WORKLOAD_CONTAINER, "redis", "", ""},
	{{{"k8s.namespace.name", "shop"}, {"k8s.deployment.name", "cart"}, {"k8s.pod.name", "cart-1"}, {"host.name", "a"}},
	 NULL, WORKLOAD_KUBERNETES, "deployment/cart", "shop", ""},
	{{{"k8s.namespace.name", "shop"}, {"odigos.workload.kind", "DaemonSet"}, {"odigos.workload.name", "agent"}},
	 NULL, WORKLOAD_KUBERNETES, "DaemonSet/agent", "shop", ""},
	{{{"service.name", "kernel"}, {"process.executable.name", "[kernel]"}}, NULL, WORKLOAD_KERNEL, "kernel", "", ""},
	{{{"host.name", "a"}}, "redis-server", WORKLOAD_EXECUTABLE, "redis-server", "", "a"},
	{{{"service.name", "shop"}}, "redis-server", WORKLOAD_SERVICE, "shop", "", ""},
	{{{NULL, NULL}}, NULL, WORKLOAD_SERVICE, "unknown", "", ""},
};

START_TEST(store_names_workloads_by_their_attributes)
{
	struct hf_request q = request_of(NULL);
	struct workload *w;

	memcpy(q.attributes, identities[_i].attributes, sizeof(q.attributes));
	q.executable = identities[_i].executable;
	ck_assert_int_eq(take(&q), 0);
	w = only_workload();
	ck_assert_str_eq(w->name, identities[_i].name);
	ck_assert_int_eq(w->kind, identities[_i].kind);
	ck_assert_str_eq(w->namespace, identities[_i].namespace);
	ck_assert_str_eq(w->host, identities[_i].host);
	ck_assert_ptr_eq(store_find(store, w->id), w);
}
END_TEST

START_TEST(store_gives_a_workload_the_same_id_after_a_restart)
{
	struct hf_request q = request_of("app");
	uint64_t id;

	ck_assert_int_eq(take(&q), 0);
	id = only_workload()->id;
	teardown();
	setup();
	hash_seed++;
	ck_assert_int_eq(take(&q), 0);
	ck_assert_uint_eq(only_workload()->id, id);
}
END_TEST

START_TEST(store_keeps_samples_only_where_somebody_looks)
{
	struct hf_request q = request_of("app");
	const struct gone *evicted;
	struct store_counts c;
	struct workload *w;

	ck_assert_int_eq(take(&q), 0);
	w = only_workload();
	ck_assert_ptr_null(w->slot);
	ck_assert_int_eq(store_open(store, w, HF_START, &evicted), 1);
	ck_assert_int_eq(store_open(store, w, HF_START, &evicted), 0);
	ck_assert_int_eq(take(&q), 0);
	ck_assert_uint_eq(w->slot->counts.kept, 3);
	store_counts(store, &c);
	ck_assert_uint_eq(c.unwatched, 3);
	ck_assert_uint_eq(c.slots.taken, 3);
	ck_assert_uint_eq(c.requests, 2);
	ck_assert_uint_eq(w->slot->seq, store->seq);
	store_close(store, w, GONE_CLOSED, HF_START);
	store_counts(store, &c);
	ck_assert_uint_eq(c.slots.evicted, 3);
	assert_balanced();
	ck_assert(w->was_gone);
	ck_assert_int_eq(w->gone.reason, GONE_CLOSED);
}
END_TEST

START_TEST(store_evicts_the_slot_that_was_requested_least_recently)
{
	struct hub_limits l = hub_limits_default;
	const struct gone *evicted;
	struct workload *a, *b, *c;
	struct hf_request q[] = {request_of("a"), request_of("b"), request_of("c")};

	l.max_slots = 2;
	store_set_limits(store, &l, HF_START);
	for (size_t i = 0; i < ARRAY_SIZE(q); i++)
		ck_assert_int_eq(take(&q[i]), 0);
	a = find_name("a");
	b = find_name("b");
	c = find_name("c");
	ck_assert_int_eq(store_open(store, a, HF_START, &evicted), 1);
	ck_assert_int_eq(store_open(store, b, HF_START, &evicted), 1);
	ck_assert_ptr_null(evicted);
	store_touch(a, HF_START);
	ck_assert_int_eq(store_open(store, c, HF_START, &evicted), 1);
	ck_assert_ptr_nonnull(evicted);
	ck_assert_str_eq(evicted->name, "b");
	ck_assert_int_eq(evicted->reason, GONE_EVICTED);
	ck_assert_ptr_null(b->slot);
	ck_assert_uint_eq(store->nr_slots, 2);
	/* One that is watched goes last. */
	a->streams = 1;
	store_touch(c, HF_START);
	ck_assert_int_eq(store_open(store, b, HF_START, &evicted), 1);
	ck_assert_str_eq(evicted->name, "c");
	a->streams = 0;
	l.max_slots = 1;
	store_set_limits(store, &l, HF_START);
	ck_assert_uint_eq(store->nr_slots, 1);
	ck_assert_ptr_nonnull(b->slot);
	ck_assert_uint_eq(store->nr_gone, 3);
}
END_TEST

START_TEST(store_closes_slots_that_nobody_asked_for)
{
	struct hf_request q = request_of("app");
	const struct gone *evicted;
	struct workload *w;

	ck_assert_int_eq(take(&q), 0);
	w = only_workload();
	ck_assert_int_eq(store_open(store, w, HF_START, &evicted), 1);
	w->requested_boot_ns -= 119 * NSEC_PER_SEC;
	store_sweep(store, HF_START);
	ck_assert_ptr_nonnull(w->slot);
	w->requested_boot_ns -= 2 * NSEC_PER_SEC;
	w->streams = 1;
	store_sweep(store, HF_START);
	ck_assert_ptr_nonnull(w->slot);
	w->streams = 0;
	store_sweep(store, HF_START);
	ck_assert_ptr_null(w->slot);
	ck_assert_int_eq(w->gone.reason, GONE_EXPIRED);
	ck_assert_str_eq(store->gone[0].name, "app");
}
END_TEST

START_TEST(store_forgets_workloads_without_samples)
{
	struct hf_request a = request_of("a"), b = request_of("b");
	const struct gone *evicted;

	ck_assert_int_eq(take(&a), 0);
	ck_assert_int_eq(take(&b), 0);
	ck_assert_int_eq(store_open(store, find_name("b"), HF_START, &evicted), 1);
	store_sweep(store, HF_START + HF_STEP + STORE_WINDOW_NS);
	ck_assert_uint_eq(store->count, 2);
	store_sweep(store, HF_START + HF_STEP + STORE_WINDOW_NS + 1);
	ck_assert_str_eq(only_workload()->name, "b");
	ck_assert_ptr_eq(store_find(store, store->list[0]->id), store->list[0]);
	ck_assert_uint_eq(store->list[0]->index, 0);
}
END_TEST

START_TEST(store_counts_workloads_beyond_its_bound)
{
	struct store_counts c;
	char name[32];

	for (uint32_t i = 0; i < STORE_WORKLOADS + 5; i++) {
		struct hf_request q = request_of(name);

		snprintf(name, sizeof(name), "s%u", i);
		ck_assert_int_eq(take(&q), 0);
	}
	ck_assert_uint_eq(store->count, STORE_WORKLOADS);
	store_counts(store, &c);
	ck_assert_uint_eq(c.unwatched, 3 * (STORE_WORKLOADS + 5));
}
END_TEST

START_TEST(store_refuses_a_request_whole)
{
	struct hf_request q = request_of("app");
	struct store_counts c;
	struct buf b = {0};

	hf_encode(&q, &b);
	ck_assert_int_eq(store_take(store, b.data, b.len - 3, &hf_limits, HF_START), -EBADMSG);
	ck_assert_int_eq(store_take(store, "", 0, &hf_limits, HF_START), 0);
	ck_assert_uint_eq(store->count, 0);
	store_counts(store, &c);
	ck_assert_uint_eq(c.rejected, 1);
	ck_assert_uint_eq(c.requests, 1);
	buf_done(&b);
}
END_TEST

START_TEST(store_tells_rate_and_cpus)
{
	uint64_t spark[SPARK_STEPS], sum = 0;
	struct workload *w;
	double rate, cpus;

	for (uint64_t i = 0; i < 12; i++) {
		struct hf_request q = request_of("app");

		q.start_ns = ALIGN_DOWN(HF_START, 1u) + i * HF_STEP + HF_STEP / 3;
		ck_assert_int_eq(take(&q), 0);
	}
	w = only_workload();
	/* 3 samples in 5 s, each 50 ms of CPU time: 0.6 a second, 0.03 CPUs. */
	workload_rate(store, w, HF_START + 12 * HF_STEP + HF_STEP / 3, &rate, &cpus);
	ck_assert_msg(rate > 0.5 && rate < 0.65, "%f", rate);
	ck_assert_msg(cpus > 0.025 && cpus < 0.0325, "%f", cpus);
	workload_spark(w, HF_START + 14 * HF_STEP, spark);
	for (size_t i = 0; i < SPARK_STEPS; i++)
		sum += spark[i];
	ck_assert_uint_eq(sum, 36);
	ck_assert_uint_eq(spark[SPARK_STEPS - 1], 0);
	ck_assert_uint_eq(w->kinds[KIND_NATIVE], 36);
}
END_TEST

Suite *hub_store_suite(void)
{
	Suite *s = suite_create("hub_store");
	TCase *t = tcase_create("store");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, store_names_workloads_by_their_attributes, 0, ARRAY_SIZE(identities));
	tcase_add_test(t, store_gives_a_workload_the_same_id_after_a_restart);
	tcase_add_test(t, store_keeps_samples_only_where_somebody_looks);
	tcase_add_test(t, store_evicts_the_slot_that_was_requested_least_recently);
	tcase_add_test(t, store_closes_slots_that_nobody_asked_for);
	tcase_add_test(t, store_forgets_workloads_without_samples);
	tcase_add_test(t, store_counts_workloads_beyond_its_bound);
	tcase_add_test(t, store_refuses_a_request_whole);
	tcase_add_test(t, store_tells_rate_and_cpus);
	suite_add_tcase(s, t);
	return s;
}
