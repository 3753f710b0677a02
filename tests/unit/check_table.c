// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "process/table.h"

Suite *table_suite(void);

/* A host that notes what it is asked and answers when the test says so. */
#define ASKED_MAX 512

struct asked {
	struct host_request req;
	char path[256];
	host_answer_fn *fn;
	void *ctx;
};

struct fake {
	struct host h;
	struct asked asked[ASKED_MAX];
	int count;
	int busy;      /* refuse so many */
	uint64_t busy_group; /* refuse this one's */
	bool at_once;  /* answer -ESRCH within the call */
};

static struct fake fake;
static struct process_table *table;
static int settled_files, settled_processes;
static uint64_t now;
static uint64_t born; /* time of the last fork */

static int fake_ask(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	struct fake *f = (struct fake *)h;
	struct asked *a = &f->asked[f->count];

	if (f->busy > 0) {
		f->busy--;
		return -EBUSY;
	}
	if (f->busy_group && req->group == f->busy_group)
		return -EBUSY;
	ck_assert_int_lt(f->count, ASKED_MAX);
	f->count++;
	*a = (struct asked){.req = *req, .fn = fn, .ctx = ctx};
	if (req->path)
		strncpy(a->path, req->path, sizeof(a->path) - 1);
	if (f->at_once) {
		a->fn = NULL;
		fn(ctx, -ESRCH, -1, NULL, 0);
	}
	return 0;
}

static void fake_cancel(struct host *h, void *ctx)
{
	struct fake *f = (struct fake *)h;

	for (int i = 0; i < f->count; i++)
		if (f->asked[i].ctx == ctx)
			f->asked[i].fn = NULL;
}

static const struct host_ops fake_ops = {.ask = fake_ask, .cancel = fake_cancel};

static void answer(int i, int err, int fd, const void *data, size_t len)
{
	host_answer_fn *fn = fake.asked[i].fn;

	ck_assert_ptr_nonnull(fn);
	fake.asked[i].fn = NULL;
	fn(fake.asked[i].ctx, err, fd, data, len);
}

/* Index of the newest open question of this kind about pid, or -1. */
static int open_question(uint32_t kind, uint32_t pid)
{
	for (int i = fake.count - 1; i >= 0; i--)
		if (fake.asked[i].fn && fake.asked[i].req.kind == kind && fake.asked[i].req.pid == pid)
			return i;
	return -1;
}

static int asked_of(uint32_t kind)
{
	int n = 0;

	for (int i = 0; i < fake.count; i++)
		n += fake.asked[i].req.kind == kind;
	return n;
}

static void on_file(void *ctx, struct mapped_file *f)
{
	settled_files++;
}

static void on_process(void *ctx, struct process *p)
{
	settled_processes++;
}

static void make_table(struct process_limits limits)
{
	struct process_table_config cfg = {.limits = limits, .host = &fake.h, .file_settled = on_file,
					   .process_settled = on_process};

	memset(&fake, 0, sizeof(fake));
	fake.h.ops = &fake_ops;
	settled_files = settled_processes = 0;
	now = 100 * NSEC_PER_SEC;
	ck_assert_int_eq(table_new(&cfg, &table), 0);
}

static void setup(void)
{
	make_table((struct process_limits){0});
}

static void teardown(void)
{
	table = table_free(table);
	for (int i = 0; i < fake.count; i++)
		ck_assert_ptr_null(fake.asked[i].fn); /* answered or cancelled */
}

/* Events and samples, a microsecond apart. */

static uint64_t tick(void)
{
	return now += NSEC_PER_USEC;
}

static void forked(uint32_t pid, uint32_t ppid)
{
	table_apply(table, &(struct proc_event){.type = PROC_FORK, .pid = pid, .tid = pid, .ppid = ppid, .ptid = ppid,
						.time_ns = born = tick()});
}

static void execed(uint32_t pid, const char *comm)
{
	table_apply(table, &(struct proc_event){.type = PROC_EXEC, .pid = pid, .tid = pid, .time_ns = tick(),
						.name = comm, .name_len = strlen(comm)});
}

static void exited(uint32_t pid, uint32_t tid)
{
	table_apply(table, &(struct proc_event){.type = PROC_EXIT, .pid = pid, .tid = tid, .time_ns = tick()});
}

static void mapped(uint32_t pid, uint64_t start, uint64_t end, const char *name, uint8_t build_id)
{
	struct proc_event ev = {.type = PROC_MMAP, .pid = pid, .tid = pid, .time_ns = tick(), .start = start,
				.end = end, .name = name, .name_len = strlen(name)};

	if (build_id) {
		ev.build_id_len = 20;
		memset(ev.build_id, build_id, 20);
	}
	table_apply(table, &ev);
}

static void lost(uint64_t n)
{
	table_apply(table, &(struct proc_event){.type = PROC_LOST, .lost = n, .time_ns = tick()});
}

static struct process *sampled_as(uint32_t pid, uint64_t start_ns, uint64_t exec_id, uint64_t cgroup, uint32_t mode)
{
	struct otp_sample s = {.time_ns = tick(), .pid = pid, .tid = pid, .start_ns = start_ns, .exec_id = exec_id,
			       .cgroup_id = cgroup, .mode = mode, .ppid = 1, .comm = "sampled"};

	return table_find(table, &s);
}

static struct process *sampled(uint32_t pid)
{
	return sampled_as(pid, 50 * NSEC_PER_SEC, 3, 7, 0);
}

static void identity_text(struct buf *b, uint64_t start_ns, const char *exe, const char *cgroup, const char *env)
{
	const char *const texts[HOST_TEXT_NR] = {exe, exe, cgroup, env, "Name:\tnamed\n", ""};
	struct host_identity_text head = {.start_ns = start_ns, .ppid = 1};

	for (int i = 0; i < HOST_TEXT_NR; i++)
		head.len[i] = (uint32_t)strlen(texts[i]);
	buf_add(b, &head, sizeof(head));
	for (int i = 0; i < HOST_TEXT_NR; i++)
		buf_add_str(b, texts[i]);
}

static void answer_identity(uint32_t pid, uint64_t start_ns, const char *exe, const char *cgroup, const char *env)
{
	struct buf b = {0};

	identity_text(&b, start_ns, exe, cgroup, env);
	answer(open_question(HOST_READ_IDENTITY, pid), 0, -1, b.data, b.len);
	buf_done(&b);
}

static void answer_maps(uint32_t pid, const char *text)
{
	answer(open_question(HOST_READ_MAPS, pid), 0, -1, text, strlen(text));
}

static const char *path_at(const struct process *p, uint64_t pc)
{
	const struct mapping *m = space_find(p->space, pc);

	return m ? m->file->path->s : NULL;
}

static const char *attribute(const struct process *p, const char *key)
{
	const struct str *s = workload_attribute(p->workload, key);

	return s ? s->s : NULL;
}

#define MAPS_A "10000-20000 r-xp 00000000 08:01 11 /bin/a\n20000-30000 rw-p 00010000 08:01 11 /bin/a\n"
#define MAPS_B "10000-20000 r-xp 00000000 08:01 12 /bin/b\n"

/* Unknown processes. */

