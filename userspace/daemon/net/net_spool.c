// SPDX-License-Identifier: Apache-2.0
#include "daemon/net/net_spool.h"

#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/config/config_keys.h"
#include "daemon/sandbox/netroot.h"
#include "export/spool_record.h"

#define ORPHANS_LOGGED 8

/* Of the slots that this configuration samples: a spool may be that of a session with others. */
static void net_spool_name_origins(const struct config *c, struct export_spool *s)
{
	struct origins origins;

	memset(s->origins, SPOOL_NO_ORIGIN, sizeof(s->origins));
	event_list_origins(&c->events, 1, &origins);
	for (uint32_t slot = 0; slot < origins.count; slot++)
		s->origins[slot] = origins.slot[slot].origin;
}

void net_spool_hold(const struct config *c, struct export_spool *ret)
{
	ret->dir = netroot_hold_spool(c);
	net_spool_name_origins(c, ret);
}

/* Also where no exporter has a spool any more: the private root has the directory, and something may be in it. */
void net_spool_open(const struct config *c, struct export_spool *s)
{
	if (s->dir < 0)
		s->dir = open(c->spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void net_spool_close(struct export_spool *s)
{
	closep(&s->dir);
	s->dir = -1;
}

void net_spool_lend(struct config *c, const struct export_spool *s)
{
	for (uint32_t i = 0; i < c->nr_exporters; i++)
		c->exporters[i].spool = s;
}

void net_spool_log_orphans(struct config *c, const struct export_spool *s)
{
	int fd = s->dir < 0 ? -1 : openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned int logged = 0;

	while (dir && logged < ORPHANS_LOGGED && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || config_exporter_find(c, entry->d_name))
			continue;
		logged++;
		log_notice("spool %s/%.64s: no exporter of this name is configured; it stays until one is, or it is removed",
			   c->spool_dir, entry->d_name);
	}
}
