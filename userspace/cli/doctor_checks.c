// SPDX-License-Identifier: Apache-2.0
/* The table of checks, and what all of them use. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/doctor.h"

#define PATH_SIZE 4200

const struct doctor_check doctor_checks[] = {
	{"kernel", doctor_kernel},
	{"kernel_freeze", doctor_freeze},
	{"btf", doctor_btf},
	{"ring_buffer", doctor_ring_buffer},
	{"capabilities", doctor_capabilities},
	{"perf_event_paranoid", doctor_paranoid},
	{"lockdown", doctor_lockdown},
	{"memlock", doctor_memlock},
	{"pid_namespace", doctor_pid_namespace},
	{"kallsyms", doctor_kallsyms},
	{"secure_boot", doctor_secure_boot},
	{"module", doctor_module},
	{"dkms", doctor_dkms},
	{"cgroup", doctor_cgroup},
	{"memory", doctor_memory},
	{"debug_symbols", doctor_symbols},
	{"debuginfod", doctor_debuginfod},
	{"systemd", doctor_systemd},
	{"exporters", doctor_exporters},
	{"hub", doctor_hub},
	{"selection", doctor_selection},
	{"interpreters", doctor_runtimes},
	{"sampler", doctor_sampler},
};
const size_t doctor_checks_nr = ARRAY_SIZE(doctor_checks);

const char *doctor_level_name(enum doctor_level level)
{
	static const char *const names[] = {[DOCTOR_OK] = "ok", [DOCTOR_WARN] = "warn", [DOCTOR_FAIL] = "fail"};

	return names[level];
}

void doctor_set(struct finding *f, enum doctor_level level, const char *fmt, ...)
{
	va_list ap;

	f->level = level;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

void doctor_fix(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->fix, sizeof(f->fix), fmt, ap);
	va_end(ap);
}

static void under_root(const struct doctor *d, const char *path, char to[PATH_SIZE])
{
	snprintf(to, PATH_SIZE, "%s%s", d->root, path);
}

ssize_t doctor_read(const struct doctor *d, const char *path, char *to, size_t size)
{
	_cleanup_(closep) int fd = -1;
	char full[PATH_SIZE];
	size_t have = 0;
	ssize_t n;

	under_root(d, path, full);
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	while (have < size - 1 && (n = read(fd, to + have, size - 1 - have)) != 0) {
		if (n < 0)
			return -errno;
		have += (size_t)n;
	}
	to[have] = '\0';
	return (ssize_t)have;
}

long doctor_number(const struct doctor *d, const char *path, long otherwise)
{
	char text[64], *end;
	long n;

	if (doctor_read(d, path, text, sizeof(text)) <= 0)
		return otherwise;
	n = strtol(text, &end, 10);
	return end == text ? otherwise : n;
}

bool doctor_exists(const struct doctor *d, const char *path)
{
	char full[PATH_SIZE];

	under_root(d, path, full);
	return access(full, F_OK) == 0;
}

bool doctor_has(const struct doctor *d, const char *dir, const char *prefix)
{
	const struct dirent *e;
	char full[PATH_SIZE];
	bool found = false;
	DIR *at;

	under_root(d, dir, full);
	at = opendir(full);
	while (at && !found && (e = readdir(at)))
		found = e->d_name[0] != '.' && !strncmp(e->d_name, prefix, strlen(prefix));
	if (at)
		closedir(at);
	return found;
}

/* The version that the kernel was built from, which distributions say in places of their own. */
static void read_kernel(struct doctor *d)
{
	char version[256] = "", signature[256];
	struct kernel_version v;

	if (doctor_read(d, "/proc/sys/kernel/osrelease", d->release, sizeof(d->release)) < 0)
		return;
	d->release[strcspn(d->release, "\n")] = '\0';
	doctor_read(d, "/proc/sys/kernel/version", version, sizeof(version));
	if (kernel_version_parse(d->release, version, &d->kernel) < 0)
		return;
	if (doctor_read(d, "/proc/version_signature", signature, sizeof(signature)) > 0 &&
	    sscanf(signature, "%*s %*s %u.%u.%u", &v.major, &v.minor, &v.patch) == 3)
		d->kernel = v;
}

/* Where nobody is known, a package of Debian's has a name that can be looked for. */
static void read_packager(struct doctor *d)
{
	static const struct {
		const char *path, *install, *upgrade;
	} all[] = {{"/usr/bin/apt-get", "apt install", "apt full-upgrade"},
		   {"/usr/bin/dnf", "dnf install", "dnf upgrade"},
		   {"/usr/bin/zypper", "zypper install", "zypper update"}};
	size_t i = 0;

	while (i < ARRAY_SIZE(all) && !doctor_exists(d, all[i].path))
		i++;
	i %= ARRAY_SIZE(all);
	d->install = all[i].install;
	d->upgrade = all[i].upgrade;
	d->debian = !i;
}

void doctor_init(struct doctor *d, const char *root)
{
	char text[8192];
	const char *line;

	*d = (struct doctor){.root = root};
	read_packager(d);
	read_kernel(d);
	if (doctor_read(d, "/proc/self/status", text, sizeof(text)) < 0)
		return;
	line = strstr(text, "\nCapEff:");
	d->capabilities = line ? strtoull(line + strlen("\nCapEff:"), NULL, 16) : 0;
	d->admin = d->capabilities >> CAP_SYS_ADMIN & 1;
}

/* What files said goes to a terminal and into JSON. */
static void make_plain(char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
}

void doctor_run(struct doctor *d, size_t check, struct finding *ret)
{
	*ret = (struct finding){.id = doctor_checks[check].id};
	doctor_checks[check].run(d, ret);
	make_plain(ret->text);
	make_plain(ret->fix);
}

void doctor_done(struct doctor *d)
{
	json_decref(d->status);
	d->status = NULL;
}

const json_t *doctor_status(struct doctor *d)
{
	char dir[400];

	if (!d->asked) {
		d->asked = true;
		snprintf(dir, sizeof(dir), "%s" CLI_RUNTIME_DIR, d->root);
		if (client_status(dir, &d->status) < 0)
			d->status = NULL;
	}
	return d->status;
}
