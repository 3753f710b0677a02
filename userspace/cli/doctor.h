/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host supports of otprof: a table of checks, one function per finding.
 * Checks read files below a root, which tests replace, and change nothing.
 *
 * Called by otprof doctor and by unit tests, one thread. Checks run in the
 * order of the table: later ones use the results of earlier ones.
 */
#ifndef OTP_CLI_DOCTOR_H
#define OTP_CLI_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "source/bpf_probe.h"

#define DOCTOR_TEXT 320

enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor {
	const char *root; /* borrowed; "": this host */
	char release[128];
	struct kernel_version kernel; /* 0.0.0: unknown */
	uint64_t capabilities;
	bool admin; /* CAP_SYS_ADMIN among them */
	const char *install, *upgrade; /* static: commands of the package manager; names follow */
	bool debian;		       /* packages have Debian's names */
	/* The id of the first finding that excludes a sampler; NULL: it can be used. */
	const char *no_bpf, *no_kmod, *no_perf;
	json_t *status; /* doctor_status; owned */
	bool asked;	/* for it */
};

struct finding {
	const char *id; /* static; stable, for scripts */
	enum doctor_level level;
	char text[DOCTOR_TEXT];
	char fix[DOCTOR_TEXT]; /* a command, or ""; DOCTOR_OK may have one too */
};

struct doctor_check {
	const char *id;
	void (*run)(struct doctor *d, struct finding *f);
};

extern const struct doctor_check doctor_checks[];
extern const size_t doctor_checks_nr;

/* Reads what all checks need: kernel, capabilities. root: borrowed for d's life. */
void doctor_init(struct doctor *d, const char *root);
void doctor_done(struct doctor *d);
void doctor_run(struct doctor *d, size_t check, struct finding *ret);
const char *doctor_level_name(enum doctor_level level);

/* For checks: set the finding's text and fix, and read files. path is below the root. */
void doctor_set(struct finding *f, enum doctor_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void doctor_fix(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
ssize_t doctor_read(const struct doctor *d, const char *path, char *to, size_t size); /* -errno; NUL added */
long doctor_number(const struct doctor *d, const char *path, long otherwise);
bool doctor_exists(const struct doctor *d, const char *path);
/* Whether a directory has an entry whose name begins with prefix; "" for any. */
bool doctor_has(const struct doctor *d, const char *dir, const char *prefix);

#define DOCTOR_NOT_RUNNING "not known: otprofd does not run, or not for this user"
/* The status of the running otprofd, asked for once; borrowed. NULL: it does not answer. */
const json_t *doctor_status(struct doctor *d);

/*
 * The checks, by subject: kernel (doctor_kernel.c), system (doctor_system.c), destinations (doctor_exporters.c),
 * interpreted code (doctor_runtimes.c), hub and selection (doctor_hub.c).
 */
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

void doctor_exporters(struct doctor *d, struct finding *f);
void doctor_hub(struct doctor *d, struct finding *f);
void doctor_selection(struct doctor *d, struct finding *f);
void doctor_runtimes(struct doctor *d, struct finding *f);

#endif
