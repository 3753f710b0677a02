/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses /proc/PID/cgroup: container, Kubernetes pod, systemd unit. Versions 1,
 * 2 and both at once. Recognises the names that Docker, containerd, CRI-O,
 * Podman, kubelet, LXC, systemd-nspawn and systemd make; of nested ones the
 * innermost counts. Paths that begin above our own root ("/../..") are read
 * like any other.
 * Pure; the result of hostile text is empty at worst.
 */
#ifndef OTP_PROCESS_CGROUP_H
#define OTP_PROCESS_CGROUP_H

#include <stddef.h>

struct cgroup_facts {
	char container_id[65];   /* 64 hex digits; "" if none */
	char container_name[65]; /* LXC, nspawn: the machine's name */
	char pod_uid[37];        /* with dashes; 32 hex digits for a static pod */
	char unit[129];          /* "nginx.service", unescaped */
	char service[129];       /* the unit without ".service", where it is a service that people know by name */
	char path[257];          /* of the line that names most of these, cut */
};

void cgroup_parse(const char *text, size_t len, struct cgroup_facts *ret);

#endif
