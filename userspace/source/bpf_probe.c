// SPDX-License-Identifier: Apache-2.0
#include "source/bpf_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "source/perf_probe.h"
#include "source/pids.h"

/* Linux, include/linux/proc_ns.h: PROC_PID_INIT_INO */

__attribute__((format(printf, 3, 4))) static int refuse(char why[SOURCE_WHY], int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, SOURCE_WHY, fmt, ap);
	va_end(ap);
	return err;
}

int kernel_version_parse(const char *release, const char *version, struct kernel_version *ret)
{
	struct kernel_version v = {0}, real;
	const char *debian = strstr(version, "Debian ");

	if (sscanf(release, "%u.%u.%u", &v.major, &v.minor, &v.patch) < 2)
		return -EINVAL;
	/* Debian's release says 6.1.0-50, its version text "Debian 6.1.140-1": the kernel it was built from. */
	if (debian && sscanf(debian, "Debian %u.%u.%u", &real.major, &real.minor, &real.patch) == 3 &&
	    real.major == v.major && real.minor == v.minor)
		v = real;
	*ret = v;
	return 0;
}

bool kernel_version_below(const struct kernel_version *v, unsigned int major, unsigned int minor, unsigned int patch)
{
	if (v->major != major)
		return v->major < major;
	if (v->minor != minor)
		return v->minor < minor;
	return v->patch < patch;
}

bool kernel_can_freeze(const struct kernel_version *v)
{
	if (v->major == 6 && v->minor == 1)
		return v->patch < 36;
	if (v->major == 6 && v->minor == 3)
		return v->patch < 10;
	return !kernel_version_below(v, 5, 19, 0) && kernel_version_below(v, 6, 4, 0);
}

static int kernel_version_here(struct kernel_version *ret, struct utsname *ret_uts)
{
	struct kernel_version v;
	char text[256];
	int err;

	if (uname(ret_uts) < 0)
		return -errno;
	err = kernel_version_parse(ret_uts->release, ret_uts->version, ret);
	/* Ubuntu: "Ubuntu 6.2.0-39.40-generic 6.2.16", the last word being the kernel it was built from. */
	if (err == 0 && file_read_text("/proc/version_signature", text, sizeof(text)) > 0 &&
	    sscanf(text, "%*s %*s %u.%u.%u", &v.major, &v.minor, &v.patch) == 3)
		*ret = v;
	return err;
}

static int probe_kernel(char why[SOURCE_WHY])
{
	struct kernel_version v;
	struct utsname uts;

	if (kernel_version_here(&v, &uts) < 0)
		return refuse(why, -ENOSYS, "the kernel does not say its version");
	if (kernel_version_below(&v, 5, 8, 0))
		return refuse(why, -ENOSYS, "kernel %s has no BPF ring buffer (5.8 and later): use mode = kmod",
			      uts.release);
	if (kernel_can_freeze(&v))
		return refuse(why, -ENOSYS,
			      "kernel %s (%u.%u.%u) can freeze when user memory is copied from an interrupt (5.19 to 6.3, "
			      "mended in 6.1.36, 6.3.10 and 6.4): update the kernel, or use mode = kmod",
			      uts.release, v.major, v.minor, v.patch);
	return 0;
}

static int probe_btf(char why[SOURCE_WHY])
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		return 0;
	return refuse(why, -ENOENT,
		      "no BTF: /sys/kernel/btf/vmlinux cannot be read (%s); the kernel needs CONFIG_DEBUG_INFO_BTF and "
		      "a mounted /sys, else use mode = kmod",
		      strerror(errno));
}

/* Records carry the pids of the initial namespace; in another one they would name the wrong processes. */
static int probe_pid_namespace(char why[SOURCE_WHY])
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0)
		return refuse(why, -errno, "/proc/self/ns/pid: %s; otprofd needs /proc", strerror(errno));
	if (pids_are_the_hosts())
		return 0;
	return refuse(why, -EINVAL,
		      "otprofd runs in a pid namespace of its own and would name the wrong processes: start it in the "
		      "host's (hostPID: true, docker run --pid=host)");
}

static uint64_t effective_capabilities(void)
{
	const char *line;
	char text[4096];

	if (file_read_text("/proc/self/status", text, sizeof(text)) < 0)
		return 0;
	line = strstr(text, "\nCapEff:");
	return line ? strtoull(line + strlen("\nCapEff:"), NULL, 16) : 0;
}

static int probe_capabilities(char why[SOURCE_WHY])
{
	uint64_t caps = effective_capabilities();
	bool admin = caps >> CAP_SYS_ADMIN & 1, bpf = caps >> CAP_BPF & 1, perfmon = caps >> CAP_PERFMON & 1;
	int paranoid = perf_paranoid();

	if (!admin && !(bpf && perfmon))
		return refuse(why, -EPERM, "missing capability%s%s: run as root, or grant %s (AmbientCapabilities=, setcap)",
			      bpf ? "" : " CAP_BPF", perfmon ? "" : " CAP_PERFMON",
			      bpf ? "CAP_PERFMON" : perfmon ? "CAP_BPF" : "both");
	if (!admin && paranoid > 2)
		return refuse(why, -EPERM,
			      "kernel.perf_event_paranoid = %d: this kernel then wants CAP_SYS_ADMIN for perf events; "
			      "grant it, or set sysctl kernel.perf_event_paranoid=2",
			      paranoid);
	return 0;
}

static int probe_lockdown(char why[SOURCE_WHY])
{
	char text[128];

	if (file_read_text("/sys/kernel/security/lockdown", text, sizeof(text)) < 0 || !strstr(text, "[confidentiality]"))
		return 0;
	return refuse(why, -EPERM,
		      "kernel lockdown is set to confidentiality, which forbids BPF programs to read memory: boot with "
		      "lockdown=integrity or none");
}

int bpf_probe_host(char why[SOURCE_WHY])
{
	static int (*const probes[])(char *) = {
		probe_kernel, probe_btf, probe_pid_namespace, probe_capabilities, probe_lockdown,
	};
	int err = 0;

	for (size_t i = 0; err == 0 && i < ARRAY_SIZE(probes); i++)
		err = probes[i](why);
	return err;
}

int bpf_raise_memlock(uint64_t need, char why[SOURCE_WHY])
{
	struct rlimit limit, more;
	struct kernel_version v;
	struct utsname uts;

	if (kernel_version_here(&v, &uts) < 0 || !kernel_version_below(&v, 5, 11, 0))
		return 0;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return -errno;
	if (limit.rlim_cur >= need)
		return 0;
	more = (struct rlimit){.rlim_cur = need, .rlim_max = MAX(limit.rlim_max, need)};
	if (setrlimit(RLIMIT_MEMLOCK, &more) == 0)
		return 0;
	return refuse(why, -EPERM,
		      "kernel %s charges BPF maps to RLIMIT_MEMLOCK: %llu KiB are needed, the limit is %llu KiB; set "
		      "LimitMEMLOCK=%lluK (ulimit -l %llu), or grant CAP_SYS_RESOURCE",
		      uts.release, (unsigned long long)need >> 10, (unsigned long long)limit.rlim_max >> 10,
		      (unsigned long long)need >> 10, (unsigned long long)need >> 10);
}
