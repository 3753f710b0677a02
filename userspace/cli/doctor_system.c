// SPDX-License-Identifier: Apache-2.0
/* Checks of the system: what the distribution and the administrator have set up. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/doctor.h"
#include "source/size.h"
#include "source/source.h"

#define SECURE_BOOT "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

static bool secure_boot_is_on(const struct doctor *d)
{
	char variable[8] = {0};

	/* Four bytes of attributes, then the value. */
	return doctor_read(d, SECURE_BOOT, variable, sizeof(variable)) >= 5 && variable[4] == 1;
}

static bool module_is_loaded(const struct doctor *d)
{
	return doctor_exists(d, "/dev/otprof") || doctor_exists(d, "/sys/module/otprof");
}

static bool module_is_built(const struct doctor *d)
{
	static const char *const places[] = {"updates/dkms", "updates", "extra", "weak-updates", "kernel/drivers/misc"};
	char dir[400];

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(dir, sizeof(dir), "/lib/modules/%s/%s", d->release, places[i]);
		if (doctor_has(d, dir, "otprof.ko"))
			return true;
	}
	return false;
}

/* The certificate of the key that DKMS signs with; Ubuntu stores it elsewhere. */
static const char *module_signing_key(const struct doctor *d)
{
	static const char ubuntu[] = "/var/lib/shim-signed/mok/MOK.der";

	return doctor_exists(d, ubuntu) ? ubuntu : "/var/lib/dkms/mok.pub";
}

void doctor_secure_boot(struct doctor *d, struct finding *f)
{
	if (!secure_boot_is_on(d)) {
		doctor_set(f, DOCTOR_OK, "%s", doctor_exists(d, "/sys/firmware/efi") ? "off" : "none: no UEFI");
	} else if (module_is_loaded(d) || !d->no_bpf) {
		doctor_set(f, DOCTOR_OK, "on: a module must be signed with a key that is enrolled");
		doctor_fix(f, "mokutil --import %s && reboot, if the module is wanted", module_signing_key(d));
	} else {
		doctor_set(f, DOCTOR_WARN, "on: the module loads only when it is signed with a key that is enrolled");
		doctor_fix(f, "mokutil --import %s && reboot", module_signing_key(d));
	}
}

void doctor_module(struct doctor *d, struct finding *f)
{
	enum doctor_level level = d->no_bpf ? DOCTOR_WARN : DOCTOR_OK;
	const char *why = d->no_bpf ? "" : "; not needed, BPF samples here";

	if (doctor_exists(d, "/dev/otprof")) {
		doctor_set(f, DOCTOR_OK, "loaded");
		return;
	}
	if (module_is_loaded(d)) {
		doctor_set(f, level, "loaded, but there is no /dev/otprof%s", why);
		doctor_fix(f, "modprobe -r otprof && modprobe otprof; in a container: --device /dev/otprof");
	} else if (module_is_built(d)) {
		doctor_set(f, level, "built for this kernel, not loaded%s", why);
		doctor_fix(f, "modprobe otprof");
	} else {
		doctor_set(f, level, "not built for this kernel%s", why);
		doctor_fix(f, "%s otprof-dkms && modprobe otprof", d->install);
	}
	d->no_kmod = d->no_kmod ? d->no_kmod : f->id;
}

/* The newest directory entry that is a version; false: none. */
static bool doctor_dkms_version(const struct doctor *d, char to[64])
{
	const struct dirent *e;
	char path[4200];
	DIR *at;

	snprintf(path, sizeof(path), "%s/var/lib/dkms/otprof", d->root);
	to[0] = '\0';
	at = opendir(path);
	while (at && (e = readdir(at)))
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9' && strverscmp(e->d_name, to) > 0)
			snprintf(to, 64, "%.63s", e->d_name);
	if (at)
		closedir(at);
	return *to;
}

