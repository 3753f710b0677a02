// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/hotplug.h"

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

#define ONLINE_PATH  "/sys/devices/system/cpu/online"
#define ANYWAY_NS    (10 * NSEC_PER_SEC)
#define UEVENTS_TURN 64 /* the most that are read in a row */

void hotplug_open(struct hotplug *h)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};

	h->fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	if (h->fd >= 0 && bind(h->fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		close(h->fd);
		h->fd = -1;
	}
}

void hotplug_close(struct hotplug *h)
{
	closep(&h->fd);
	h->fd = -1;
}

static bool hotplug_is_cpu_event(const char *text, size_t len)
{
	static const char *const starts[] = {"online@/devices/system/cpu/", "offline@/devices/system/cpu/"};

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (len > strlen(starts[i]) && !memcmp(text, starts[i], strlen(starts[i])))
			return true;
	return false;
}

void hotplug_read(struct hotplug *h)
{
	char text[4096];
	ssize_t n = 1;

	for (int i = 0; i < UEVENTS_TURN && n > 0; i++) {
		n = recv(h->fd, text, sizeof(text), MSG_DONTWAIT);
		/* Overrun: an event was lost, perhaps of a CPU. */
		if ((n > 0 && hotplug_is_cpu_event(text, (size_t)n)) || (n < 0 && errno == ENOBUFS))
			h->next_ns = 0;
	}
}

static bool hotplug_list_changed(struct hotplug *h)
{
	char now[sizeof(h->online)] = "";
	bool changed;

	if (file_read_text(ONLINE_PATH, now, sizeof(now)) <= 0)
		return false;
	changed = h->online[0] && strcmp(now, h->online) != 0;
	memcpy(h->online, now, sizeof(now));
	return changed;
}

/* Buffers of CPUs that are new; those that return have kept theirs. */
static void hotplug_send_new_buffers(struct sampler *s, struct worker *engine)
{
	uint32_t n = sideband_buffers(s->sideband);

	for (; engine->sock >= 0 && s->sideband_sent < n; s->sideband_sent++) {
		size_t bytes;
		int fd = sideband_fd(s->sideband, s->sideband_sent, &bytes);
		const struct ipc_sideband message = {.data_bytes = bytes};

		if (worker_send(engine, IPC_SIDEBAND, 0, &message, sizeof(message), fd))
			return; /* the next run retries */
	}
}

void hotplug_run(struct hotplug *h, struct sampler *s, struct worker *engine, uint64_t now)
{
	int changed = 0, sideband_changed = 0;
	bool listed = hotplug_list_changed(h);

	if (!s->sampling || (!listed && now < h->next_ns))
		return;
	h->next_ns = now + ANYWAY_NS;
	/* The side-band first, as at start: no sample without its mappings. */
	if (sideband_follow_cpus(s->sideband, &sideband_changed) || s->source->ops->follow_cpus(s->source, &changed))
		log_warn("CPUs changed and could not all be followed: some are not sampled");
	else if (changed || sideband_changed)
		log_info("CPUs changed: online are %.*s", (int)strcspn(h->online, "\n"), h->online);
	hotplug_send_new_buffers(s, engine);
}
