// SPDX-License-Identifier: Apache-2.0
#include "daemon/notify.h"

#include <systemd/sd-daemon.h>

#include "base/clock.h"

void notify_ready(const char *status)
{
	sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void notify_status(const char *status)
{
	sd_notifyf(0, "STATUS=%s", status);
}

/* MONOTONIC_USEC: so that systemd (253) tells this reload from an earlier one, with Type=notify-reload. */
void notify_reloading(void)
{
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=Reading the configuration",
		   (unsigned long long)(clock_read_ns(CLOCK_MONOTONIC) / NSEC_PER_USEC));
}

void notify_stopping(void)
{
	sd_notify(0, "STOPPING=1\nSTATUS=Exporting what is left");
}

void notify_alive(void)
{
	sd_notify(0, "WATCHDOG=1");
}

/* Twice in the time that systemd waits. */
uint64_t notify_alive_ns(void)
{
	uint64_t us;

	return sd_watchdog_enabled(0, &us) > 0 ? us * NSEC_PER_USEC / 2 : 0;
}