START_TEST(an_unknown_process_is_asked_about_once)
{
	struct process *p = sampled(10);

	ck_assert_ptr_nonnull(p);
	ck_assert(!p->maps_known && p->maps_pending && p->identity_pending);
	ck_assert_str_eq(p->workload->service->s, "sampled");
	for (int i = 0; i < 100; i++)
		ck_assert_ptr_eq(sampled(10), p);
	ck_assert_int_eq(fake.count, 2);
	answer_maps(10, MAPS_A);
	answer_identity(10, 50 * NSEC_PER_SEC, "/bin/a", "0::/system.slice/x.service\n", "");
	ck_assert(p->maps_known && p->identity_known && !p->maps_pending && !p->identity_pending);
	ck_assert_str_eq(path_at(p, 0x10000), "/bin/a");
	ck_assert_ptr_null(path_at(p, 0x20000)); /* no code */
	ck_assert_str_eq(p->workload->service->s, "x");
	ck_assert_str_eq(p->exe->s, "a");
	ck_assert_int_eq(settled_processes, 2);
}
END_TEST

START_TEST(a_process_that_is_gone_is_not_asked_about_again)
{
	struct process *p = sampled(10);

	/* Another process with its pid is not asked either. */
	ck_assert_uint_eq(fake.asked[open_question(HOST_READ_MAPS, 10)].req.pid_start_ns, 50 * NSEC_PER_SEC);
	ck_assert_uint_eq(fake.asked[open_question(HOST_READ_IDENTITY, 10)].req.pid_start_ns, 50 * NSEC_PER_SEC);
	answer(open_question(HOST_READ_MAPS, 10), -ESRCH, -1, NULL, 0);
	answer(open_question(HOST_READ_IDENTITY, 10), -ESRCH, -1, NULL, 0);
	now += 10 * NSEC_PER_SEC;
	ck_assert_ptr_eq(sampled(10), p);
	ck_assert(!table_uncovered(table, p, 0x10000, now));
	ck_assert_int_eq(fake.count, 2);
	ck_assert_str_eq(p->workload->service->s, "sampled");
}
END_TEST

START_TEST(an_opener_that_was_late_is_asked_again_later)
{
	struct process *p = sampled(10);

	answer(open_question(HOST_READ_IDENTITY, 10), -ETIMEDOUT, -1, NULL, 0);
	sampled(10);
	ck_assert_int_eq(asked_of(HOST_READ_IDENTITY), 1);
	now += 3 * NSEC_PER_SEC;
	sampled(10);
	ck_assert_int_eq(asked_of(HOST_READ_IDENTITY), 2);
	answer_identity(10, 0, "/bin/a", "", "");
	ck_assert(p->identity_known);
}
END_TEST

START_TEST(a_busy_host_is_asked_with_the_next_sample)
{
	struct process *p;

	fake.busy = 2;
	p = sampled(10);
	ck_assert(!p->maps_pending && !p->identity_pending);
	sampled(10);
	ck_assert(p->maps_pending && p->identity_pending);
}
END_TEST

START_TEST(an_answer_about_a_reused_pid_is_refused)
{
	struct process *p = sampled(10);

	answer_identity(10, 60 * NSEC_PER_SEC, "/bin/other", "", "");
	ck_assert(!p->identity_known);
	ck_assert_str_eq(p->workload->service->s, "sampled");
}
END_TEST

START_TEST(interrupts_on_an_idle_cpu_are_a_service_of_their_own)
{
	struct process *p = sampled_as(0, 0, 0, 0, OTP_MODE_KERNEL | OTP_MODE_KTHREAD);

	ck_assert(p->kernel);
	ck_assert_str_eq(p->workload->service->s, "kernel (interrupts)");
	ck_assert_ptr_eq(sampled_as(0, 0, 0, 0, OTP_MODE_KERNEL | OTP_MODE_KTHREAD), p);
	ck_assert_int_eq(fake.count, 0);
	ck_assert_int_eq(table_set_resource(table, NULL, 0), 0);
	ck_assert_str_eq(p->workload->service->s, "kernel (interrupts)");
}
END_TEST

START_TEST(a_kernel_thread_is_asked_nothing)
{
	struct process *p = sampled_as(5, 1, 0, 1, OTP_MODE_KERNEL | OTP_MODE_KTHREAD);

	ck_assert(p->kernel);
	ck_assert_str_eq(p->workload->service->s, "kernel");
	forked(6, 5);
	ck_assert_str_eq(sampled_as(6, born, 0, 1, OTP_MODE_KERNEL | OTP_MODE_KTHREAD)->workload->service->s, "kernel");
	ck_assert_int_eq(fake.count, 0);
	/* A usermode helper stops being one. */
	execed(6, "modprobe");
	ck_assert_str_eq(sampled_as(6, born, 1, 1, 0)->workload->service->s, "modprobe");
}
END_TEST

/* Fork, exec, exit. */

static struct process *known_process(uint32_t pid)
{
	struct process *p = sampled(pid);

	answer_maps(pid, MAPS_A);
	answer_identity(pid, 0, "/bin/a", "0::/system.slice/x.service\n", "OTEL_RESOURCE_ATTRIBUTES=team=red");
	return p;
}

START_TEST(a_child_has_what_its_parent_had)
{
	struct process *p = known_process(10), *child;

	forked(11, 10);
	child = sampled_as(11, born, 3, 7, 0);
	p = table_peek(table, 10);
	ck_assert_ptr_eq(child->space, p->space);
	ck_assert_ptr_eq(child->workload, p->workload);
	ck_assert(child->identity_known && child->maps_known);
	ck_assert_uint_eq(child->ppid, 1);
	ck_assert_int_eq(fake.count, 2);
	/* Copied on write. */
	mapped(11, 0x50000, 0x60000, "/lib/c", 0);
	ck_assert_ptr_null(path_at(p, 0x50000));
	ck_assert_str_eq(path_at(child, 0x50000), "/lib/c");
}
END_TEST

START_TEST(exec_begins_anew_and_needs_no_maps)
{
	struct process *p;

	known_process(10);
	forked(11, 10);
	execed(11, "redis-server");
	mapped(11, 0x400000, 0x500000, "/usr/bin/redis-check-rdb", 1);
	mapped(11, 0x700000, 0x800000, "/lib/ld.so", 2);
	p = sampled_as(11, born, 4, 7, 0);
	ck_assert(p->maps_known && !p->maps_pending);
	ck_assert_ptr_null(path_at(p, 0x10000));
	ck_assert_str_eq(path_at(p, 0x700000), "/lib/ld.so");
	ck_assert_str_eq(p->exe->s, "redis-server");
	/* Until its identity is read: cgroup and variables of its parent. */
	ck_assert_str_eq(p->workload->service->s, "x");
	ck_assert_str_eq(attribute(p, "process.executable.name"), "redis-server");
	ck_assert_str_eq(attribute(p, "team"), "red");
	ck_assert(p->identity_pending);
	answer(open_question(HOST_READ_IDENTITY, 11), -ESRCH, -1, NULL, 0);
	ck_assert_str_eq(p->workload->service->s, "x");
	ck_assert_int_eq(asked_of(HOST_READ_MAPS), 1);
}
END_TEST

START_TEST(a_script_has_its_own_name_before_anybody_reads_it)
{
	forked(11, 10);
	execed(11, "job.sh");
	mapped(11, 0x400000, 0x500000, "/usr/bin/dash", 1);
	ck_assert_str_eq(sampled_as(11, born, 1, 7, 0)->workload->service->s, "job.sh");
}
END_TEST