void doctor_dkms(struct doctor *d, struct finding *f)
{
	char version[64], path[400];

	if (!doctor_dkms_version(d, version)) {
		doctor_set(f, DOCTOR_OK, "no module source is registered");
		return;
	}
	snprintf(path, sizeof(path), "/var/lib/dkms/otprof/%s/%s", version, d->release);
	if (doctor_exists(d, path)) {
		doctor_set(f, DOCTOR_OK, "otprof %s, built for %s", version, d->release);
		return;
	}
	snprintf(path, sizeof(path), "/lib/modules/%s/build", d->release);
	if (doctor_exists(d, path)) {
		doctor_set(f, DOCTOR_WARN, "otprof %s is registered, not built for %s", version, d->release);
		doctor_fix(f, "dkms install otprof/%s -k %s", version, d->release);
	} else {
		doctor_set(f, DOCTOR_WARN, "otprof %s is registered, but the headers of %s are missing", version, d->release);
		doctor_fix(f, "%s %s-%s", d->install, d->debian ? "linux-headers" : "kernel-devel", d->release);
	}
}

void doctor_cgroup(struct doctor *d, struct finding *f)
{
	if (doctor_exists(d, "/sys/fs/cgroup/cgroup.controllers")) {
		doctor_set(f, DOCTOR_OK, "version 2");
	} else if (doctor_exists(d, "/sys/fs/cgroup/unified") || doctor_has(d, "/sys/fs/cgroup", "")) {
		doctor_set(f, DOCTOR_WARN, "version 1%s: profiles are whole; selecting by unit, container or cgroup goes process by process",
			   doctor_exists(d, "/sys/fs/cgroup/unified") ? " with version 2 beside it" : "");
		doctor_fix(f, "boot with systemd.unified_cgroup_hierarchy=1");
	} else {
		doctor_set(f, DOCTOR_WARN, "none is mounted: workloads are named by program only");
		doctor_fix(f, "mount -t cgroup2 cgroup2 /sys/fs/cgroup");
	}
}

static uint32_t doctor_cpus_online(const struct doctor *d)
{
	char text[1024], *at = text;
	uint32_t n = 0, from, to;
	int len;

	if (doctor_read(d, "/sys/devices/system/cpu/online", text, sizeof(text)) <= 0)
		return 1;
	while (sscanf(at, "%u%n", &from, &len) == 1) {
		at += len;
		to = from;
		if (*at == '-' && sscanf(at, "-%u%n", &to, &len) == 1)
			at += len;
		n += to >= from ? to - from + 1 : 1;
		if (*at++ != ',')
			break;
	}
	return MAX(n, 1u);
}

void doctor_memory(struct doctor *d, struct finding *f)
{
	uint32_t cpus = doctor_cpus_online(d);
	unsigned long long available = 0;
	uint64_t need = size_memory(cpus, SOURCE_HZ_DEFAULT);
	char text[4096], want[32], have[32];
	const char *line;

	line = doctor_read(d, "/proc/meminfo", text, sizeof(text)) > 0 ? strstr(text, "MemAvailable:") : NULL;
	if (line)
		sscanf(line, "MemAvailable: %llu", &available);
	available <<= 10;
	format_bytes(want, sizeof(want), need);
	format_bytes(have, sizeof(have), available);
	if (!line || available > 4 * need) {
		doctor_set(f, DOCTOR_OK, "%s wanted at %u Hz on %u CPUs, %s available", want,
			   SOURCE_HZ_DEFAULT, cpus, line ? have : "unknown");
		return;
	}
	doctor_set(f, DOCTOR_WARN, "%s wanted at %u Hz on %u CPUs, only %s available", want, SOURCE_HZ_DEFAULT, cpus,
		   have);
	doctor_fix(f, "[limits] memory in /etc/otprof.conf: caches then follow it");
}

