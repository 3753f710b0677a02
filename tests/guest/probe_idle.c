// SPDX-License-Identifier: Apache-2.0
/*
 * Work of softirqs on an idle CPU: packets that one CPU sends over the loopback device are received by another one,
 * to which the kernel hands them by an interrupt (receive packet steering).
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe.h"
#include "source/copy_speed.h"
#include "source/softirq_code.h"

#define SENDER	 0
#define RECEIVER 1
#define RUN_MS	 4000
#define BURST	 32 /* packets, then a pause: one that never ends makes the kernel receive in a thread instead */
#define PAUSE_US 50

struct idle_watch {
	struct softirq_code code;
	unsigned int softirq, nobody, not_softirq, wrong; /* samples of RECEIVER: in softirqs; without a process */
	char why[64];
};

/* --- load --- */

static int lo_up(int fd)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	return ioctl(fd, SIOCSIFFLAGS, &lo);
}

/* A network of its own, so that the host's devices stay as they are. */
static int network_of_its_own(void)
{
	char dir[] = "/tmp/otprof-probe-XXXXXX", path[96], mask[8];
	int err;

	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    !mkdtemp(dir))
		return -1;
	err = mount("sysfs", dir, "sysfs", 0, NULL);
	snprintf(path, sizeof(path), "%s/class/net/lo/queues/rx-0/rps_cpus", dir);
	snprintf(mask, sizeof(mask), "%x", 1u << RECEIVER);
	err = err < 0 ? err : set_sysctl(path, mask);
	umount(dir);
	rmdir(dir);
	return err;
}

static void send_for_ever(int fd, const struct sockaddr_in *to)
{
	for (;;) {
		for (int i = 0; i < BURST; i++)
			sendto(fd, "packet", 6, MSG_DONTWAIT, (const struct sockaddr *)to, sizeof(*to));
		usleep(PAUSE_US);
	}
}

static void flood(int ready)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	cpu_set_t set;
	int in, out;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	CPU_SET(SENDER, &set);
	if (network_of_its_own() < 0)
		return;
	in = socket(AF_INET, SOCK_DGRAM, 0);
	out = socket(AF_INET, SOCK_DGRAM, 0);
	if (sched_setaffinity(0, sizeof(set), &set) < 0 || lo_up(in) < 0 ||
	    bind(in, (const struct sockaddr *)&to, sizeof(to)) < 0 || write(ready, "", 1) != 1)
		return;
	send_for_ever(out, &to);
}

/* Returns once packets flow; -1: this kernel or machine cannot do it. */
static pid_t flood_start(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	/* There softirqs run in threads; an interrupt that raises one, as RPS does, makes 6.1-rt warn. */
	if (kernel_is_rt())
		return -1;
	if (sysconf(_SC_NPROCESSORS_ONLN) <= RECEIVER || pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		flood(ready[1]);
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

/* --- the kernel's own account --- */

struct spent { /* in ticks of USER_HZ */
	uint64_t idle, softirq, all;
	uint64_t samplers; /* ticks of the sampler meanwhile */
};

static struct spent spent_by(uint32_t cpu)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/stat", "re");
	struct spent s = {0};
	unsigned long t[8];
	char line[512];
	uint32_t nr;

	/* "cpu1 user nice system idle iowait irq softirq steal ..." */
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "cpu%u %lu %lu %lu %lu %lu %lu %lu %lu", &nr, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5],
			   &t[6], &t[7]) == 9 && nr == cpu)
			s = (struct spent){.idle = t[3] + t[4], .softirq = t[6],
					   .all = t[0] + t[1] + t[2] + t[3] + t[4] + t[5] + t[6] + t[7]};
	return s;
}

/* --- samples --- */

static bool runs_softirqs(const struct idle_watch *w, const struct otp_sample *s)
{
	uint32_t len = 0;
	const uint64_t *ips = sample_section(s, OTP_SEC_KSTACK, &len);

	return ips && softirq_code_has(&w->code, ips, len / 8);
}

static const char *wrong_of_nobody(const struct otp_sample *s)
{
	if (s->tid || s->ppid || s->start_ns || s->exec_id || s->cgroup_id)
		return "the identity of a process";
	if (s->mode != (OTP_MODE_KERNEL | OTP_MODE_KTHREAD))
		return "its mode";
	if (s->nr_sections != 1)
		return "more than a kernel stack";
	return strcmp(s->comm, OTP_COMM_INTERRUPTS) == 0 ? NULL : "its name";
}

