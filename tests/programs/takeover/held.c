// SPDX-License-Identifier: Apache-2.0
/*
 * held DIRECTORY [USER]: maps the files of takeover.h, keeps a secret in its
 * memory, and runs until it is killed. Prints "ready" when all of it is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "takeover.h"

static int held_map(const char *directory, size_t i)
{
	int absolute = held_files[i].name[0] == '/', fd;
	char path[4096];
	void *at;

	snprintf(path, sizeof(path), "%s%s%s", absolute ? "" : directory, absolute ? "" : "/", held_files[i].name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	at = mmap((void *)(HELD_FIRST + i * HELD_STEP), HELD_BYTES, held_files[i].protection,
		  MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
	close(fd);
	return at == MAP_FAILED ? -errno : 0;
}

static int held_hide(void)
{
	char *at = mmap((void *)HELD_MEMORY, HELD_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	strcpy(at, HELD_SECRET "memory");
	return 0;
}

int main(int argc, char **argv)
{
	uid_t user = argc > 2 ? (uid_t)atoi(argv[2]) : 0;
	int err = argc > 1 ? held_hide() : -EINVAL;

	for (size_t i = 0; i < sizeof(held_files) / sizeof(held_files[0]) && !err; i++)
		err = held_map(argv[1], i);
	if (!err && user && (setresgid(user, user, user) || setresuid(user, user, user)))
		err = -errno;
	prctl(PR_SET_NAME, user ? OTHER_COMM : HELD_COMM);
	if (err) {
		fprintf(stderr, "held: %s\n", strerror(-err));
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (true)
		pause();
}