START_TEST(an_exec_that_was_lost_shows_by_its_number)
{
	struct process *p = known_process(10);

	p = sampled_as(10, 50 * NSEC_PER_SEC, 4, 7, 0);
	ck_assert(!p->maps_known && !p->identity_known);
	ck_assert_ptr_null(path_at(p, 0x10000));
	now += NSEC_PER_SEC;
	p = sampled_as(10, 50 * NSEC_PER_SEC, 4, 7, 0);
	ck_assert(p->maps_pending);
	answer_maps(10, MAPS_B);
	ck_assert_str_eq(path_at(p, 0x10000), "/bin/b");
}
END_TEST

START_TEST(the_old_number_in_the_instant_of_exec_is_no_other_exec)
{
	struct process *p = known_process(10);

	execed(10, "b");
	mapped(10, 0x400000, 0x500000, "/bin/b", 1);
	p = sampled_as(10, 50 * NSEC_PER_SEC, 3, 7, 0);
	ck_assert_str_eq(path_at(p, 0x400000), "/bin/b");
	p = sampled_as(10, 50 * NSEC_PER_SEC, 4, 7, 0);
	ck_assert_str_eq(path_at(p, 0x400000), "/bin/b");
	ck_assert_int_eq(asked_of(HOST_READ_MAPS), 1);
}
END_TEST

START_TEST(the_same_holds_where_the_number_was_not_known)
{
	struct process *p;

	forked(11, 10);
	execed(11, "b");
	mapped(11, 0x400000, 0x500000, "/bin/b", 1);
	sampled_as(11, born, 0, 7, 0);
	p = sampled_as(11, born, 1, 7, 0);
	ck_assert_str_eq(path_at(p, 0x400000), "/bin/b");
	/* Later the next number is another exec. */
	now += NSEC_PER_SEC;
	p = sampled_as(11, born, 2, 7, 0);
	ck_assert_ptr_null(path_at(p, 0x400000));
}
END_TEST

START_TEST(a_reused_pid_is_another_process)
{
	struct process *p = known_process(10);

	p = sampled_as(10, 99 * NSEC_PER_SEC, 3, 7, 0);
	ck_assert_ptr_null(path_at(p, 0x10000));
	ck_assert(!p->identity_known);
	ck_assert_uint_eq(p->start_ns, 99 * NSEC_PER_SEC);
	forked(10, 1);
	ck_assert_uint_eq(table_peek(table, 10)->start_ns, 0);
	/* A fork long after the sample's start is not the sample's process. */
	p = sampled_as(10, 99 * NSEC_PER_SEC - 20 * NSEC_PER_SEC, 3, 7, 0);
	ck_assert_uint_eq(p->ppid, 1);
	ck_assert(!p->maps_known);
}
END_TEST

START_TEST(the_leader_s_exit_is_not_the_end_when_another_thread_execs)
{
	struct process *p;

	known_process(10);
	exited(10, 10);
	ck_assert_uint_ne(table_peek(table, 10)->exit_time_ns, 0);
	execed(10, "b");
	mapped(10, 0x400000, 0x500000, "/bin/b", 1);
	p = table_peek(table, 10);
	ck_assert_uint_eq(p->exit_time_ns, 0);
	ck_assert_str_eq(path_at(p, 0x400000), "/bin/b");
	now += 60 * NSEC_PER_SEC;
	table_tick(table, now);
	ck_assert_ptr_nonnull(table_peek(table, 10));
}
END_TEST

START_TEST(a_thread_that_outlives_its_leader_keeps_the_process)
{
	struct otp_sample s = {.pid = 10, .tid = 12, .start_ns = 50 * NSEC_PER_SEC, .exec_id = 3, .cgroup_id = 7};

	known_process(10);
	exited(10, 12);
	ck_assert_uint_eq(table_peek(table, 10)->exit_time_ns, 0);
	exited(10, 10);
	s.time_ns = tick();
	ck_assert_ptr_nonnull(table_find(table, &s));
	ck_assert_uint_eq(table_peek(table, 10)->exit_time_ns, 0);
}
END_TEST

START_TEST(the_dead_are_kept_for_a_while)
{
	known_process(10);
	forked(11, 10);
	exited(11, 11);
	exited(10, 10);
	/* Samples come after the EXIT of their process. */
	ck_assert_uint_eq(sampled_as(10, 50 * NSEC_PER_SEC, 3, 7, OTP_MODE_EXITING)->pid, 10);
	now += 2 * NSEC_PER_SEC;
	table_tick(table, now);
	ck_assert_ptr_nonnull(table_peek(table, 10));
	ck_assert_ptr_null(table_peek(table, 11)); /* nobody ever sampled it */
	now += 9 * NSEC_PER_SEC;
	table_tick(table, now);
	ck_assert_ptr_null(table_peek(table, 10));
}
END_TEST

START_TEST(threads_and_strangers_are_no_processes)
{
	table_apply(table, &(struct proc_event){.type = PROC_FORK, .pid = 10, .tid = 11, .ppid = 10, .ptid = 10});
	forked(0, 0);
	exited(99, 99);
	table_apply(table, &(struct proc_event){.type = PROC_COMM, .pid = 77, .tid = 77, .name = "x", .name_len = 1});
	execed(UINT32_MAX, "x");
	ck_assert_ptr_null(table_peek(table, 10));
	ck_assert_ptr_null(table_peek(table, 0));
	ck_assert_ptr_null(table_peek(table, 99));
	ck_assert_ptr_null(table_peek(table, 77));
	ck_assert_ptr_null(table_peek(table, UINT32_MAX));
}
END_TEST

START_TEST(a_process_that_moves_to_another_cgroup_is_asked_again)
{
	struct process *p = known_process(10);

	p = sampled_as(10, 50 * NSEC_PER_SEC, 3, 8, 0);
	ck_assert(p->identity_pending && !p->identity_known);
	ck_assert_str_eq(p->workload->service->s, "a"); /* the unit was the old cgroup's */
	ck_assert_str_eq(attribute(p, "team"), "red");
	answer_identity(10, 0, "/bin/a", "0::/system.slice/y.service\n", "");
	ck_assert_str_eq(p->workload->service->s, "y");
}
END_TEST

START_TEST(a_neighbour_in_the_cgroup_tells_where_a_dead_process_lived)
{
	struct process *p;

	known_process(10);
	forked(30, 29);
	execed(30, "short");
	p = sampled_as(30, born, 1, 7, 0);
	ck_assert_str_eq(p->workload->service->s, "x");
	ck_assert_str_eq(attribute(p, "process.executable.name"), "short");
	ck_assert_ptr_null(attribute(p, "team"));
}
END_TEST

START_TEST(the_root_cgroup_makes_nobody_neighbours)
{
	struct process *p;

	sampled_as(10, 50 * NSEC_PER_SEC, 3, 1, 0);
	answer_identity(10, 0, "/bin/a", "4:memory:/system.slice/x.service\n", "");
	forked(30, 29);
	execed(30, "short");
	p = sampled_as(30, born, 1, 1, 0);
	ck_assert_str_eq(p->workload->service->s, "short");
	ck_assert_ptr_null(attribute(p, "otprof.systemd.unit"));
}
END_TEST

/* Maps looked up again. */

