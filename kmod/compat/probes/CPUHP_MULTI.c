// SPDX-License-Identifier: GPL-2.0-only
/* 4.10: states of CPU hotplug with instances. */
#include <linux/cpuhotplug.h>
int probe(struct hlist_node *n);
int probe(struct hlist_node *n) { return cpuhp_state_add_instance(CPUHP_AP_ONLINE_DYN, n); }
