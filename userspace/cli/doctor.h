/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host can and cannot do for otprof: a table of checks, a function per
 * finding. Checks read files below a root, which tests put elsewhere, and
 * change nothing.
 *
 * Called by otprof doctor and by unit tests, one thread. Checks run in the
 * order of the table: later ones know what earlier ones found.
 */
#ifndef OTP_CLI_DOCTOR_H
#define OTP_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "source/bpf_probe.h"

#define DOCTOR_TEXT 320

enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor {
	const char *root; /* "": this host */
	char release[128];
	struct kernel_version kernel; /* 0.0.0: unknown */
	uint64_t capabilities;
	bool admin; /* CAP_SYS_ADMIN among them */
	const char *install, *upgrade; /* the commands of who installs packages here; names go behind */
	bool debian;		       /* whose names packages have */
	/* Why a sampler cannot be had, as the id of the first finding that says so; NULL: it can. */
	const char *no_bpf, *no_kmod, *no_perf;
};

struct finding {
	const char *id; /* static; stable, for scripts */
	enum doctor_level level;
	char text[DOCTOR_TEXT];
	char fix[DOCTOR_TEXT]; /* a command, or ""; also where all is well but could be better */
};

struct doctor_check {
	const char *id;
	void (*run)(struct doctor *d, struct finding *f);
};

extern const struct doctor_check doctor_checks[];
extern const size_t doctor_checks_nr;

/* What all checks need: kernel, capabilities. */
void doctor_init(struct doctor *d, const char *root);
void doctor_run(struct doctor *d, size_t check, struct finding *ret);
const char *doctor_level_name(enum doctor_level level);

/* For checks: what they say, and where they read. path is below the root. */
void doctor_say(struct finding *f, enum doctor_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void doctor_fix(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
ssize_t doctor_read(const struct doctor *d, const char *path, char *to, size_t size); /* -errno; NUL added */
long doctor_number(const struct doctor *d, const char *path, long otherwise);
bool doctor_exists(const struct doctor *d, const char *path);
/* Whether a directory has an entry that begins so; "" for any. */
bool doctor_has(const struct doctor *d, const char *dir, const char *prefix);

/* The checks, by what they look at. */
void doctor_kernel(struct doctor *d, struct finding *f);
void doctor_freeze(struct doctor *d, struct finding *f);
void doctor_btf(struct doctor *d, struct finding *f);
void doctor_ring_buffer(struct doctor *d, struct finding *f);
void doctor_paranoid(struct doctor *d, struct finding *f);
void doctor_lockdown(struct doctor *d, struct finding *f);
void doctor_capabilities(struct doctor *d, struct finding *f);
void doctor_memlock(struct doctor *d, struct finding *f);
void doctor_pid_namespace(struct doctor *d, struct finding *f);
void doctor_kallsyms(struct doctor *d, struct finding *f);

void doctor_secure_boot(struct doctor *d, struct finding *f);
void doctor_module(struct doctor *d, struct finding *f);
void doctor_dkms(struct doctor *d, struct finding *f);
void doctor_cgroup(struct doctor *d, struct finding *f);
void doctor_memory(struct doctor *d, struct finding *f);
void doctor_symbols(struct doctor *d, struct finding *f);
void doctor_debuginfod(struct doctor *d, struct finding *f);
void doctor_systemd(struct doctor *d, struct finding *f);
void doctor_sampler(struct doctor *d, struct finding *f);

#endif