START_TEST(an_uncovered_pc_is_looked_up_and_less_often_in_vain)
{
	struct process *p = known_process(10);
	int asked = 0;

	now += NSEC_PER_SEC;
	ck_assert(table_uncovered(table, p, 0x90000, now));
	ck_assert(table_uncovered(table, p, 0x90000, now)); /* under way already */
	ck_assert_int_eq(asked_of(HOST_READ_MAPS), 2);
	answer_maps(10, MAPS_A "90000-91000 r-xp 00000000 00:00 0 \n");
	ck_assert_str_eq(path_at(p, 0x90000), "//anon");
	for (int i = 0; i < 1000; i++) {
		now += 100 * NSEC_PER_MSEC;
		if (table_uncovered(table, p, 0xa0000, now)) {
			asked++;
			answer_maps(10, MAPS_A "90000-91000 r-xp 00000000 00:00 0 \n");
		}
	}
	ck_assert_int_ge(asked, 5);
	ck_assert_int_le(asked, 12);
	ck_assert(!table_uncovered(table, p, 0, now + NSEC_PER_SEC * 600));
	ck_assert(!table_uncovered(table, p, 0xffffffff81000000, now + NSEC_PER_SEC * 600));
}
END_TEST

START_TEST(rescans_of_all_processes_together_are_bounded)
{
	struct process_stats stats;
	int asked;

	for (uint32_t pid = 100; pid < 300; pid++) {
		forked(pid, 1);
		execed(pid, "x");
		sampled_as(pid, born, 1, 7, 0);
	}
	asked = asked_of(HOST_READ_MAPS);
	now += 10 * NSEC_PER_SEC;
	for (uint32_t pid = 100; pid < 300; pid++)
		table_uncovered(table, table_peek(table, pid), 0x5000, now);
	ck_assert_int_eq(asked_of(HOST_READ_MAPS) - asked, 50);
	table_stats(table, &stats);
	ck_assert_uint_eq(stats.rescans_denied, 150);
}
END_TEST

START_TEST(what_was_mapped_since_the_question_wins_over_the_answer)
{
	struct process *p = known_process(10);

	now += NSEC_PER_SEC;
	ck_assert(table_uncovered(table, p, 0x90000, now));
	mapped(10, 0x10000, 0x18000, "/lib/new", 5);
	answer_maps(10, MAPS_A "90000-91000 r-xp 00000000 08:01 13 /lib/late\n");
	ck_assert_str_eq(path_at(p, 0x10000), "/lib/new");
	ck_assert_str_eq(path_at(p, 0x18000), "/bin/a");
	ck_assert_str_eq(path_at(p, 0x90000), "/lib/late");
}
END_TEST

START_TEST(an_answer_from_before_an_exec_is_dropped)
{
	struct process *p = known_process(10);
	int i;

	now += NSEC_PER_SEC;
	table_uncovered(table, p, 0x90000, now);
	i = open_question(HOST_READ_MAPS, 10);
	execed(10, "b");
	ck_assert_ptr_null(fake.asked[i].fn);
	ck_assert(!p->maps_pending);
}
END_TEST

START_TEST(the_same_file_told_by_both_is_one)
{
	struct process *p;
	const struct mapped_file *f;

	execed(10, "a");
	mapped(10, 0x10000, 0x20000, "/bin/a", 9);
	p = sampled(10);
	f = space_find(p->space, 0x10000)->file;
	now += NSEC_PER_SEC;
	table_uncovered(table, p, 0x90000, now);
	answer_maps(10, MAPS_A);
	ck_assert_ptr_eq(space_find(p->space, 0x10000)->file, f);
}
END_TEST

START_TEST(a_lost_record_makes_sampled_processes_looked_at_again)
{
	struct process_stats stats;

	known_process(10);
	known_process(20);
	now += NSEC_PER_SEC;
	lost(3);
	ck_assert_int_eq(asked_of(HOST_READ_MAPS), 2);
	sampled(10);
	ck_assert_int_eq(asked_of(HOST_READ_MAPS), 3);
	sampled(10);
	ck_assert_int_eq(asked_of(HOST_READ_MAPS), 3);
	answer_maps(10, MAPS_B);
	ck_assert_str_eq(path_at(table_peek(table, 10), 0x10000), "/bin/b");
	now += NSEC_PER_SEC;
	sampled(10);
	ck_assert_int_eq(asked_of(HOST_READ_MAPS), 3);
	table_stats(table, &stats);
	ck_assert_uint_eq(stats.sideband_lost, 3);
}
END_TEST

START_TEST(an_empty_answer_takes_nothing_away)
{
	struct process *p = known_process(10);

	now += NSEC_PER_SEC;
	table_uncovered(table, p, 0x90000, now);
	answer_maps(10, "");
	ck_assert_str_eq(path_at(p, 0x10000), "/bin/a");
}
END_TEST

/* Files. */

static int elf_file(uint8_t build_id)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr ph[2];
		Elf64_Nhdr note;
		char name[4];
		uint8_t id[20];
	} i = {.head = {.e_phoff = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2},
	       .note = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID}, .name = "GNU"};
	int fd = memfd_create("check", MFD_CLOEXEC);

	memcpy(i.head.e_ident, ELFMAG, SELFMAG);
	i.head.e_ident[EI_CLASS] = ELFCLASS64;
	i.head.e_ident[EI_DATA] = ELFDATA2LSB;
	i.head.e_ident[EI_VERSION] = EV_CURRENT;
	i.ph[0] = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = 64 + 112, .p_filesz = 36, .p_align = 4};
	memset(i.id, build_id, sizeof(i.id));
	ck_assert_int_eq(write(fd, &i, sizeof(i)), (ssize_t)sizeof(i));
	return fd;
}

/* The host has no file of this path. */
static void answer_file(int i, int fd)
{
	answer(i, 0, fd, NULL, 0);
	i = open_question(HOST_OPEN_MAPPED, 1);
	if (i >= 0)
		answer(i, -ENOENT, -1, NULL, 0);
}

static const struct mapping *mapping_of(uint32_t pid, uint64_t pc)
{
	return space_find(table_peek(table, pid)->space, pc);
}

static struct process *one_program(uint32_t pid, uint64_t cgroup)
{
	forked(pid, 2000);
	execed(pid, "prog");
	sampled_as(pid, born, 1, cgroup, 0);
	mapped(pid, 0x10000, 0x20000, "/bin/prog", 9);
	return table_peek(table, pid);
}

START_TEST(a_file_is_opened_once_for_all_who_map_it)
{
	struct process *p = one_program(10, 7), *q = one_program(11, 7);
	const struct mapping *m = mapping_of(10, 0x10000);

	ck_assert_ptr_eq(m->file, mapping_of(11, 0x10000)->file);
	ck_assert(table_want_file(table, p, m));
	ck_assert(table_want_file(table, q, mapping_of(11, 0x10000)));
	ck_assert_int_eq(asked_of(HOST_OPEN_MAPPED), 1);
	ck_assert_str_eq(fake.asked[fake.count - 1].path, "/bin/prog");
	ck_assert_uint_eq(fake.asked[fake.count - 1].req.pid_start_ns, p->start_ns);
	answer_file(open_question(HOST_OPEN_MAPPED, 10), elf_file(9));
	ck_assert_int_eq(m->file->state, MAPPED_READY);
	ck_assert_ptr_nonnull(m->file->binary);
	ck_assert_int_eq(settled_files, 1);
	ck_assert(!table_want_file(table, p, m));
}
END_TEST

