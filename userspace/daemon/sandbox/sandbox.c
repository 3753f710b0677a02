// SPDX-License-Identifier: Apache-2.0
#include "daemon/sandbox/sandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/roles.h"
#include "daemon/sandbox/netroot.h"
#include "daemon/sandbox/sandbox_seccomp.h"
#include "source/perf_probe.h"
#include "symbol/index_build.h"
#include "symbol/index_write.h"

/* Of what use a capability is: where there is no sampler (mode = none), the monitor keeps what workers need. */
enum cap_use { CAP_FOR_SAMPLING, CAP_FOR_WORKERS };

/*
 * The capabilities that the monitor keeps, with reasons. All others leave its bounding set too, so that no worker
 * starts with more.
 */
static const struct {
	cap_value_t cap;
	enum cap_use use;
	const char *why;
} monitor_caps[] = {
	{CAP_BPF, CAP_FOR_SAMPLING, "plans and rules go into BPF maps; programs for CPUs that come"},
	{CAP_PERFMON, CAP_FOR_SAMPLING, "perf events for CPUs that come"},
	{CAP_SYS_PTRACE, CAP_FOR_SAMPLING, "opener: maps, exe, root and environ below /proc/PID of other users' processes; memory figure of the workers"},
	{CAP_DAC_READ_SEARCH, CAP_FOR_SAMPLING, "opener: programs and /proc files of other users, files of container runtimes"},
	{CAP_CHECKPOINT_RESTORE, CAP_FOR_SAMPLING, "opener: /proc/PID/map_files, for deleted and memfd code"},
	{CAP_SYSLOG, CAP_FOR_SAMPLING, "/proc/kallsyms with addresses, for an engine that is started again"},
	{CAP_IPC_LOCK, CAP_FOR_SAMPLING, "side-band buffers of CPUs that come are mapped beyond RLIMIT_MEMLOCK"},
	{CAP_SETUID, CAP_FOR_WORKERS, "a worker started again becomes its own user"},
	{CAP_SETGID, CAP_FOR_WORKERS, "the same, its group"},
	{CAP_SETPCAP, CAP_FOR_WORKERS, "a worker started again empties its bounding set"},
	{CAP_SYS_CHROOT, CAP_FOR_WORKERS, "a worker started again enters its private root"},
	{CAP_KILL, CAP_FOR_WORKERS, "workers have other users: stopping them, and their death with ours"},
};

static const cap_value_t opener_caps[] = {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE};

#define FILES_ENGINE 4096
#define FILES_OTHER  1024
#define THREADS_NET  64
/*
 * Bounds far above what a sound worker takes, so that one that was taken over fills neither memory nor disk. By
 * RLIMIT_DATA, since RLIMIT_AS would count the ring and the buffers of all CPUs too, which are mapped, not allocated.
 */
#define ENGINE_MEMORY (1ull << 30)
#define HUB_MEMORY    (512ull << 20) /* and its slots and requests, twice */
#define NET_MEMORY    (1ull << 30) /* and the queues, whose bounds the configuration has */
#define OPENER_MEMORY (256ull << 20)
#define FILE_BYTES    (1ull << 30) /* a memfd, a request in a file; also a log that standard error is redirected to */
/* Limits of the indexer. It maps files; its allocations stay small for any file. */
#define INDEXER_ADDRESSES (64ull << 30)
#define INDEXER_MEMORY	  (40ull << 20)
#define INDEXER_CPU_S	  120
#define FILES_INDEXER	  64
/* Limits of the fetcher: room for TLS and name resolution, for any server. */
#define FETCHER_MEMORY (96ull << 20)
#define FETCHER_CPU_S  120
#define FILES_FETCHER  64
#define THREADS_FETCHER 16
/* Limits of the decoder, of which our program's own mappings are some 25 MB. */
#define DECODER_ADDRESSES (64ull << 20)
#define DECODER_CPU_S	  10
#define FILES_DECODER	  16
#define INDEXER_NICE	  10 /* a tenth of the share of other processes: at 19 a busy host would never have lines */

static int sandbox_failed(const char *what, int err)
{
	log_error("cannot close the sandbox: %s: %s", what, strerror(-err));
	return err;
}

