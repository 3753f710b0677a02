// SPDX-License-Identifier: Apache-2.0
#include "daemon/disposable/opener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/config/config_keys.h"
#include "process/host.h"

#define SCAN_MAX  (64u << 20) /* of the whole answer */
#define PIDS_MAX  262144
#define ENTRY_MAX (HOST_MAPS_MAX + HOST_IDENTITY_MAX + 65536)

static int scan_by_pid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int scan_list_pids(struct buf *to)
{
	_cleanup_(closedirp) DIR *proc = opendir("/proc");
	const struct dirent *entry;
	uint64_t n;

	if (!proc)
		return -errno;
	while ((entry = readdir(proc))) {
		if (value_u64(entry->d_name, &n) || n > UINT32_MAX)
			continue;
		buf_add(to, &(uint32_t){(uint32_t)n}, sizeof(uint32_t));
	}
	if (to->len)
		qsort(to->data, to->len / sizeof(uint32_t), sizeof(uint32_t), scan_by_pid);
	return 0;
}

/* A process that has ended is left out; so is one whose entry would not fit. */
static int scan_add_process(struct opener *o, uint32_t pid, struct buf *to)
{
	_cleanup_(opener_process_close) struct opener_process p = {.dir = -1};
	struct host_scan_entry entry = {.pid = pid};
	size_t at;

	buf_reset(to);
	if (opener_process_open(pid, 0, &p))
		return -ESRCH;
	buf_add(to, &entry, sizeof(entry));
	at = to->len;
	if (opener_process_identity(o, &p, to))
		return -ESRCH;
	entry.identity_len = (uint32_t)(to->len - at);
	at = to->len;
	/* The identity shows why it has none: kernel threads and zombies. */
	if (opener_process_maps(&p, to))
		to->len = at;
	entry.maps_len = (uint32_t)(to->len - at);
	buf_add(to, (const char[8]){0}, (8 - to->len % 8) % 8);
	if (to->failed)
		return -ENOMEM;
	memcpy(to->data, &entry, sizeof(entry));
	return 0;
}

/* Keeps the first ask->len pids above ask->pid; all where len is 0. */
static void scan_cut_pids(struct buf *pids, const struct ipc_ask *ask)
{
	uint32_t *pid = (uint32_t *)(void *)pids->data;
	size_t nr = pids->len / sizeof(*pid), first = 0;

	if (!ask->len)
		return;
	while (first < nr && pid[first] <= ask->pid)
		first++;
	nr = MIN(nr - first, (size_t)ask->len);
	if (nr)
		memmove(pid, pid + first, nr * sizeof(*pid));
	pids->len = nr * sizeof(*pid);
}

int opener_scan(struct opener *o, const struct ipc_ask *ask, int *ret_fd)
{
	_cleanup_(closep) int fd = ipc_memfd_new("scan");
	_cleanup_(buf_done) struct buf pids, entry;
	size_t written = 0;
	int err;

	buf_init(&pids, PIDS_MAX * sizeof(uint32_t));
	buf_init(&entry, ENTRY_MAX);
	if (fd < 0)
		return fd;
	err = scan_list_pids(&pids);
	if (!err)
		scan_cut_pids(&pids, ask);
	for (size_t i = 0; i < pids.len / sizeof(uint32_t) && !err; i++) {
		if (scan_add_process(o, ((const uint32_t *)(const void *)pids.data)[i], &entry))
			continue;
		if (written + entry.len > SCAN_MAX)
			break;
		err = file_write(fd, entry.data, entry.len);
		written += entry.len;
	}
	if (!err)
		err = ipc_memfd_seal(fd);
	if (!err)
		*ret_fd = steal_fd(&fd);
	return err;
}