START_TEST(paths_of_different_containers_are_different_files)
{
	one_program(10, 7);
	one_program(11, 8);
	ck_assert_ptr_ne(mapping_of(10, 0x10000)->file, mapping_of(11, 0x10000)->file);
}
END_TEST

START_TEST(a_file_with_another_build_id_is_not_taken)
{
	struct process *p = one_program(10, 7);
	const struct mapping *m = mapping_of(10, 0x10000);

	ck_assert(table_want_file(table, p, m));
	for (int attempt = 0; attempt < 3 && m->file->state == MAPPED_OPENING; attempt++)
		answer(open_question(HOST_OPEN_MAPPED, 10), 0, elf_file(8), NULL, 0);
	ck_assert_int_eq(m->file->state, MAPPED_FAILED);
	ck_assert_int_eq(m->file->error, -ESTALE);
	ck_assert_ptr_null(m->file->binary);
	ck_assert_int_eq(settled_files, 1);
	now += 1000 * NSEC_PER_SEC;
	table_tick(table, now);
	ck_assert(!table_want_file(table, p, m));
}
END_TEST

START_TEST(a_file_of_the_dead_is_sought_with_neighbour_parent_and_host)
{
	struct process *p;
	const struct mapping *m;
	int i;

	known_process(20); /* same cgroup */
	p = one_program(10, 7);
	sampled(20);
	exited(10, 10);
	m = mapping_of(10, 0x10000);
	p->ppid = 2000;
	ck_assert(table_want_file(table, p, m));
	i = open_question(HOST_OPEN_MAPPED, 10);
	answer(i, -ESRCH, -1, NULL, 0);
	i = open_question(HOST_OPEN_MAPPED, 10);
	ck_assert_uint_eq(fake.asked[i].req.alternate_pid, 2000);
	answer(i, -ESRCH, -1, NULL, 0);
	i = open_question(HOST_OPEN_MAPPED, 10);
	ck_assert_uint_eq(fake.asked[i].req.alternate_pid, 1);
	answer_file(i, elf_file(9));
	ck_assert_int_eq(m->file->state, MAPPED_READY);
}
END_TEST

/* Helpers of a moment map a server's file first. Its own samples would be cut for as long as it is not asked for again. */
START_TEST(a_file_that_the_dead_mapped_is_soon_sought_through_the_living)
{
	struct process *p = one_program(10, 7), *q = one_program(11, 7);
	const struct mapping *m = mapping_of(10, 0x10000);

	exited(10, 10);
	ck_assert(table_want_file(table, p, m));
	while (open_question(HOST_OPEN_MAPPED, 10) >= 0)
		answer(open_question(HOST_OPEN_MAPPED, 10), -ESRCH, -1, NULL, 0);
	ck_assert_int_eq(m->file->state, MAPPED_FAILED);
	ck_assert_ptr_eq(mapping_of(11, 0x10000)->file, m->file);
	ck_assert(!table_want_file(table, q, mapping_of(11, 0x10000))); /* not at each sample */
	now += 50 * NSEC_PER_MSEC;
	table_tick(table, now);
	ck_assert(table_want_file(table, q, mapping_of(11, 0x10000)));
	answer_file(open_question(HOST_OPEN_MAPPED, 11), elf_file(9));
	ck_assert_int_eq(m->file->state, MAPPED_READY);
}
END_TEST

START_TEST(a_neighbour_is_named_with_the_first_question)
{
	struct process *p;

	one_program(10, 7);
	p = one_program(11, 7);
	sampled_as(10, table_peek(table, 10)->start_ns, 1, 7, 0);
	mapped(11, 0x30000, 0x40000, "/lib/own", 4);
	ck_assert(table_want_file(table, p, mapping_of(11, 0x30000)));
	ck_assert_uint_ne(fake.asked[open_question(HOST_OPEN_MAPPED, 11)].req.alternate_pid, 11);
	answer(open_question(HOST_OPEN_MAPPED, 11), -EPERM, -1, NULL, 0);
	ck_assert_int_eq(mapping_of(11, 0x30000)->file->error, -EPERM);
}
END_TEST

static int only_root_writes(int fd)
{
	ck_assert_int_eq(fchmod(fd, 0755), 0);
	return fd;
}

/* Its process and all its neighbours are gone. */
static const struct mapped_file *dead_file(uint32_t pid, uint64_t cgroup, const char *path)
{
	struct process *p;

	forked(pid, 2000);
	execed(pid, "prog");
	sampled_as(pid, born, 1, cgroup, 0);
	mapped(pid, 0x10000, 0x20000, path, 9);
	p = table_peek(table, pid);
	table_want_file(table, p, mapping_of(pid, 0x10000));
	while (open_question(HOST_OPEN_MAPPED, pid) >= 0)
		answer(open_question(HOST_OPEN_MAPPED, pid), -ESRCH, -1, NULL, 0);
	return mapping_of(pid, 0x10000)->file;
}

START_TEST(same_build_in_its_container_serves_the_dead)
{
	struct process *p = one_program(10, 7);

	if (geteuid()) {
		fputs("skip - a file that only root may write needs root\n", stderr);
		return;
	}
	table_want_file(table, p, mapping_of(10, 0x10000));
	answer(open_question(HOST_OPEN_MAPPED, 10), 0, only_root_writes(elf_file(9)), NULL, 0);
	ck_assert_ptr_eq(dead_file(11, 7, "/bin/twin")->binary, mapping_of(10, 0x10000)->file->binary);
	ck_assert_int_eq(dead_file(12, 8, "/bin/twin")->state, MAPPED_FAILED);
}
END_TEST

START_TEST(same_build_of_a_user_serves_nobody_else)
{
	struct process *p = one_program(10, 7);

	table_want_file(table, p, mapping_of(10, 0x10000));
	answer_file(open_question(HOST_OPEN_MAPPED, 10), elf_file(9));
	ck_assert_int_eq(dead_file(11, 7, "/bin/twin")->state, MAPPED_FAILED);
}
END_TEST

static uint64_t inode_of(int fd, uint64_t *ret_dev)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	*ret_dev = st.st_dev;
	return st.st_ino;
}

static const struct mapped_file *wanted_program(void)
{
	struct process *p = one_program(10, 7);

	ck_assert(table_want_file(table, p, mapping_of(10, 0x10000)));
	return mapping_of(10, 0x10000)->file;
}

START_TEST(users_file_gives_way_to_the_hosts_of_the_same_build)
{
	const struct mapped_file *f = wanted_program();
	int hosts = elf_file(9), i;
	uint64_t dev, ino = inode_of(hosts, &dev);

	answer(open_question(HOST_OPEN_MAPPED, 10), 0, elf_file(9), NULL, 0);
	i = open_question(HOST_OPEN_MAPPED, 1);
	ck_assert_int_eq(f->state, MAPPED_OPENING);
	ck_assert(fake.asked[i].req.start == fake.asked[i].req.end && !fake.asked[i].req.alternate_pid);
	ck_assert_uint_eq(fake.asked[i].req.pid_start_ns, 0); /* the other process' start is not the host's */
	ck_assert_str_eq(fake.asked[i].path, "/bin/prog");
	answer(i, 0, hosts, NULL, 0);
	ck_assert_int_eq(f->state, MAPPED_READY);
	ck_assert_uint_eq(f->binary->ino, ino);
	ck_assert_int_eq(settled_files, 1);
}
END_TEST

