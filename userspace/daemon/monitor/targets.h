/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selection: [targets] becomes the sampler's default, rules of cgroups and
 * plans of processes, all of it before a sample is taken.
 *
 * A process is profiled when an include line fits it (or there is none) and no
 * exclude line does. Cgroups of version 2, and so units and containers, are
 * rules that the sampler itself looks up: they hold from a process' first
 * tick. Executables, users, and cgroups of version 1 are not seen by it: the
 * monitor looks at each process that begins a program, when the engine has
 * read of it in the side-band, and at all of them now and then.
 * A pid stands for the process and what it starts; of two that are listed the
 * nearer ancestor counts.
 *
 * Called by the monitor, one thread; targets.c is the whole, targets_cgroup.c
 * the rules, targets_process.c the plans.
 */
#ifndef OTP_DAEMON_MONITOR_TARGETS_H
#define OTP_DAEMON_MONITOR_TARGETS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "daemon/config/config.h"
#include "daemon/monitor/target_names.h"

struct monitor;
struct ipc_message;
struct otp_defaults;
struct otp_plan;

struct target_rules { /* cgroups of version 2 */
	bool wanted;
	bool may_exclude; /* some are to be left out: what lies below an included one is looked at, too */
	char root[512];	  /* where the hierarchy is mounted; "": nowhere */
	int inotify_fd;	  /* cgroups that come and go; -1 */
	struct map set;	  /* id to enum otp_select: as the sampler has them */
	struct map next;  /* as they should be, while the hierarchy is walked */
	bool unnamed;	  /* the last walk met a container whose name was not known yet */
	uint64_t walked_ns, took_ns, due_ns;
	bool said_full;
};

struct target_processes {
	bool wanted;
	bool v1;	   /* there are hierarchies of version 1 */
	struct map chosen; /* pid to start and select: as the sampler has them */
	DIR *proc;	   /* a look at all of them is under way */
	uint64_t next_scan_ns;
	struct map unnamed; /* pids that were looked at before the name of their container was known */
	uint64_t tokens_ns; /* a bucket: so many looks at once, then so many a second */
	bool said_full;
};

struct targets {
	char *pattern[CONFIG_TARGETS_MAX]; /* of TARGET_CGROUP, from the hierarchy's root; owned */
	int64_t uid[CONFIG_TARGETS_MAX];   /* of TARGET_USER; -1: there is no such user */
	int pidfd[CONFIG_TARGETS_MAX];	   /* of TARGET_PID: the plan goes with it; -1 */
	struct target_names names;	   /* of containers; they outlive a reload */
	struct target_rules rules;
	struct target_processes processes;
};

/* The whole. */
void targets_defaults(const struct config *c, struct otp_defaults *d);
void targets_open(struct monitor *m);	   /* before sampling; after a reload, with the new configuration */
void targets_run(struct monitor *m, uint64_t now);
void targets_close(struct monitor *m, const struct config *c); /* with the configuration that it was opened with */
uint64_t targets_next_ns(const struct monitor *m);
int targets_poll_fd(const struct monitor *m); /* -1: none */
void targets_read(struct monitor *m);
/* Plans of a process may come from here, and from what the engine wishes: what both must say. */
void targets_select(struct monitor *m, uint32_t pid, struct otp_plan *p);
/* A plan that stands for the selection alone; false: none is needed. */
bool targets_plan(struct monitor *m, uint32_t pid, struct otp_plan *ret);
/* Whether the engine is to tell of programs that begin. */
int targets_tell_engine(struct monitor *m);

/* Names of containers: asks an opener for those that are wanted, and selects anew when it has answered. */
void targets_ask_names(struct monitor *m);
void targets_names_answered(void *monitor, const struct ipc_message *answer); /* an asks_own_fn */
/* Whether c selects containers by a name, which may have to be asked for. */
bool targets_want_names(const struct config *c);

/* targets_cgroup.c */
void target_rules_open(struct monitor *m);
void target_rules_run(struct monitor *m, uint64_t now);
void target_rules_names_known(struct monitor *m);
void target_rules_close(struct monitor *m);

/* targets_process.c */
void target_processes_open(struct monitor *m);
void target_processes_run(struct monitor *m, uint64_t now);
void target_processes_names_known(struct monitor *m);
void target_processes_close(struct monitor *m);
/* LIFE: struct ipc_life, as many as fit. */
void target_processes_life(struct monitor *m, const struct ipc_message *msg);
/* enum otp_select of a process that was looked at; UNSET if it is nobody's. */
/* Whether a process is selected, by whatever line, as the configuration has it now; false: it is gone. */
bool target_processes_wants(struct monitor *m, uint32_t pid);
uint8_t target_processes_select(const struct monitor *m, uint32_t pid);

#endif
