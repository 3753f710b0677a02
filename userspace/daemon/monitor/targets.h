/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selection: [targets] becomes the sampler's default, rules of cgroups and
 * plans of processes, before any sample is taken.
 *
 * A process is profiled when an include line matches it (or there is none) and
 * no exclude line does. Cgroups of version 2, and so units and containers, are
 * rules that the sampler looks up: they hold from a process' first tick. The
 * sampler does not see executables, users, and cgroups of version 1: the monitor
 * checks each process that executes a program, when the engine has read of it in
 * the side-band, and all processes now and then.
 * A pid selects the process and its descendants; where two listed pids are
 * ancestors, the nearer one counts.
 *
 * Called by the monitor, one thread; targets.c has the calls for both,
 * targets_cgroup.c the rules, targets_process.c the plans.
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
	bool may_exclude; /* some are excluded: cgroups below an included one are checked, too */
	char root[512];	  /* where the hierarchy is mounted; "": nowhere */
	int inotify_fd;	  /* cgroups that are created and removed; -1 */
	struct map set;	  /* id to enum otp_select: as set in the sampler */
	struct map next;  /* the new rules, while the hierarchy is walked */
	struct map waiting; /* the same, of containers whose names are not resolved yet */
	bool unnamed;	  /* the last walk found a container whose name is not resolved yet */
	bool complete;	  /* the cgroups were walked, all of them, in this round of names */
	uint64_t walked_ns, took_ns, due_ns;
	bool logged_full;
};

struct target_processes {
	bool wanted;
	bool v1;	   /* hierarchies of version 1 are mounted */
	struct map chosen; /* pid to start and select: as set in the sampler */
	DIR *proc;	   /* a scan of all of them is in progress; owned */
	uint64_t next_scan_ns;
	struct map unnamed; /* pids that were checked before the name of their container was resolved */
	bool complete;	    /* all processes were scanned in this round of names */
	uint64_t tokens_ns; /* a token bucket of checks */
	bool logged_full;
};

struct targets {
	char *pattern[CONFIG_TARGETS_ALL]; /* of TARGET_CGROUP, from the hierarchy's root; owned */
	int64_t uid[CONFIG_TARGETS_ALL];   /* of TARGET_USER; -1: no such user */
	int pidfd[CONFIG_TARGETS_ALL];	   /* of TARGET_PID: its end removes the plan; owned; -1 */
	struct target_names names;	   /* of containers; kept across a reload */
	struct target_rules rules;
	struct target_processes processes;
};

/* targets.c */
void targets_defaults(const struct config *c, struct otp_defaults *d);
void targets_open(struct monitor *m);	   /* before sampling; after a reload, with the new configuration */
void targets_run(struct monitor *m, uint64_t now);
void targets_close(struct monitor *m, const struct config *c); /* with the configuration that it was opened with */
uint64_t targets_next_ns(const struct monitor *m);
int targets_poll_fd(const struct monitor *m); /* -1: none */
void targets_read(struct monitor *m);
/* Writes the selection into a plan of this process, whether the engine or the monitor makes the plan. */
void targets_select(struct monitor *m, uint32_t pid, struct otp_plan *p);
/* A plan for the selection alone; false: none is needed. */
bool targets_plan(struct monitor *m, uint32_t pid, struct otp_plan *ret);
/* Sends the engine WATCH: whether to report process life. */
int targets_send_watch(struct monitor *m);

/* Names of containers: asks an opener for those that are needed, and selects again after its answer. */
void targets_ask_names(struct monitor *m);
void targets_names_answered(void *monitor, const struct ipc_message *answer); /* an asks_own_fn */
/* After a complete walk or scan: forgets the names of containers that are gone. */
void targets_age_names(struct monitor *m);
/* Whether c selects containers by name. */
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
/* LIFE: an array of struct ipc_life. */
void target_processes_life(struct monitor *m, const struct ipc_message *msg);
/* Whether any line of the present configuration selects a process; false also when the process is gone. */
bool target_processes_wants(struct monitor *m, uint32_t pid);
/* enum otp_select of a process that was checked; UNSET: no line decides. */
uint8_t target_processes_select(const struct monitor *m, uint32_t pid);

#endif