/* Only a hint: exported symbols name most libraries, and a program that is not stripped names itself. */
void doctor_symbols(struct doctor *d, struct finding *f)
{
	if (doctor_has(d, "/usr/lib/debug/.build-id", "") || doctor_has(d, "/usr/lib/debug/.dwz", "")) {
		doctor_set(f, DOCTOR_OK, "separate debug files are installed");
		return;
	}
	doctor_set(f, DOCTOR_OK, "no separate debug files: static functions of stripped programs are named binary+0xoffset");
	doctor_fix(f, "%s %s", d->install, d->debian ? "libc6-dbg, and PACKAGE-dbgsym for others" : "PACKAGE-debuginfo");
}

/* From the status of otprofd, if it runs. */
void doctor_debuginfod(struct doctor *d, struct finding *f)
{
	const json_t *status = doctor_status(d), *at;
	char kept[32];

	if (!status) {
		doctor_set(f, DOCTOR_OK, "off, unless [debuginfod] sets urls: otprofd does not run, or not for this user");
		return;
	}
	at = client_at(status, "debuginfod");
	if (!client_is_true(at, "on")) {
		doctor_set(f, DOCTOR_OK, "off: debug files come from this host and its containers alone");
		doctor_fix(f, "[debuginfod] urls in /etc/otprof.conf, if build-ids of what runs here may leave it");
	} else if (client_is_true(at, "paused")) {
		doctor_set(f, DOCTOR_WARN, "on, but: %s", client_text(at, "last_error"));
		doctor_fix(f, "curl -I URL, for each of [debuginfod] urls in /etc/otprof.conf");
	} else {
		format_bytes(kept, sizeof(kept), client_number(at, "cached_bytes"));
		doctor_set(f, DOCTOR_OK, "on: %llu debug files fetched, %llu not available, %s kept",
			   (unsigned long long)client_number(at, "fetched"), (unsigned long long)client_sum(at, "failed"), kept);
	}
}

void doctor_systemd(struct doctor *d, struct finding *f)
{
	static const char *const units[] = {"/etc/systemd/system/otprofd.service", "/lib/systemd/system/otprofd.service",
					    "/usr/lib/systemd/system/otprofd.service"};
	bool unit = false;

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		unit |= doctor_exists(d, units[i]);
	if (!doctor_exists(d, "/run/systemd/system")) {
		doctor_set(f, DOCTOR_OK, "does not run here: start otprofd by other means");
		doctor_fix(f, "otprofd -f /etc/otprof.conf");
	} else if (!unit) {
		doctor_set(f, DOCTOR_WARN, "runs, but has no otprofd.service");
		doctor_fix(f, "%s otprof", d->install);
	} else if (!doctor_exists(d, "/run/otprof/status.sock")) {
		doctor_set(f, DOCTOR_OK, "otprofd.service is installed, but does not run");
		doctor_fix(f, "systemctl enable --now otprofd");
	} else {
		doctor_set(f, DOCTOR_OK, "otprofd.service is installed, and otprofd runs");
	}
}

/* The result: the sampler that mode = auto chooses. */
void doctor_sampler(struct doctor *d, struct finding *f)
{
	if (!d->no_bpf) {
		doctor_set(f, DOCTOR_OK, "bpf can be used");
	} else if (!d->no_kmod) {
		doctor_set(f, DOCTOR_OK, "kmod can be used; not bpf (%s)", d->no_bpf);
	} else if (!d->no_perf) {
		doctor_set(f, DOCTOR_WARN, "only perf can be used, at a higher cost; not bpf (%s), not kmod (%s)", d->no_bpf, d->no_kmod);
		doctor_fix(f, "the commands above, for %s or %s", d->no_bpf, d->no_kmod);
	} else {
		doctor_set(f, DOCTOR_FAIL, "none can be used: not bpf (%s), not kmod (%s), not perf (%s)", d->no_bpf, d->no_kmod,
			   d->no_perf);
		doctor_fix(f, "the commands above, for one of them");
	}
}
