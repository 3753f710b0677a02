// SPDX-License-Identifier: Apache-2.0
/* The kernel module as a source: drives /dev/otprof and its descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kmod/uapi/otprof_dev.h"
#include "source/cpus.h"
#include "source/pids.h"
#include "source/size.h"
#include "source/source.h"

/* Its inode is fixed (Linux, include/linux/proc_ns.h: PROC_PID_INIT_INO). */

#define PLANS_DEFAULT 8192
#define WALKS_DEFAULT 1024
#define HINTS_MAX     1024
#define RULES_MAX     4096

struct source_kmod {
	struct source source;
	int dev_fd, ring_fd, counters_fd; /* owned */
	struct otprof_info info;
	uint32_t ring_bytes;
	uint64_t period_ns;
	bool life; /* the ring reports process life */
	bool hardware;
	struct cpus wanted;
};

static struct source_kmod *kmod_self(const struct source *s)
{
	return container_of(s, struct source_kmod, source);
}

static int kmod_call(int fd, unsigned long request, const void *arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

static int kmod_dev_failed(int err, char why[SOURCE_WHY])
{
	if (err == -ENOENT || err == -ENXIO || err == -ENODEV)
		snprintf(why, SOURCE_WHY,
			 "the kernel module is not loaded: install the package otprof-dkms and run `modprobe otprof`");
	else if (err == -EPERM || err == -EACCES)
		snprintf(why, SOURCE_WHY, "%s refuses: CAP_PERFMON is needed, CAP_SYS_ADMIN before Linux 5.8",
			 OTPROF_DEV_PATH);
	else if (err == -EOPNOTSUPP)
		snprintf(why, SOURCE_WHY,
			 "kernel lockdown is set to confidentiality, under which the module samples nothing: boot with "
			 "lockdown=integrity or none");
	else if (err == -EBUSY)
		snprintf(why, SOURCE_WHY, "%s has as many users as its parameter sessions_max allows", OTPROF_DEV_PATH);
	else
		snprintf(why, SOURCE_WHY, "%s: %s", OTPROF_DEV_PATH, strerror(-err));
	return err;
}

static int kmod_info_check(const struct otprof_info *info, char why[SOURCE_WHY])
{
	if (info->abi_version != OTP_ABI_VERSION || info->dev_version != OTPROF_DEV_VERSION) {
		snprintf(why, SOURCE_WHY,
			 "the loaded module speaks version %u.%u, this program %d.%d: install the same version of both "
			 "and reload it (`modprobe -r otprof && modprobe otprof`)",
			 info->dev_version, info->abi_version, OTPROF_DEV_VERSION, OTP_ABI_VERSION);
		return -EPROTO;
	}
	/* The layout that the ring's reader expects. */
	if (info->consumer_offset != 0 || info->producer_offset != (uint64_t)sysconf(_SC_PAGESIZE) ||
	    info->data_offset != 2 * info->producer_offset)
		return snprintf(why, SOURCE_WHY, "the module lays out its ring in a way that is not known here"), -EPROTO;
	return 0;
}

static int kmod_dev_open(int *ret_fd, struct otprof_info *ret, char why[SOURCE_WHY])
{
	_cleanup_(closep) int fd = open(OTPROF_DEV_PATH, O_RDWR | O_CLOEXEC);
	int err;

	if (fd < 0)
		return kmod_dev_failed(-errno, why);
	err = kmod_call(fd, OTPROF_IOC_INFO, ret);
	if (err < 0)
		return kmod_dev_failed(err, why);
	err = kmod_info_check(ret, why);
	if (err < 0)
		return err;
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int kmod_hardware_failed(int err, char why[SOURCE_WHY])
{
	if (err == -EBUSY)
		snprintf(why, SOURCE_WHY,
			 "others, such as perf stat, hold every hardware counter of a CPU: end them, or set hardware_events = false");
	else
		snprintf(why, SOURCE_WHY,
			 "this machine has no counter of cycles that the module could use (%s): set hardware_events = false",
			 strerror(-err));
	return err;
}

/* Only an attempt shows whether there is a counter: the smallest sampler, closed at once. */
static int kmod_hardware_probe(int fd, const struct otprof_info *info, char why[SOURCE_WHY])
{
	_cleanup_(freep) struct otprof_config *c = calloc(1, sizeof(*c));
	int err;

	if (!(info->features & OTPROF_FEATURE_HARDWARE))
		return kmod_hardware_failed(-EOPNOTSUPP, why);
	if (!c)
		return -ENOMEM;
	memset(c->cpus, 0xff, sizeof(c->cpus));
	c->period_ns = NSEC_PER_SEC;
	c->ring_bytes = info->page_bytes;
	c->defaults.select = OTP_SELECT_NO;
	c->flags = OTPROF_CONFIG_HARDWARE;
	err = kmod_call(fd, OTPROF_IOC_CONFIG, c);
	return err < 0 ? kmod_hardware_failed(err, why) : 0;
}

static int kmod_probe(const struct source_config *cfg, char why[SOURCE_WHY])
{
	_cleanup_(closep) int fd = -1;
	struct otprof_info info;
	int err;

	if (cfg->events.count || cfg->events.no_clock)
		return snprintf(why, SOURCE_WHY, "the module samples the CPU clock only: events need mode = bpf or perf"),
		       -EOPNOTSUPP;
	if (!pids_are_the_hosts())
		return snprintf(why, SOURCE_WHY, "this is not the initial pid namespace: run with the host's (hostPID: true)"),
		       -EPERM;
	err = kmod_dev_open(&fd, &info, why);
	if (err == 0 && cfg->hardware)
		err = kmod_hardware_probe(fd, &info, why);
	return err;
}

static void kmod_config_fill(const struct source_config *cfg, struct cpus *cpus, struct otprof_config *c)
{
	_Static_assert(sizeof(cpus->word) == sizeof(c->cpus), "one size of sets of CPUs");
	memset(cpus, 0xff, sizeof(*cpus));
	if (cfg->cpus)
		cpus_parse(cfg->cpus, cpus);
	memcpy(c->cpus, cpus->word, sizeof(c->cpus));
	c->period_ns = NSEC_PER_SEC / cfg->frequency_hz;
	c->plans_max = cfg->plans_max ? cfg->plans_max : PLANS_DEFAULT;
	c->walks_max = cfg->walks_max ? cfg->walks_max : WALKS_DEFAULT;
	c->hints_max = HINTS_MAX;
	c->rules_max = RULES_MAX;
	c->defaults = cfg->defaults;
	c->defaults.running = 0;
	c->flags = cfg->hardware ? OTPROF_CONFIG_HARDWARE : 0;
}

static int kmod_config_failed(int err, const struct source_config *cfg, char why[SOURCE_WHY])
{
	if (err == -ENODEV && cfg->cpus)
		snprintf(why, SOURCE_WHY, "none of the CPUs %.200s is online", cfg->cpus);
	else if (cfg->hardware && (err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV || err == -EBUSY))
		return kmod_hardware_failed(err, why);
	else if (err == -ENOMEM)
		snprintf(why, SOURCE_WHY, "the kernel has no memory for a ring of %u bytes", cfg->ring_bytes);
	else if (err == -E2BIG)
		snprintf(why, SOURCE_WHY,
			 "ring and plans exceed what the module grants one sampler: less of them, or more by its parameter memory_max");
	else
		snprintf(why, SOURCE_WHY, "the module refuses its configuration: %s", strerror(-err));
	return err;
}

static int kmod_view_open(int dev_fd, enum otprof_view view, int *ret_fd)
{
	int fd = ioctl(dev_fd, OTPROF_IOC_VIEW, (unsigned long)view);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static void kmod_close(struct source *s)
{
	struct source_kmod *k = kmod_self(s);

	closep(&k->dev_fd);
	closep(&k->ring_fd);
	closep(&k->counters_fd);
}

static int kmod_open(struct source *s, const struct source_config *cfg, char why[SOURCE_WHY])
{
	_cleanup_(freep) struct otprof_config *c = calloc(1, sizeof(*c));
	struct source_kmod *k = kmod_self(s);
	int err;

	k->dev_fd = k->ring_fd = k->counters_fd = -1;
	if (!c)
		return -ENOMEM;
	kmod_config_fill(cfg, &k->wanted, c);
	k->hardware = cfg->hardware;
	err = kmod_dev_open(&k->dev_fd, &k->info, why);
	if (err < 0)
		return err;
	c->ring_bytes = k->ring_bytes = cfg->ring_bytes ? cfg->ring_bytes : size_ring(k->info.cpus_nr, cfg->frequency_hz);
	k->period_ns = c->period_ns;
	/* Not on every kernel can the module report it: layout has the result. */
	k->life = cfg->life && k->info.features & OTPROF_FEATURE_LIFE;
	c->flags |= k->life ? OTPROF_CONFIG_LIFE : 0;
	err = kmod_call(k->dev_fd, OTPROF_IOC_CONFIG, c);
	if (err == 0)
		err = kmod_view_open(k->dev_fd, OTPROF_VIEW_RING, &k->ring_fd);
	if (err == 0)
		err = kmod_view_open(k->dev_fd, OTPROF_VIEW_COUNTERS, &k->counters_fd);
	return err < 0 ? kmod_config_failed(err, cfg, why) : 0;
}

/* The defaults have no descriptor: only the device's owner sets them. */
static void kmod_layout(const struct source *s, struct source_layout *ret)
{
	const struct source_kmod *k = kmod_self(s);

	*ret = (struct source_layout){
		.ring_fd = k->ring_fd,
		.ring_bytes = k->ring_bytes,
		.counters_fd = k->counters_fd,
		.cpus = k->info.cpus_nr,
		.counters_stride = k->info.counters_stride,
		.origins = origins_of_clock(k->period_ns),
		.consumer_fd = -1,
		.wake_fd = -1,
		.life = k->life,
	};
}

static int kmod_start(struct source *s)
{
	int err = kmod_call(kmod_self(s)->dev_fd, OTPROF_IOC_START, NULL);

	return err == -EALREADY ? 0 : err;
}

static int kmod_stop(struct source *s)
{
	return kmod_call(kmod_self(s)->dev_fd, OTPROF_IOC_STOP, NULL);
}

static int kmod_set_rate(struct source *s, uint32_t frequency_hz, uint32_t configured_hz)
{
	struct source_kmod *k = kmod_self(s);
	uint64_t period_ns;
	int err;

	if (frequency_hz < SOURCE_HZ_MIN || frequency_hz > SOURCE_HZ_MAX)
		return -ERANGE;
	if (!(k->info.features & OTPROF_FEATURE_PERIOD))
		return -EOPNOTSUPP;
	period_ns = NSEC_PER_SEC / frequency_hz;
	err = kmod_call(k->dev_fd, OTPROF_IOC_PERIOD, &period_ns);
	if (err == 0)
		k->period_ns = period_ns;
	return err;
}

static int kmod_set_defaults(struct source *s, const struct otp_defaults *d)
{
	struct otp_defaults now = *d;

	now.running = 0;
	return kmod_call(kmod_self(s)->dev_fd, OTPROF_IOC_DEFAULTS, &now);
}

static int kmod_set_plan(struct source *s, uint32_t pid, const struct otp_plan *p)
{
	struct otprof_set_plan set = {.op = p ? OTPROF_SET : OTPROF_REMOVE, .pid = pid};

	if (p)
		set.plan = *p;
	return kmod_call(kmod_self(s)->dev_fd, OTPROF_IOC_PLAN, &set);
}

static int kmod_set_walk(struct source *s, uint32_t pid, const struct otp_walks *w)
{
	struct otprof_set_walks set = {.op = w ? OTPROF_SET : OTPROF_REMOVE, .pid = pid};

	if (w)
		set.walks = *w;
	return kmod_call(kmod_self(s)->dev_fd, OTPROF_IOC_WALKS, &set);
}

static int kmod_set_hint(struct source *s, const char comm[OTP_COMM_LEN], const struct otp_hint *h)
{
	struct otprof_set_hint set = {.op = h ? OTPROF_SET : OTPROF_REMOVE};

	if (h)
		set.hint = *h;
	memcpy(set.comm, comm, sizeof(set.comm));
	return kmod_call(kmod_self(s)->dev_fd, OTPROF_IOC_HINT, &set);
}

static int kmod_set_cgroup(struct source *s, uint64_t cgroup_id, const struct otp_cgroup_rule *r)
{
	struct otprof_set_rule set = {.op = r ? OTPROF_SET : OTPROF_REMOVE, .cgroup_id = cgroup_id};

	if (r)
		set.rule = *r;
	return kmod_call(kmod_self(s)->dev_fd, OTPROF_IOC_RULE, &set);
}

/* CPUs that are online and to be sampled. */
static int kmod_cpus_due(const struct source_kmod *k)
{
	struct cpus online;
	int n = 0, err = cpus_online(&online);

	for (uint32_t cpu = 0; err >= 0 && cpu < k->info.cpus_nr; cpu++)
		n += cpus_has(&online, cpu) && cpus_has(&k->wanted, cpu);
	return err < 0 ? err : n;
}

/*
 * The module follows CPUs by itself; this call only reports the change. -EBUSY:
 * the counter of a CPU was taken by others; reported once, and the module tries
 * to get it back.
 */
static int kmod_follow_cpus(struct source *s, int *ret_changed)
{
	const struct source_kmod *k = kmod_self(s);
	struct otprof_cpus cpus = {0};
	int err = kmod_call(k->dev_fd, OTPROF_IOC_CPUS, &cpus);

	if (err < 0)
		return err;
	*ret_changed = (int)cpus.changed;
	return k->hardware && cpus.changed && (int)cpus.running < kmod_cpus_due(k) ? -EBUSY : 0;
}

static uint64_t kmod_expected_ticks(struct source *s)
{
	struct otprof_times t = {0};

	kmod_call(kmod_self(s)->dev_fd, OTPROF_IOC_TIMES, &t);
	return t.expected_ticks;
}

/* The module's timer wakes an idle CPU, so its ticks are taken, and counted as idle. */
static uint64_t kmod_idle_ticks(struct source *s)
{
	return 0;
}

static void kmod_run_time(struct source *s, uint64_t *ret_ns, uint64_t *ret_runs)
{
	struct otprof_times t = {0};

	kmod_call(kmod_self(s)->dev_fd, OTPROF_IOC_TIMES, &t);
	*ret_ns = t.run_ns;
	*ret_runs = t.runs;
}

const struct source_ops source_kmod = {
	.name = "kmod",
	.size = sizeof(struct source_kmod),
	.probe = kmod_probe,
	.open = kmod_open,
	.close = kmod_close,
	.layout = kmod_layout,
	.start = kmod_start,
	.stop = kmod_stop,
	.set_rate = kmod_set_rate,
	.set_defaults = kmod_set_defaults,
	.set_plan = kmod_set_plan,
	.set_walk = kmod_set_walk,
	.set_hint = kmod_set_hint,
	.set_cgroup = kmod_set_cgroup,
	.follow_cpus = kmod_follow_cpus,
	.expected_ticks = kmod_expected_ticks,
	.idle_ticks = kmod_idle_ticks,
	.run_time = kmod_run_time,
};
