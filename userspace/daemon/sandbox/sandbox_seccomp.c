// SPDX-License-Identifier: Apache-2.0
#include "daemon/sandbox/sandbox_seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef __NR_openat2
#define __NR_openat2 437 /* Linux 5.6, the same number everywhere */
#endif
#ifndef __SNR_openat2
#define __SNR_openat2 __NR_openat2
#endif
#ifndef __SNR_clone3
#define __SNR_clone3 435 /* Linux 5.3 */
#endif

/* Level of libseccomp's interface at which the kernel can end a whole process (seccomp_api_get(3)). */
#define API_KILL_PROCESS 3

/* Every role: memory without new code, waiting, time, messages, exit. */
static const int common[] = {
	SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write), SCMP_SYS(writev),
	SCMP_SYS(lseek), SCMP_SYS(fstat), SCMP_SYS(close), SCMP_SYS(dup), SCMP_SYS(fcntl), SCMP_SYS(ftruncate),
	SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(memfd_create),
	SCMP_SYS(futex), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime),
	SCMP_SYS(eventfd2), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(recvfrom), SCMP_SYS(sendto),
	SCMP_SYS(shutdown), SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(gettimeofday),
	SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(getrandom), SCMP_SYS(getpid), SCMP_SYS(getppid),
	SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid),
	SCMP_SYS(getrusage), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(sysinfo),
	SCMP_SYS(uname), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(exit), SCMP_SYS(exit_group),
	SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(membarrier), SCMP_SYS(getrlimit),
};

static const int engine_calls[] = {SCMP_SYS(pwrite64), SCMP_SYS(fdatasync), SCMP_SYS(fadvise64)};

static const int net_calls[] = {
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(creat), SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(newfstatat),
	SCMP_SYS(statx), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink),
	SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(pwrite64),
	SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(unlink), SCMP_SYS(unlinkat),
	SCMP_SYS(fchmod), SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(getcwd), SCMP_SYS(connect), SCMP_SYS(bind),
	SCMP_SYS(listen), SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(getsockname), SCMP_SYS(getpeername),
	SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(sendmmsg), SCMP_SYS(recvmmsg), SCMP_SYS(pipe),
	SCMP_SYS(pipe2), SCMP_SYS(select), SCMP_SYS(pselect6), SCMP_SYS(set_tid_address), SCMP_SYS(dup3),
	SCMP_SYS(sendfile), SCMP_SYS(fadvise64), SCMP_SYS(mkdirat), SCMP_SYS(flock),
};

/* A server on a socket that listens already: it opens no file, makes no socket and connects to nobody. */
static const int hub_calls[] = {
	SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt),
	SCMP_SYS(setsockopt),
};

/* A client: it does not listen, creates no file, and opens for reading only. */
static const int fetcher_calls[] = {
	SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(access), SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(fstatfs), SCMP_SYS(getcwd),
	SCMP_SYS(fdatasync), SCMP_SYS(pwrite64), SCMP_SYS(fadvise64), SCMP_SYS(connect), SCMP_SYS(bind),
	SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(sendmmsg),
	SCMP_SYS(recvmmsg), SCMP_SYS(pipe), SCMP_SYS(pipe2), SCMP_SYS(select), SCMP_SYS(pselect6),
	SCMP_SYS(set_tid_address), SCMP_SYS(dup3),
};

static const int opener_calls[] = {
	SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(fstatfs), SCMP_SYS(statfs),
	SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(fadvise64),
};

/*
 * The whole list of the decoder, which has the memory of a process: sendto passes no descriptors, as sendmsg does, and
 * nothing duplicates or makes one.
 */
static const int decoder_calls[] = {
	SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(recvmsg), SCMP_SYS(sendto), SCMP_SYS(poll),
	SCMP_SYS(ppoll), SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
	SCMP_SYS(brk), SCMP_SYS(futex), SCMP_SYS(clock_gettime), SCMP_SYS(getrandom), SCMP_SYS(getpid),
	SCMP_SYS(gettid), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(exit), SCMP_SYS(exit_group),
};

/* Calls that neither we nor our libraries ever make. */
static const int hostile[] = {
	SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev),
	SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root),
	SCMP_SYS(chroot), SCMP_SYS(setns), SCMP_SYS(unshare), SCMP_SYS(init_module), SCMP_SYS(finit_module),
	SCMP_SYS(delete_module), SCMP_SYS(kexec_load), SCMP_SYS(setuid), SCMP_SYS(setgid), SCMP_SYS(setresuid),
	SCMP_SYS(setresgid), SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(userfaultfd),
	SCMP_SYS(io_uring_setup), SCMP_SYS(reboot), SCMP_SYS(swapon), SCMP_SYS(mknod), SCMP_SYS(mknodat),
};

static int allow_all(scmp_filter_ctx ctx, const int *calls, size_t n)
{
	int err = 0;

	/* -EDOM: this architecture does not have the call, so it cannot be made. */
	for (size_t i = 0; i < n && !err; i++) {
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 0);
		if (err == -EDOM)
			err = 0;
	}
	return err;
}

/* Before Linux 4.14 a filter can end a thread only; our workers have one that matters. */
static uint32_t kill_action(void)
{
	return seccomp_api_get() >= API_KILL_PROCESS ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_KILL_THREAD;
}

static int kill_hostile(scmp_filter_ctx ctx)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(hostile) && !err; i++) {
		err = seccomp_rule_add(ctx, kill_action(), hostile[i], 0);
		if (err == -EDOM)
			err = 0;
	}
	return err;
}

