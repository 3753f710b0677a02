// SPDX-License-Identifier: Apache-2.0
#include "source/perf_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "kmod/uapi/otprof.h"

#define RULES_MAX    4096
#define VERDICTS_MAX 4096
#define KERNFS_HANDLE 0xfe /* Linux, include/linux/exportfs.h: FILEID_KERNFS, the 64-bit id */

/* One hierarchy, or version 2 beside version 1 (systemd's hybrid layout). */
static const char *mount_path(void)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
		if (statfs(mounts[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			return mounts[i];
	return NULL;
}

void perf_cgroups_init(struct perf_cgroups *c)
{
	const char *path = mount_path();

	*c = (struct perf_cgroups){.mount_fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1};
}

void perf_cgroups_done(struct perf_cgroups *c)
{
	map_done(&c->rules);
	map_done(&c->verdicts);
	closep(&c->mount_fd);
}

int perf_cgroups_set(struct perf_cgroups *c, uint64_t id, uint8_t select)
{
	map_clear(&c->verdicts);
	if (select == OTP_SELECT_UNSET) {
		map_remove(&c->rules, id);
		return 0;
	}
	if (c->rules.count >= RULES_MAX && !map_find(&c->rules, id))
		return -E2BIG;
	return map_put(&c->rules, id, select);
}

static int open_cgroup(const struct perf_cgroups *c, uint64_t id)
{
	struct {
		struct file_handle head;
		unsigned char id[sizeof(id)];
	} handle = {.head = {.handle_bytes = sizeof(id), .handle_type = KERNFS_HANDLE}};
	int fd;

	memcpy(handle.head.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(c->mount_fd, &handle.head, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Steps from a directory of the hierarchy to the one above; 0 at the top. */
static uint64_t parent_of(int *fd)
{
	struct stat here, above;
	int up = openat(*fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (up < 0)
		return 0;
	if (fstat(*fd, &here) < 0 || fstat(up, &above) < 0 || here.st_dev != above.st_dev || here.st_ino == above.st_ino) {
		close(up);
		return 0;
	}
	close(*fd);
	*fd = up;
	return above.st_ino;
}

static uint8_t rule_of(const struct perf_cgroups *c, uint64_t id)
{
	const uint64_t *rule = map_find(&c->rules, id);

	return rule ? (uint8_t)*rule : OTP_SELECT_UNSET;
}

/* The nearest rule upward. */
static uint8_t find_rule(const struct perf_cgroups *c, uint64_t id)
{
	_cleanup_(closep) int fd = -1;
	uint8_t select = rule_of(c, id);

	if (select != OTP_SELECT_UNSET || c->mount_fd < 0)
		return select;
	fd = open_cgroup(c, id);
	for (int up = 1; fd >= 0 && id && up < OTP_CGROUP_DEPTH && select == OTP_SELECT_UNSET; up++) {
		id = parent_of(&fd);
		select = rule_of(c, id);
	}
	return select;
}

uint8_t perf_cgroups_select(struct perf_cgroups *c, uint64_t id)
{
	const uint64_t *known = map_find(&c->verdicts, id);
	uint8_t select;

	if (!id || !c->rules.count)
		return OTP_SELECT_UNSET;
	if (known)
		return (uint8_t)*known;
	select = find_rule(c, id);
	if (c->verdicts.count >= VERDICTS_MAX)
		map_clear(&c->verdicts);
	map_put(&c->verdicts, id, select);
	return select;
}

/* "0::/path" is the line of version 2; the id is the directory's inode number. */
uint64_t perf_cgroup_of(uint32_t pid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[32], line[4096], full[4200];
	const char *mount = mount_path();
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cgroup", pid);
	f = mount ? fopen(path, "re") : NULL;
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "0::", 3) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(full, sizeof(full), "%s%s", mount, line + 3);
		return stat(full, &st) == 0 ? st.st_ino : 0;
	}
	return 0;
}