START_TEST(users_file_stays_where_the_host_has_another_build)
{
	const struct mapped_file *f = wanted_program();
	int users = elf_file(9);
	uint64_t dev, ino = inode_of(users, &dev);

	answer(open_question(HOST_OPEN_MAPPED, 10), 0, users, NULL, 0);
	answer(open_question(HOST_OPEN_MAPPED, 1), 0, elf_file(8), NULL, 0);
	ck_assert_int_eq(f->state, MAPPED_READY);
	ck_assert_uint_eq(f->binary->ino, ino);
}
END_TEST

START_TEST(file_that_only_root_may_write_is_taken_at_once)
{
	const struct mapped_file *f;

	if (geteuid()) {
		fputs("skip - a file that only root may write needs root\n", stderr);
		return;
	}
	f = wanted_program();
	answer(open_question(HOST_OPEN_MAPPED, 10), 0, only_root_writes(elf_file(9)), NULL, 0);
	ck_assert_int_eq(f->state, MAPPED_READY);
	ck_assert_int_eq(open_question(HOST_OPEN_MAPPED, 1), -1);
}
END_TEST

/* The kernel reported the inode of fd. */
static const struct mapped_file *wanted_inode(int fd)
{
	struct proc_event ev = {.type = PROC_MMAP, .pid = 10, .tid = 10, .start = 0x30000, .end = 0x40000, .name = "/bin/it",
				.name_len = 7};
	struct process *p = one_program(10, 7);

	ev.time_ns = tick();
	ev.ino = inode_of(fd, &ev.dev);
	table_apply(table, &ev);
	ck_assert(table_want_file(table, p, mapping_of(10, 0x30000)));
	return mapping_of(10, 0x30000)->file;
}

START_TEST(inode_that_the_kernel_reported_is_beyond_doubt)
{
	int fd = elf_file(9);
	const struct mapped_file *f = wanted_inode(fd);

	answer(open_question(HOST_OPEN_MAPPED, 10), 0, fd, NULL, 0);
	ck_assert_int_eq(f->state, MAPPED_READY);
	ck_assert_int_eq(open_question(HOST_OPEN_MAPPED, 1), -1);
}
END_TEST

/* As of a mapping that was swapped before it was opened; on some file systems the numbers differ without that. */
START_TEST(another_inode_gives_way_to_the_hosts_if_that_is_the_one)
{
	int fd = elf_file(9), other = only_root_writes(elf_file(9));
	uint64_t dev, ino = inode_of(_i ? fd : other, &dev);
	const struct mapped_file *f = wanted_inode(fd);

	answer(open_question(HOST_OPEN_MAPPED, 10), 0, other, NULL, 0);
	answer(open_question(HOST_OPEN_MAPPED, 1), 0, _i ? fd : elf_file(9), NULL, 0);
	ck_assert_int_eq(f->state, MAPPED_READY);
	ck_assert_uint_eq(f->binary->ino, ino);
	if (!_i)
		close(fd);
}
END_TEST

START_TEST(what_the_host_has_no_time_for_is_asked_later)
{
	struct process *p = one_program(10, 7);
	const struct mapping *m = mapping_of(10, 0x10000);

	fake.busy = 2;
	ck_assert(table_want_file(table, p, m));
	ck_assert_int_eq(m->file->state, MAPPED_OPENING);
	table_tick(table, tick());
	ck_assert_int_eq(asked_of(HOST_OPEN_MAPPED), 0);
	table_tick(table, tick());
	ck_assert_int_eq(asked_of(HOST_OPEN_MAPPED), 1);
	answer_file(open_question(HOST_OPEN_MAPPED, 10), elf_file(9));
	ck_assert_int_eq(m->file->state, MAPPED_READY);
}
END_TEST

/* As where one user's questions fill the user's part of the queue. */
START_TEST(group_that_the_host_refuses_delays_nobody_else)
{
	struct process *p = one_program(10, 7), *q = one_program(11, 8), *r = one_program(12, 9);

	fake.busy_group = 7;
	ck_assert(table_want_file(table, p, mapping_of(10, 0x10000)));
	ck_assert(table_want_file(table, q, mapping_of(11, 0x10000)));
	ck_assert_int_ge(open_question(HOST_OPEN_MAPPED, 11), 0);
	fake.busy = 1;
	ck_assert(table_want_file(table, r, mapping_of(12, 0x10000)));
	table_tick(table, tick());
	ck_assert_int_ge(open_question(HOST_OPEN_MAPPED, 12), 0);
	ck_assert_int_eq(open_question(HOST_OPEN_MAPPED, 10), -1);
	fake.busy_group = 0;
	table_tick(table, tick());
	ck_assert_int_ge(open_question(HOST_OPEN_MAPPED, 10), 0);
	ck_assert_int_eq(asked_of(HOST_OPEN_MAPPED), 3);
}
END_TEST

static uint64_t group_of(uint32_t kind, uint32_t pid)
{
	return fake.asked[open_question(kind, pid)].req.group;
}

START_TEST(questions_are_of_the_group_of_their_process)
{
	struct process *p = sampled_as(10, 50 * NSEC_PER_SEC, 3, 77, 0);

	ck_assert_uint_eq(group_of(HOST_READ_MAPS, 10), 77);
	ck_assert_uint_eq(group_of(HOST_READ_IDENTITY, 10), 77);
	p = one_program(11, 78);
	ck_assert(table_want_file(table, p, mapping_of(11, 0x10000)));
	ck_assert_uint_eq(group_of(HOST_OPEN_MAPPED, 11), 78);
	answer(open_question(HOST_OPEN_MAPPED, 11), 0, elf_file(9), NULL, 0);
	ck_assert_uint_eq(group_of(HOST_OPEN_MAPPED, 1), 78); /* the host's file of that path */
}
END_TEST

START_TEST(a_host_that_answers_at_once_is_understood)
{
	struct process *p;

	fake.at_once = true;
	p = sampled(10);
	ck_assert(!p->maps_pending && !p->identity_pending);
	p = one_program(11, 7);
	ck_assert(!table_want_file(table, p, mapping_of(11, 0x10000)));
	ck_assert_int_eq(mapping_of(11, 0x10000)->file->state, MAPPED_FAILED);
	ck_assert_int_eq(settled_files, 1);
}
END_TEST

START_TEST(a_failure_that_may_pass_is_tried_again)
{
	struct process *p = one_program(10, 7);
	const struct mapping *m = mapping_of(10, 0x10000);

	table_want_file(table, p, m);
	answer(open_question(HOST_OPEN_MAPPED, 10), -ETIMEDOUT, -1, NULL, 0);
	ck_assert_int_eq(m->file->state, MAPPED_FAILED);
	ck_assert(!table_want_file(table, p, m));
	now += 2 * NSEC_PER_SEC;
	table_tick(table, now);
	ck_assert(table_want_file(table, p, m));
	answer_file(open_question(HOST_OPEN_MAPPED, 10), elf_file(9));
	ck_assert_int_eq(m->file->state, MAPPED_READY);
}
END_TEST

