// SPDX-License-Identifier: Apache-2.0
/*
 * CPUs that come and go. The kernel says so by uevents, which reach only the
 * first network namespace; the list of CPUs that are online is looked at as
 * well, and now and then the sources look themselves.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"

#define ONLINE_PATH  "/sys/devices/system/cpu/online"
#define ANYWAY_NS    (10 * NSEC_PER_SEC)
#define UEVENTS_TURN 64 /* read at most so many in a row */

int hotplug_open(struct monitor *m)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};

	m->uevent_fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	if (m->uevent_fd >= 0 && bind(m->uevent_fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		close(m->uevent_fd);
		m->uevent_fd = -1;
	}
	return 0;
}

static bool is_cpu_event(const char *text, size_t len)
{
	static const char *const starts[] = {"online@/devices/system/cpu/", "offline@/devices/system/cpu/"};

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (len > strlen(starts[i]) && !memcmp(text, starts[i], strlen(starts[i])))
			return true;
	return false;
}

void hotplug_read(struct monitor *m)
{
	char text[4096];
	ssize_t n = 1;

	for (int i = 0; i < UEVENTS_TURN && n > 0; i++) {
		n = recv(m->uevent_fd, text, sizeof(text), MSG_DONTWAIT);
		/* Overrun: something was missed, perhaps a CPU. */
		if ((n > 0 && is_cpu_event(text, (size_t)n)) || (n < 0 && errno == ENOBUFS))
			m->next_hotplug_ns = 0;
	}
}

static bool list_changed(struct monitor *m)
{
	char now[sizeof(m->online)] = "";
	bool changed;

	if (file_read_text(ONLINE_PATH, now, sizeof(now)) <= 0)
		return false;
	changed = m->online[0] && strcmp(now, m->online) != 0;
	memcpy(m->online, now, sizeof(now));
	return changed;
}

/* Buffers of CPUs that were never there before; those that came back kept theirs. */
static void send_new_buffers(struct monitor *m)
{
	uint32_t n = sideband_buffers(m->sampler.sideband);

	for (; m->workers.engine.sock >= 0 && m->sampler.sideband_sent < n; m->sampler.sideband_sent++) {
		size_t bytes;
		int fd = sideband_fd(m->sampler.sideband, m->sampler.sideband_sent, &bytes);
		const struct ipc_sideband message = {.data_bytes = bytes};

		if (worker_send(&m->workers.engine, IPC_SIDEBAND, 0, &message, sizeof(message), fd))
			return; /* again at the next look */
	}
}

void hotplug_run(struct monitor *m, uint64_t now)
{
	int changed = 0, sideband_changed = 0;
	bool listed = list_changed(m);

	if (!m->sampler.sampling || (!listed && now < m->next_hotplug_ns))
		return;
	m->next_hotplug_ns = now + ANYWAY_NS;
	/* The side-band first, as at start: no sample without its mappings. */
	if (sideband_follow_cpus(m->sampler.sideband, &sideband_changed) || m->sampler.source->ops->follow_cpus(m->sampler.source, &changed))
		log_warn("CPUs changed and could not all be followed: some are not sampled");
	else if (changed || sideband_changed)
		log_info("CPUs changed: online are %.*s", (int)strcspn(m->online, "\n"), m->online);
	send_new_buffers(m);
}