static void cap_freep(cap_t *c)
{
	if (*c)
		cap_free(*c);
}

static bool sandbox_kernel_has(cap_value_t cap)
{
	return prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0;
}

/*
 * Debian's kernels refuse perf events to CAP_PERFMON at paranoid 3, and kernels before 5.9 allow map_files to
 * CAP_SYS_ADMIN only.
 */
static bool sandbox_needs_sys_admin(void)
{
	return perf_paranoid() > 2 || !sandbox_kernel_has(CAP_PERFMON) || !sandbox_kernel_has(CAP_CHECKPOINT_RESTORE);
}

static int sandbox_add_cap(cap_t to, cap_t have, cap_value_t cap)
{
	cap_flag_value_t is = CAP_CLEAR;

	if (cap_get_flag(have, cap, CAP_PERMITTED, &is) < 0 || is == CAP_CLEAR)
		return 0;
	if (cap_set_flag(to, CAP_PERMITTED, 1, &cap, CAP_SET) < 0 || cap_set_flag(to, CAP_EFFECTIVE, 1, &cap, CAP_SET) < 0)
		return -errno;
	return 0;
}

/* Drops all capabilities but keep's from the bounding set; needs CAP_SETPCAP. */
static int sandbox_shrink_bounding(cap_t keep)
{
	for (cap_value_t cap = 0; sandbox_kernel_has(cap); cap++) {
		cap_flag_value_t is = CAP_CLEAR;

		if (keep)
			cap_get_flag(keep, cap, CAP_PERMITTED, &is);
		if (is == CAP_CLEAR && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

/* A key that is renewed may belong to the user of an ACME client; each reload reads it again. */
static bool sandbox_reads_key(const struct config *c)
{
	return c->hub_listen && c->hub_tls_key;
}

static bool sandbox_monitor_keeps(const struct config *c, size_t i)
{
	if (c->mode != SAMPLER_NONE || monitor_caps[i].use == CAP_FOR_WORKERS)
		return true;
	return monitor_caps[i].cap == CAP_DAC_READ_SEARCH && sandbox_reads_key(c);
}

static int sandbox_build_monitor_caps(const struct config *c, cap_t to)
{
	_cleanup_(cap_freep) cap_t have = cap_get_proc();
	int err = have ? 0 : -errno;

	for (size_t i = 0; i < ARRAY_SIZE(monitor_caps) && !err; i++)
		if (sandbox_monitor_keeps(c, i))
			err = sandbox_add_cap(to, have, monitor_caps[i].cap);
	if (!err && c->mode != SAMPLER_NONE && sandbox_needs_sys_admin())
		err = sandbox_add_cap(to, have, CAP_SYS_ADMIN);
	return err;
}

static int sandbox_set_limit(int resource, rlim_t value)
{
	struct rlimit have, want = {value, value};

	if (getrlimit(resource, &have) < 0)
		return -errno;
	if (have.rlim_max != RLIM_INFINITY && have.rlim_max < value)
		want.rlim_cur = want.rlim_max = have.rlim_max;
	return setrlimit(resource, &want) < 0 ? -errno : 0;
}

/* Stack bytes are secrets: no process dumps core, and none can be traced by the same user. */
static int sandbox_hide_memory(void)
{
	int err = sandbox_set_limit(RLIMIT_CORE, 0);

	if (err)
		return err;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

/*
 * Requests death with the monitor. The kernel resets this when the user changes, so it is set again after that; the
 * monitor is the process that made the socket.
 */
static int sandbox_die_with_parent(void)
{
	struct ucred monitor;
	socklen_t len = sizeof(monitor);

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	if (getsockopt(ROLE_SOCKET, SOL_SOCKET, SO_PEERCRED, &monitor, &len) < 0)
		return -errno;
	return getppid() == monitor.pid ? 0 : -ESRCH;
}

int sandbox_begin(void)
{
	int err = sandbox_hide_memory();

	if (err)
		return sandbox_failed("no core dumps", err);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sandbox_failed("no new privileges", -errno);
	err = sandbox_die_with_parent();
	return err ? sandbox_failed("the monitor is gone", err) : 0;
}

static int sandbox_change_user(const struct sandbox_user *u)
{
	if (setgroups(0, NULL) < 0 || setresgid(u->gid, u->gid, u->gid) < 0 || setresuid(u->uid, u->uid, u->uid) < 0)
		return -errno;
	return 0;
}

static int sandbox_set_caps(const cap_value_t *caps, int n)
{
	_cleanup_(cap_freep) cap_t c = cap_init();

	if (!c)
		return -errno;
	if (n && (cap_set_flag(c, CAP_PERMITTED, n, caps, CAP_SET) < 0 || cap_set_flag(c, CAP_EFFECTIVE, n, caps, CAP_SET) < 0))
		return -errno;
	return cap_set_proc(c) < 0 ? -errno : 0;
}

static int sandbox_become(const struct sandbox_user *u)
{
	int err = sandbox_shrink_bounding(NULL);

	if (!err)
		err = sandbox_change_user(u);
	if (!err)
		err = sandbox_set_caps(NULL, 0);
	/* The change of user has reset the process to the system's rule for core dumps. */
	if (!err)
		err = sandbox_hide_memory();
	if (!err)
		err = sandbox_die_with_parent();
	return err;
}

/* file_bytes: of the largest file that it may write; RLIM_INFINITY where that has no bound. */
static int sandbox_limit_memory(rlim_t memory_bytes, rlim_t file_bytes)
{
#ifdef __SANITIZE_ADDRESS__
	int err = 0; /* the sanitizer's shadow memory would count, all of it */
#else
	int err = sandbox_set_limit(RLIMIT_DATA, memory_bytes);
#endif

	return err || file_bytes == RLIM_INFINITY ? err : sandbox_set_limit(RLIMIT_FSIZE, file_bytes);
}

/* Enters the empty root, where there is one. */
static int sandbox_enter_root(const char *path)
{
	return chroot(path) < 0 || chdir("/") < 0 ? -errno : 0;
}

static void sandbox_empty_root_path(const struct config *c, char *to, size_t size)
{
	snprintf(to, size, "%s/empty", c->runtime_dir);
}

bool sandbox_ordinary(void)
{
	_cleanup_(cap_freep) cap_t have = cap_get_proc();
	cap_flag_value_t is = CAP_CLEAR;

	if (have)
		cap_get_flag(have, CAP_SETUID, CAP_EFFECTIVE, &is);
	return geteuid() != 0 && is == CAP_CLEAR;
}

/* Memory is hidden already. RLIMIT_NPROC counts all processes of the user, so a limit of 0 allows none. */
static int sandbox_close_ordinary(const char *role, rlim_t files, rlim_t processes, int (*filter)(void))
{
	int err = sandbox_set_limit(RLIMIT_NOFILE, files);

	if (!err && processes != RLIM_INFINITY)
		err = sandbox_set_limit(RLIMIT_NPROC, processes);
	if (!err)
		err = filter();
	return err ? sandbox_failed(role, err) : 0;
}

int sandbox_engine(const struct config *c, bool captures)
{
	struct sandbox_user user;
	char root[1100];
	int err = sandbox_limit_memory(MAX(ENGINE_MEMORY, c->memory_limit_bytes), captures ? RLIM_INFINITY : FILE_BYTES);

	if (err)
		return sandbox_failed("engine's limits", err);
	if (sandbox_ordinary())
		return sandbox_close_ordinary("engine", FILES_ENGINE, 0, seccomp_engine);
	err = sandbox_user_engine(c, false, &user);
	if (err)
		return sandbox_failed("engine's user", err);
	sandbox_empty_root_path(c, root, sizeof(root));
	err = sandbox_set_limit(RLIMIT_NOFILE, FILES_ENGINE);
	if (!err)
		err = sandbox_enter_root(root);
	if (err)
		return sandbox_failed(root, err);
	err = sandbox_become(&user);
	if (!err)
		err = sandbox_set_limit(RLIMIT_NPROC, 0);
	if (!err)
		err = seccomp_engine();
	return err ? sandbox_failed("engine", err) : 0;
}

/*
 * Loads the libraries that glibc and OpenSSL load on first use, before their files are out of reach. This system does
 * not need a library that it lacks.
 */
static void sandbox_load_late_libraries(void)
{
	static const char *const names[] = {"libgcc_s.so.1", "libnss_files.so.2", "libnss_dns.so.2"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		dlopen(names[i], RTLD_NOW);
}

static int sandbox_enter_netroot(const struct config *c)
{
	char root[1100];

	netroot_path(c, root, sizeof(root));
	/* Without a private root the monitor could not build one, which it has logged. */
	return netroot_exists(c) ? sandbox_enter_root(root) : 0;
}

/* Closes a process that keeps the network, from inside the private root, with these limits. */
static int sandbox_close_networked(const char *role, const struct config *c, const struct sandbox_user *user,
				   rlim_t files, rlim_t threads, int (*filter)(void))
{
	int err = sandbox_set_limit(RLIMIT_NOFILE, files);

	if (!err)
		err = sandbox_enter_netroot(c);
	if (err)
		return sandbox_failed("private root", err);
	err = sandbox_become(user);
	if (!err)
		err = sandbox_set_limit(RLIMIT_NPROC, threads);
	if (!err)
		err = filter();
	return err ? sandbox_failed(role, err) : 0;
}

static rlim_t sandbox_net_memory(const struct config *c)
{
	rlim_t bytes = NET_MEMORY;

	for (uint32_t i = 0; i < c->nr_exporters; i++)
		bytes += c->exporters[i].queue_bytes;
	return bytes;
}

int sandbox_net(const struct config *c)
{
	struct sandbox_user user;
	int err = sandbox_limit_memory(sandbox_net_memory(c), FILE_BYTES);

	if (err)
		return sandbox_failed("net's limits", err);
	if (sandbox_ordinary()) {
		sandbox_load_late_libraries();
		return sandbox_close_ordinary("net", FILES_OTHER, RLIM_INFINITY, seccomp_net);
	}
	err = sandbox_user_net(c, false, &user);
	if (err)
		return sandbox_failed("net's user", err);
	sandbox_load_late_libraries();
	return sandbox_close_networked("net", c, &user, FILES_OTHER, THREADS_NET, seccomp_net);
}

/* No worker of a monitor: the process that waits for it is its parent. */
static int sandbox_begin_try(void)
{
	int err = sandbox_hide_memory();

	if (!err && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0))
		err = -errno;
	return err ? err : sandbox_limit_memory(NET_MEMORY, FILE_BYTES);
}

int sandbox_try(const struct config *c)
{
	struct sandbox_user user;
	int err = sandbox_begin_try();

	if (err)
		return sandbox_failed("try", err);
	sandbox_load_late_libraries();
	if (sandbox_ordinary())
		return sandbox_close_ordinary("try", FILES_OTHER, RLIM_INFINITY, seccomp_net);
	err = sandbox_user_net(c, false, &user);
	if (!err)
		err = sandbox_shrink_bounding(NULL);
	if (!err)
		err = sandbox_change_user(&user);
	if (!err)
		err = sandbox_set_caps(NULL, 0);
	if (!err)
		err = sandbox_begin_try(); /* a change of user resets it */
	if (err)
		return sandbox_failed("try", err);
	return sandbox_close_ordinary("try", FILES_OTHER, THREADS_NET, seccomp_net);
}

/* The lowest priority: it runs for long, on foreign files, and nothing waits for it. */
static int sandbox_limit_indexer(void)
{
	static const struct {
		int resource;
		rlim_t value;
	} limits[] = {{RLIMIT_NOFILE, FILES_INDEXER}, {RLIMIT_AS, INDEXER_ADDRESSES},
		      {RLIMIT_DATA, INDEXER_MEMORY},  {RLIMIT_FSIZE, INDEX_SCRATCH_MAX + INDEX_DIR_MAX},
		      {RLIMIT_CPU, INDEXER_CPU_S},    {RLIMIT_NPROC, 0}};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits) && !err; i++)
		err = sandbox_set_limit(limits[i].resource, limits[i].value);
	return err;
}

/* Closes a process that has descriptors and no rights, which yields to the processes that are profiled. */
static int sandbox_close_rightless(const char *role, const struct config *c, const struct sandbox_user *user,
				   int (*limit)(void), int (*filter)(void))
{
	char root[1100];
	int err;

	sandbox_empty_root_path(c, root, sizeof(root));
	err = sandbox_enter_root(root);
	if (err)
		return sandbox_failed(root, err);
	err = sandbox_become(user);
	if (!err)
		err = limit();
	if (!err)
		err = filter();
	return err ? sandbox_failed(role, err) : 0;
}

/* What slots and requests may take, twice: a slot that is made smaller exists twice for that time. */
uint64_t sandbox_hub_memory(const struct config *c)
{
	return HUB_MEMORY + 2 * c->hub.max_slots * c->hub.slot_max_bytes + 16 * c->hub_receive_bytes;
}

static int sandbox_limit_hub(void)
{
	int err = sandbox_set_limit(RLIMIT_NOFILE, FILES_OTHER);

	return err ? err : sandbox_set_limit(RLIMIT_NPROC, 0);
}

int sandbox_hub(const struct config *c)
{
	struct sandbox_user user;
	int err = sandbox_limit_memory(sandbox_hub_memory(c), FILE_BYTES);

	if (err)
		return sandbox_failed("hub's limits", err);
	if (sandbox_ordinary())
		return sandbox_close_ordinary("hub", FILES_OTHER, 0, seccomp_hub);
	err = sandbox_user_hub(c, false, &user);
	return err ? sandbox_failed("hub's user", err) :
		     sandbox_close_rightless("hub", c, &user, sandbox_limit_hub, seccomp_hub);
}

int sandbox_indexer(const struct config *c)
{
	struct sandbox_user user;
	int err;

	setpriority(PRIO_PROCESS, 0, INDEXER_NICE);
	if (sandbox_ordinary()) {
		err = sandbox_limit_indexer();
		return err ? sandbox_failed("indexer", err) :
			     sandbox_close_ordinary("indexer", FILES_INDEXER, 0, seccomp_indexer);
	}
	err = sandbox_user_indexer(c, &user);
	return err ? sandbox_failed("indexer's user", err) :
		     sandbox_close_rightless("indexer", c, &user, sandbox_limit_indexer, seccomp_indexer);
}

static int sandbox_limit_decoder(void)
{
	int err = sandbox_set_limit(RLIMIT_NOFILE, FILES_DECODER);

#ifndef __SANITIZE_ADDRESS__
	if (!err)
		err = sandbox_set_limit(RLIMIT_AS, DECODER_ADDRESSES);
#endif
	if (!err)
		err = sandbox_set_limit(RLIMIT_FSIZE, FILE_BYTES);
	if (!err)
		err = sandbox_set_limit(RLIMIT_CPU, DECODER_CPU_S);
	return err ? err : sandbox_set_limit(RLIMIT_NPROC, 0);
}

/* At the priority of other processes: samples wait for its answers, which a busy host would delay past their deadline. */
int sandbox_decoder(const struct config *c, const struct sandbox_user *user)
{
	int err;

	if (sandbox_ordinary()) {
		err = sandbox_limit_decoder();
		return err ? sandbox_failed("decoder", err) :
			     sandbox_close_ordinary("decoder", FILES_DECODER, 0, seccomp_decoder);
	}
	return user->uid && user->gid ? sandbox_close_rightless("decoder", c, user, sandbox_limit_decoder, seccomp_decoder) :
			   sandbox_failed("decoder's user", -EINVAL);
}

static int sandbox_limit_fetcher(const struct config *c)
{
	int err = sandbox_set_limit(RLIMIT_FSIZE, c->debuginfod.file_bytes);

	if (!err)
		err = sandbox_set_limit(RLIMIT_DATA, FETCHER_MEMORY);
	if (!err)
		err = sandbox_set_limit(RLIMIT_CPU, FETCHER_CPU_S);
	return err;
}

/* The same network as net's, but another user: net's key files and destinations are not accessible. */
int sandbox_fetcher(const struct config *c)
{
	struct sandbox_user user;
	int err;

	setpriority(PRIO_PROCESS, 0, INDEXER_NICE);
	sandbox_load_late_libraries();
	err = sandbox_limit_fetcher(c);
	if (err)
		return sandbox_failed("fetcher", err);
	if (sandbox_ordinary())
		return sandbox_close_ordinary("fetcher", FILES_FETCHER, RLIM_INFINITY, seccomp_fetcher);
	err = sandbox_user_fetcher(c, &user);
	if (err)
		return sandbox_failed("fetcher's user", err);
	return sandbox_close_networked("fetcher", c, &user, FILES_FETCHER, THREADS_FETCHER, seccomp_fetcher);
}

/* The opener's three capabilities do not need root: as root it could also write root's files. */
int sandbox_opener(const struct config *c)
{
	struct sandbox_user user;
	cap_value_t caps[ARRAY_SIZE(opener_caps) + 1];
	int n = 0, err = sandbox_limit_memory(OPENER_MEMORY, FILE_BYTES);

	if (err)
		return sandbox_failed("opener's limits", err);
	if (sandbox_ordinary())
		return sandbox_close_ordinary("opener", FILES_OTHER, 0, seccomp_opener);
	err = sandbox_user_opener(c, &user);
	if (err)
		return sandbox_failed("opener's user", err);
	for (size_t i = 0; i < ARRAY_SIZE(opener_caps); i++)
		if (sandbox_kernel_has(opener_caps[i]) && prctl(PR_CAPBSET_READ, opener_caps[i], 0, 0, 0) == 1)
			caps[n++] = opener_caps[i];
	if (!sandbox_kernel_has(CAP_CHECKPOINT_RESTORE))
		caps[n++] = CAP_SYS_ADMIN;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return sandbox_failed("keep capabilities", -errno);
	err = sandbox_shrink_bounding(NULL);
	if (!err)
		err = sandbox_change_user(&user);
	if (!err)
		err = sandbox_set_caps(caps, n);
	if (!err)
		err = sandbox_hide_memory();
	if (!err)
		err = sandbox_die_with_parent();
	if (!err)
		err = sandbox_set_limit(RLIMIT_NPROC, 0);
	if (!err)
		err = seccomp_opener();
	return err ? sandbox_failed("opener", err) : 0;
}

static int sandbox_close_monitor(void)
{
	int err = sandbox_hide_memory();

	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		err = -errno;
	return err ? sandbox_failed("monitor", err) : 0;
}

int sandbox_monitor(const struct config *c)
{
	_cleanup_(cap_freep) cap_t keep = cap_init();
	int err;

	if (sandbox_ordinary())
		return sandbox_close_monitor();
	err = keep ? sandbox_build_monitor_caps(c, keep) : -errno;
	if (err)
		return sandbox_failed("capabilities", err);
	err = sandbox_shrink_bounding(keep);
	if (!err && cap_set_proc(keep) < 0)
		err = -errno;
	return err ? sandbox_failed("monitor", err) : sandbox_close_monitor();
}

/* Directory of the engine's root; made by the monitor. */
int sandbox_prepare(const struct config *c)
{
	char root[1100];

	sandbox_empty_root_path(c, root, sizeof(root));
	return file_make_dirs(root, 0755, 0555);
}

const char *sandbox_missing_capability(void)
{
	static const struct {
		cap_value_t cap;
		const char *name;
	} needed[] = {{CAP_SETUID, "CAP_SETUID"},
		      {CAP_SETGID, "CAP_SETGID"},
		      {CAP_SETPCAP, "CAP_SETPCAP"},
		      {CAP_SYS_CHROOT, "CAP_SYS_CHROOT"},
		      {CAP_KILL, "CAP_KILL"},
		      {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
		      {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"}};
	_cleanup_(cap_freep) cap_t have = cap_get_proc();

	for (size_t i = 0; have && i < ARRAY_SIZE(needed); i++) {
		cap_flag_value_t is = CAP_CLEAR;

		cap_get_flag(have, needed[i].cap, CAP_EFFECTIVE, &is);
		if (is == CAP_CLEAR)
			return needed[i].name;
	}
	return NULL;
}