/* Each of them maps the same file; the last one lives. The second is asked soon, later ones after a second at most. */
START_TEST(processes_of_a_moment_do_not_put_a_file_off)
{
	struct process *living;

	for (uint32_t pid = 10; pid < 16; pid++) {
		struct process *p = one_program(pid, 7);
		const struct mapping *m = mapping_of(pid, 0x10000);

		ck_assert(table_want_file(table, p, m));
		exited(pid, pid);
		answer(open_question(HOST_OPEN_MAPPED, pid), -ETIMEDOUT, -1, NULL, 0);
		ck_assert_int_eq(m->file->state, MAPPED_FAILED);
		now += pid == 10 ? 50 * NSEC_PER_MSEC : NSEC_PER_SEC;
		table_tick(table, now);
	}
	living = one_program(16, 7);
	ck_assert(table_want_file(table, living, mapping_of(16, 0x10000)));
	answer(open_question(HOST_OPEN_MAPPED, 16), -ETIMEDOUT, -1, NULL, 0);
	now += NSEC_PER_SEC - NSEC_PER_MSEC;
	table_tick(table, now);
	ck_assert(!table_want_file(table, living, mapping_of(16, 0x10000)));
}
END_TEST

static const struct {
	const char *name, *path;
	enum mapped_kind kind;
	bool deleted;
} kinds[] = {
	{"/bin/x", "/bin/x", MAPPED_FILE, false},
	{"/bin/x (deleted)", "/bin/x", MAPPED_FILE, true},
	{"/memfd:jit (deleted)", "/memfd:jit", MAPPED_MEMFD, true},
	{"//anon", "//anon", MAPPED_ANON, false},
	{"", "//anon", MAPPED_ANON, false},
	{"[anon:name]", "//anon", MAPPED_ANON, false},
	{"[stack]", "[stack]", MAPPED_ANON, false},
	{"[heap]", "[heap]", MAPPED_ANON, false},
	{"/dev/zero (deleted)", "//anon", MAPPED_ANON, false},
	{"/SYSV00000000 (deleted)", "//anon", MAPPED_ANON, false},
	{"anon_inode:[x]", "//anon", MAPPED_ANON, false},
	{"[vdso]", "[vdso]", MAPPED_VDSO, false},
	{"[vsyscall]", "[vsyscall]", MAPPED_VSYSCALL, false},
};

START_TEST(a_name_tells_its_kind)
{
	const struct mapped_file *f;
	struct process *p;

	execed(10, "x");
	mapped(10, 0x10000, 0x20000, kinds[_i].name, 0);
	p = sampled(10);
	f = space_find(p->space, 0x10000)->file;
	ck_assert_int_eq(f->kind, kinds[_i].kind);
	ck_assert_str_eq(f->path->s, kinds[_i].path);
	ck_assert_int_eq(f->deleted, kinds[_i].deleted);
	if (f->kind == MAPPED_FILE || f->kind == MAPPED_MEMFD)
		return;
	ck_assert(!table_want_file(table, p, space_find(p->space, 0x10000)));
	ck_assert_int_eq(asked_of(HOST_OPEN_MAPPED), 0);
	ck_assert_int_eq(f->state, f->kind == MAPPED_VDSO ? MAPPED_READY : MAPPED_FAILED);
	if (f->kind == MAPPED_VDSO)
		ck_assert(f->binary->is_elf);
	else
		ck_assert_int_eq(f->error, -ENOENT);
}
END_TEST

START_TEST(idle_files_are_closed_after_a_while)
{
	uint32_t before = binary_count();
	struct process *p = one_program(10, 7);

	table_want_file(table, p, mapping_of(10, 0x10000));
	answer_file(open_question(HOST_OPEN_MAPPED, 10), elf_file(9));
	exited(10, 10);
	for (int i = 0; i < 40; i++)
		table_tick(table, now += NSEC_PER_SEC);
	ck_assert_ptr_null(table_peek(table, 10));
	ck_assert_uint_eq(binary_count(), before + 1);
	for (int i = 0; i < 60; i++)
		table_tick(table, now += NSEC_PER_SEC);
	ck_assert_uint_eq(binary_count(), before);
}
END_TEST

/* The scan at start. */

static void scan_add(struct buf *b, uint32_t pid, const char *exe, const char *maps)
{
	struct buf identity = {0};
	struct host_scan_entry head = {.pid = pid, .maps_len = (uint32_t)strlen(maps)};

	identity_text(&identity, 50 * NSEC_PER_SEC, exe, "0::/\n", "");
	head.identity_len = (uint32_t)identity.len;
	buf_add(b, &head, sizeof(head));
	buf_add(b, identity.data, identity.len);
	buf_add_str(b, maps);
	while (b->len % 8)
		buf_add(b, "", 1);
	buf_done(&identity);
}

static int scan_file(const struct buf *b)
{
	int fd = memfd_create("scan", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, b->data, b->len), (ssize_t)b->len);
	return fd;
}

START_TEST(a_scan_tells_all_and_yields_to_what_is_newer)
{
	struct buf b = {0};
	struct process *p;

	ck_assert_int_eq(table_scan(table), 0);
	forked(12, 10); /* before anybody knows 10 */
	execed(13, "new");
	mapped(13, 0x10000, 0x20000, "/bin/new", 1);
	mapped(10, 0x50000, 0x60000, "/lib/late", 2);
	scan_add(&b, 10, "/bin/a", MAPS_A);
	scan_add(&b, 12, "/bin/a", MAPS_A);
	scan_add(&b, 13, "/bin/old", MAPS_B);
	answer(0, 0, scan_file(&b), NULL, 0);
	p = table_peek(table, 10);
	ck_assert(p->maps_known && p->identity_known);
	ck_assert_str_eq(p->comm->s, "named");
	ck_assert_str_eq(path_at(p, 0x10000), "/bin/a");
	ck_assert_str_eq(path_at(p, 0x50000), "/lib/late");
	ck_assert_str_eq(path_at(table_peek(table, 12), 0x10000), "/bin/a");
	ck_assert_str_eq(path_at(table_peek(table, 13), 0x10000), "/bin/new");
	ck_assert(!table_peek(table, 13)->identity_known);
	/* Nothing is left to ask of a process that was found. */
	ck_assert_ptr_eq(sampled_as(10, 50 * NSEC_PER_SEC + 1234, 3, 7, 0), p);
	ck_assert_int_eq(fake.count, 1);
	/* Its pid used again does not take that over. */
	p = sampled_as(10, 77 * NSEC_PER_SEC, 3, 7, 0);
	ck_assert_ptr_null(path_at(p, 0x10000));
	buf_done(&b);
}
END_TEST

START_TEST(a_scanned_process_without_identity_and_maps_is_survived)
{
	struct host_scan_entry head = {.pid = 10};
	struct buf b = {0};

	ck_assert_int_eq(table_scan(table), 0);
	buf_add(&b, &head, sizeof(head));
	answer(0, 0, scan_file(&b), NULL, 0);
	ck_assert(!table_peek(table, 10)->maps_known);
	buf_done(&b);
}
END_TEST

START_TEST(every_cut_of_a_scan_is_survived)
{
	struct buf b = {0};

	scan_add(&b, 10, "/bin/a", MAPS_A);
	scan_add(&b, 11, "/bin/a", MAPS_A);
	for (size_t len = 0; len < b.len; len += 3) {
		struct buf part = {.data = b.data, .len = len};

		fake.count = 0;
		ck_assert_int_eq(table_scan(table), 0);
		answer(0, 0, scan_file(&part), NULL, 0);
	}
	fake.count = 0;
	ck_assert_int_eq(table_scan(table), 0);
	answer(0, -ETIMEDOUT, -1, NULL, 0);
	buf_done(&b);
}
END_TEST

