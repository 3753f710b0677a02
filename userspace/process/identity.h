/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of a process, from its environment, cgroup, executable and
 * arguments, and the workload that follows from it.
 *
 * service.name is the first of these that exists:
 *   1. OTEL_SERVICE_NAME, or service.name in OTEL_RESOURCE_ATTRIBUTES
 *   2. the systemd unit, without ".service" ("nginx"; "getty@tty1")
 *   3. the name of an LXC or nspawn container
 *   4. the script that an interpreter runs ("app.py")
 *   5. the executable, by the name it was started under
 * The cgroup of a Docker, containerd, CRI-O or Podman container contains only
 * its id. The container's name is often a random one of the runtime, so rules 4
 * and 5 name the service, and id and name become container.id and
 * container.name.
 *
 * Other attributes: the configured resource, container.id, container.name,
 * k8s.pod.uid, process.executable.name, otprof.systemd.unit, otprof.cgroup
 * (only where there is neither container nor unit, and never for a login
 * session, whose number would split every service), and the variables' own
 * attributes. Of equal keys the configuration's value wins, then the detected
 * one, then the one that the process claims.
 *
 * Immutable and reference counted; the engine's one thread.
 */
#ifndef OTP_PROCESS_IDENTITY_H
#define OTP_PROCESS_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/environ.h"
#include "process/workload.h"

struct identity {
	uint32_t refs;
	bool kernel;     /* a kernel thread's, or interrupts' */
	bool interrupts; /* on idle CPUs: work of no process */
	struct str *exe;    /* the rest may be NULL: unknown or none */
	struct str *script;
	struct str *container_id, *container_name, *pod_uid;
	struct str *machine; /* the container's name where it is an LXC or nspawn machine, from its cgroup */
	struct str *unit, *unit_service;
	struct str *cgroup;
	struct environ_facts environ;
};

/* From the answer to HOST_READ_IDENTITY; comm as in the process table. -EBADMSG, -ENOMEM. */
int identity_parse(const void *data, size_t len, const char *comm, struct identity **ret);
/*
 * The likely identity of a process that was not read: environment as in
 * environ_from (a parent, itself before exec), cgroup as in cgroup_from (any
 * process of the cgroup); both may be NULL.
 */
int identity_guess(const struct identity *environ_from, const struct identity *cgroup_from, const char *exe,
		   const char *script, struct identity **ret);
int identity_new_kernel(struct identity **ret);
int identity_new_interrupts(struct identity **ret);

struct identity *identity_ref(struct identity *id);
struct identity *identity_put(struct identity *id); /* NULL */

int identity_workload(const struct identity *id, const struct attribute *resource, size_t nr_resource,
		      struct workload **ret);

#endif