static void idle_see(void *ctx, const struct otp_rec *rec)
{
	const struct otp_sample *s = (const void *)rec;
	struct idle_watch *w = ctx;
	const char *why;
	bool softirq;

	if (rec->type != OTP_REC_SAMPLE || s->cpu != RECEIVER)
		return;
	softirq = runs_softirqs(w, s);
	w->softirq += softirq;
	if (s->pid)
		return;
	w->nobody++;
	w->not_softirq += !softirq;
	why = wrong_of_nobody(s);
	w->wrong += why != NULL;
	if (why)
		snprintf(w->why, sizeof(w->why), "%s", why);
}

static int idle_run(const struct source_config *cfg, const struct otp_plan *of_init, struct idle_watch *w,
		    struct spent *ret)
{
	struct spent before = spent_by(RECEIVER), after;
	struct session s;
	int err = session_open(&s, cfg);

	if (err == 0 && of_init)
		err = s.source->ops->set_plan(s.source, 1, of_init);
	if (err == 0)
		err = session_run(&s, RUN_MS, idle_see, w);
	after = spent_by(RECEIVER);
	*ret = (struct spent){.idle = after.idle - before.idle, .softirq = after.softirq - before.softirq,
			      .all = MAX(after.all - before.all, 1)};
	if (err == 0)
		ret->samplers = session_counters(&s, RECEIVER).ticks;
	session_close(&s);
	return err;
}

static enum verdict idle_judge(struct idle_watch *w, const struct spent *t)
{
	uint64_t due = t->softirq * t->samplers / t->all;

	printf("# %u samples in softirqs, %u without a process; by the kernel's account %" PRIu64
	       " were due, and %" PRIu64 " ticks were idle\n",
	       w->softirq, w->nobody, due, t->idle);
	/* An account by the clock's interrupts misses some, but finds no more than there are. */
	CHECK(due < 100 || w->softirq * 3 >= due, "%u samples, %lu due", w->softirq, (unsigned long)due);
	/* Nothing is missing, but it ran in processes: others load the machine, or its kernel leaves it to ksoftirqd. */
	if (w->nobody < 10)
		return SKIPPED;
	CHECK(!w->wrong, "%u of %u: %s", w->wrong, w->nobody, w->why);
	CHECK(w->not_softirq * 20 <= MAX(w->nobody, 40), "%u of %u are in no softirq", w->not_softirq, w->nobody);
	return PASSED;
}

static enum verdict softirq_on_an_idle_cpu_is_kernel_work_of_no_process(void)
{
	struct source_config cfg = config_default();
	struct idle_watch w = {0};
	struct spent t = {0};
	pid_t pid;
	int err;

	softirq_code_read(&w.code);
	pid = w.code.end[0] || w.code.end[1] ? flood_start() : -1;
	if (pid < 0)
		return SKIPPED;
	cfg.frequency_hz = 499;
	err = idle_run(&cfg, NULL, &w, &t);
	child_end(pid);
	CHECK(err == 0, "error %d", err);
	return idle_judge(&w, &t);
}

/* An idle task's parent is pid 1 on all CPUs but the first. */
static enum verdict softirq_on_an_idle_cpu_is_of_no_selection(void)
{
	const struct otp_plan of_init = {.generation = 1, .stack_bytes = 1024, .select = OTP_SELECT_YES, .any_exec = 1};
	struct source_config cfg = config_default();
	struct idle_watch w = {0};
	struct spent t = {0};
	pid_t pid = flood_start();
	int err;

	if (pid < 0)
		return SKIPPED;
	cfg.defaults.select = cfg.defaults.kthreads = OTP_SELECT_NO;
	cfg.defaults.ancestors = OTP_ANCESTORS_MAX;
	err = idle_run(&cfg, &of_init, &w, &t);
	child_end(pid);
	CHECK(err == 0, "error %d", err);
	CHECK(!w.nobody, "%u samples", w.nobody);
	return PASSED;
}

const struct probe_test idle_tests[] = {
	{"softirq on an idle CPU is kernel work of no process", softirq_on_an_idle_cpu_is_kernel_work_of_no_process},
	{"softirq on an idle CPU is of no selection", softirq_on_an_idle_cpu_is_of_no_selection},
	{NULL, NULL},
};