/* Bounds. */

START_TEST(the_longest_dead_go_first_then_the_least_used)
{
	table = table_free(table);
	make_table((struct process_limits){.processes = 8});
	for (uint32_t pid = 1; pid <= 8; pid++)
		forked(pid, 100);
	exited(5, 5);
	exited(3, 3);
	forked(9, 100);
	ck_assert_ptr_null(table_peek(table, 5));
	forked(10, 100);
	ck_assert_ptr_null(table_peek(table, 3));
	now += 5 * NSEC_PER_SEC;
	sampled_as(1, now - 5 * NSEC_PER_SEC - 20000, 1, 7, 0);
	forked(11, 100);
	ck_assert_ptr_nonnull(table_peek(table, 1));
	ck_assert_ptr_null(table_peek(table, 2));
}
END_TEST

START_TEST(a_storm_of_short_processes_stays_within_bounds)
{
	struct process_stats stats;

	table = table_free(table);
	make_table((struct process_limits){.processes = 500, .mappings = 4000});
	fake.at_once = true;
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t pid = 100 + i % 5000;

		forked(pid, 50);
		execed(pid, "storm");
		for (uint64_t k = 1; k < 12; k++)
			mapped(pid, k << 20, (k << 20) + 4096, "/lib/x", (uint8_t)k);
		if (i % 100 == 0) {
			fake.count = 0;
			sampled_as(pid, born, 1, 7, 0);
		}
		exited(pid, pid);
	}
	table_stats(table, &stats);
	ck_assert_uint_le(stats.processes, 500);
	ck_assert_uint_le(stats.mappings, 4100);
	ck_assert_uint_gt(stats.evicted, 0);
	now += 60 * NSEC_PER_SEC;
	table_tick(table, now);
	table_stats(table, &stats);
	ck_assert_uint_eq(stats.processes, 0);
}
END_TEST

START_TEST(eviction_withdraws_its_questions)
{
	table = table_free(table);
	make_table((struct process_limits){.processes = 4});
	for (uint32_t pid = 1; pid <= 40; pid++)
		sampled(pid);
	ck_assert_int_eq(open_question(HOST_READ_MAPS, 1), -1);
	ck_assert_int_ge(open_question(HOST_READ_MAPS, 40), 0);
}
END_TEST

Suite *table_suite(void)
{
	Suite *s = suite_create("table");
	TCase *t = tcase_create("identity");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, an_unknown_process_is_asked_about_once);
	tcase_add_test(t, a_process_that_is_gone_is_not_asked_about_again);
	tcase_add_test(t, an_opener_that_was_late_is_asked_again_later);
	tcase_add_test(t, a_busy_host_is_asked_with_the_next_sample);
	tcase_add_test(t, an_answer_about_a_reused_pid_is_refused);
	tcase_add_test(t, interrupts_on_an_idle_cpu_are_a_service_of_their_own);
	tcase_add_test(t, a_kernel_thread_is_asked_nothing);
	tcase_add_test(t, a_process_that_moves_to_another_cgroup_is_asked_again);
	tcase_add_test(t, a_neighbour_in_the_cgroup_tells_where_a_dead_process_lived);
	tcase_add_test(t, the_root_cgroup_makes_nobody_neighbours);
	suite_add_tcase(s, t);
	t = tcase_create("life");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_child_has_what_its_parent_had);
	tcase_add_test(t, exec_begins_anew_and_needs_no_maps);
	tcase_add_test(t, a_script_has_its_own_name_before_anybody_reads_it);
	tcase_add_test(t, an_exec_that_was_lost_shows_by_its_number);
	tcase_add_test(t, the_old_number_in_the_instant_of_exec_is_no_other_exec);
	tcase_add_test(t, the_same_holds_where_the_number_was_not_known);
	tcase_add_test(t, a_reused_pid_is_another_process);
	tcase_add_test(t, the_leader_s_exit_is_not_the_end_when_another_thread_execs);
	tcase_add_test(t, a_thread_that_outlives_its_leader_keeps_the_process);
	tcase_add_test(t, the_dead_are_kept_for_a_while);
	tcase_add_test(t, threads_and_strangers_are_no_processes);
	suite_add_tcase(s, t);
	t = tcase_create("maps");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, an_uncovered_pc_is_looked_up_and_less_often_in_vain);
	tcase_add_test(t, rescans_of_all_processes_together_are_bounded);
	tcase_add_test(t, what_was_mapped_since_the_question_wins_over_the_answer);
	tcase_add_test(t, an_answer_from_before_an_exec_is_dropped);
	tcase_add_test(t, the_same_file_told_by_both_is_one);
	tcase_add_test(t, a_lost_record_makes_sampled_processes_looked_at_again);
	tcase_add_test(t, an_empty_answer_takes_nothing_away);
	suite_add_tcase(s, t);
	t = tcase_create("files");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_file_is_opened_once_for_all_who_map_it);
	tcase_add_test(t, paths_of_different_containers_are_different_files);
	tcase_add_test(t, a_file_with_another_build_id_is_not_taken);
	tcase_add_test(t, a_file_of_the_dead_is_sought_with_neighbour_parent_and_host);
	tcase_add_test(t, a_file_that_the_dead_mapped_is_soon_sought_through_the_living);
	tcase_add_test(t, a_neighbour_is_named_with_the_first_question);
	tcase_add_test(t, same_build_in_its_container_serves_the_dead);
	tcase_add_test(t, same_build_of_a_user_serves_nobody_else);
	tcase_add_test(t, users_file_gives_way_to_the_hosts_of_the_same_build);
	tcase_add_test(t, users_file_stays_where_the_host_has_another_build);
	tcase_add_test(t, file_that_only_root_may_write_is_taken_at_once);
	tcase_add_test(t, inode_that_the_kernel_reported_is_beyond_doubt);
	tcase_add_loop_test(t, another_inode_gives_way_to_the_hosts_if_that_is_the_one, 0, 2);
	tcase_add_test(t, what_the_host_has_no_time_for_is_asked_later);
	tcase_add_test(t, group_that_the_host_refuses_delays_nobody_else);
	tcase_add_test(t, questions_are_of_the_group_of_their_process);
	tcase_add_test(t, a_host_that_answers_at_once_is_understood);
	tcase_add_test(t, a_failure_that_may_pass_is_tried_again);
	tcase_add_test(t, processes_of_a_moment_do_not_put_a_file_off);
	tcase_add_loop_test(t, a_name_tells_its_kind, 0, ARRAY_SIZE(kinds));
	tcase_add_test(t, idle_files_are_closed_after_a_while);
	suite_add_tcase(s, t);
	t = tcase_create("bounds");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_scan_tells_all_and_yields_to_what_is_newer);
	tcase_add_test(t, a_scanned_process_without_identity_and_maps_is_survived);
	tcase_add_test(t, every_cut_of_a_scan_is_survived);
	tcase_add_test(t, the_longest_dead_go_first_then_the_least_used);
	tcase_add_test(t, a_storm_of_short_processes_stays_within_bounds);
	tcase_add_test(t, eviction_withdraws_its_questions);
	suite_add_tcase(s, t);
	return s;
}