/* Memory that never becomes executable, and signals to ourselves only (abort). */
static int memory_rules(scmp_filter_ctx ctx)
{
	int err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
	return err;
}

static int common_rules(scmp_filter_ctx ctx)
{
	int err = allow_all(ctx, common, ARRAY_SIZE(common));

	return err ? err : memory_rules(ctx);
}

/* fstat, as newer C libraries spell it. */
static int allow_fstat(scmp_filter_ctx ctx)
{
	int err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1, SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH, 0));

	return err == -EDOM ? 0 : err;
}

static int engine_rules(scmp_filter_ctx ctx)
{
	int err = common_rules(ctx);

	if (!err)
		err = allow_all(ctx, engine_calls, ARRAY_SIZE(engine_calls));
	return err ? err : allow_fstat(ctx);
}

static int decoder_rules(scmp_filter_ctx ctx)
{
	int err = allow_all(ctx, decoder_calls, ARRAY_SIZE(decoder_calls));

	if (!err)
		err = memory_rules(ctx);
	return err ? err : allow_fstat(ctx);
}

/* TCP and UDP; the resolver's netlink, which tells our addresses. Other protocols are code that nobody here needs. */
static const struct {
	int family, type, protocol;
} sockets[] = {
	{AF_INET, SOCK_STREAM, 0},   {AF_INET, SOCK_STREAM, IPPROTO_TCP},   {AF_INET, SOCK_DGRAM, 0},
	{AF_INET, SOCK_DGRAM, IPPROTO_UDP},  {AF_INET6, SOCK_STREAM, 0},    {AF_INET6, SOCK_STREAM, IPPROTO_TCP},
	{AF_INET6, SOCK_DGRAM, 0},   {AF_INET6, SOCK_DGRAM, IPPROTO_UDP},   {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE},
};

#define SOCKET_TYPE 0xf /* without SOCK_CLOEXEC and SOCK_NONBLOCK */

static int allow_sockets(scmp_filter_ctx ctx)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sockets) && !err; i++)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 3,
				       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)sockets[i].family, 0),
				       SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPE, (scmp_datum_t)sockets[i].type),
				       SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)sockets[i].protocol, 0));
	return err;
}

/* What resolver, curl and the metrics' server ask of a socket; nothing of a terminal (TIOCSTI types into it). */
static int allow_ioctls(scmp_filter_ctx ctx)
{
	static const unsigned long requests[] = {FIONREAD, FIONBIO, SIOCGIFINDEX, SIOCGIFNAME};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(requests) && !err; i++)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, requests[i], 0));
	return err;
}

/*
 * Sockets, and pairs for waking threads. Threads, but no processes; clone3's
 * flags cannot be seen here, so the C library is sent back to clone.
 */
static int network_rules(scmp_filter_ctx ctx, const int *calls, size_t n)
{
	int err = common_rules(ctx);

	if (!err)
		err = allow_all(ctx, calls, n);
	if (!err)
		err = allow_sockets(ctx);
	if (!err)
		err = allow_ioctls(ctx);
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), __SNR_clone3, 0);
	return err;
}

static int net_rules(scmp_filter_ctx ctx)
{
	return network_rules(ctx, net_calls, ARRAY_SIZE(net_calls));
}

static int hub_rules(scmp_filter_ctx ctx)
{
	int err = common_rules(ctx);

	if (!err)
		err = allow_all(ctx, hub_calls, ARRAY_SIZE(hub_calls));
	if (!err)
		err = allow_ioctls(ctx);
	return err ? err : allow_fstat(ctx);
}

#define NO_WRITING (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND)

static int allow_reading(scmp_filter_ctx ctx)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, NO_WRITING, 0));
}

static int fetcher_rules(scmp_filter_ctx ctx)
{
	int err = network_rules(ctx, fetcher_calls, ARRAY_SIZE(fetcher_calls));

	return err ? err : allow_reading(ctx);
}

/* Opens for reading only. A filter cannot read openat2's flags; the opener's user owns nothing. */
static int opener_rules(scmp_filter_ctx ctx)
{
	static const unsigned int namespaces[] = {NS_GET_USERNS, NS_GET_PARENT, NS_GET_OWNER_UID};
	int err = common_rules(ctx);

	if (!err)
		err = allow_all(ctx, opener_calls, ARRAY_SIZE(opener_calls));
	if (!err)
		err = allow_reading(ctx);
	if (!err)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, __SNR_openat2, 0);
	for (size_t i = 0; i < ARRAY_SIZE(namespaces) && !err; i++)
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
				       SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)namespaces[i], 0));
	return err;
}

static void release(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

static int sandbox_load_filter(int (*rules)(scmp_filter_ctx ctx))
{
	_cleanup_(release) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = ctx ? 0 : -ENOMEM;

	if (!err)
		err = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, kill_action());
	if (!err)
		err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!err)
		err = rules(ctx);
	if (!err)
		err = kill_hostile(ctx);
	return err ? err : seccomp_load(ctx);
}

int seccomp_engine(void)
{
	return sandbox_load_filter(engine_rules);
}

int seccomp_net(void)
{
	return sandbox_load_filter(net_rules);
}

int seccomp_hub(void)
{
	return sandbox_load_filter(hub_rules);
}

int seccomp_opener(void)
{
	return sandbox_load_filter(opener_rules);
}

/* Descriptors to read and to write, memory, and nothing else: the engine's rules. */
int seccomp_indexer(void)
{
	return sandbox_load_filter(engine_rules);
}

int seccomp_fetcher(void)
{
	return sandbox_load_filter(fetcher_rules);
}

int seccomp_decoder(void)
{
	return sandbox_load_filter(decoder_rules);
}
