/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the text of /proc/PID/cgroup tells: container, Kubernetes pod, systemd
 * unit. Versions 1, 2 and both at once. The names are those that Docker,
 * containerd, CRI-O, Podman, kubelet, LXC, systemd-nspawn and systemd give;
 * the innermost one counts where they are nested. Paths that begin above our
 * own root ("/../..") are read like any other.
 * Pure; hostile text gives an empty answer at worst.
 */
#ifndef OTP_PROCESS_CGROUP_H
#define OTP_PROCESS_CGROUP_H

#include <stddef.h>

struct cgroup_facts {
	char container_id[65];   /* 64 hex digits; "" if none */
	char container_name[65]; /* LXC, nspawn: the machine's name */
	char pod_uid[37];        /* with dashes; 32 hex digits for a static pod */
	char unit[129];          /* "nginx.service", unescaped */
	char service[129];       /* the unit where it names a service a person would know, without ".service" */
	char path[257];          /* of the most telling line, cut */
};

void cgroup_parse(const char *text, size_t len, struct cgroup_facts *ret);

#endif
