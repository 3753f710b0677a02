/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file system that stops answering, and programs that run from it. hang.c
 * puts the parts together; each part belongs to one file. Programs of tests:
 * what fails here is fatal.
 */
#ifndef OTP_TESTS_HANG_H
#define OTP_TESTS_HANG_H

#include <stdbool.h>
#include <stddef.h>

#define SKIP	     77
#define LIFE_SECONDS 150 /* of every process here, whatever happens to the test */

/* --- server.c: /dev/fuse --- */

/* The name of a kind of requests: they are read, and never answered; see server.c. */
bool server_knows(const char *silent);

/*
 * Serves CONTENT as file0, file1, ... at the mount of fuse_fd, until control
 * has its first byte, which it sends back; from then on it is silent. Ends at
 * the end of control. Never touches its own file system.
 */
void server_run(int fuse_fd, int control, const char *content, const char *silent);

/* --- world.c: namespaces and mounts --- */

struct world {
	bool host;	    /* mounted by root in the mount namespace that we were started in */
	bool overlay;	    /* an overlay on top, through which the files are seen */
	const char *dir;    /* where everything is mounted */
	const char *device; /* a character device like /dev/fuse */
};

/*
 * FUSE, in a user and a mount namespace of our own if not host. Its descriptor; exits with SKIP where that is not
 * possible.
 */
int world_mount_fuse(const struct world *w);
void world_mount_overlay(const struct world *w); /* needs the server: it looks things up */
void world_path(const struct world *w, unsigned file, char *path, size_t size);
void world_unmount(const struct world *w);

/* --- victim.c: the programs --- */

/* How a file comes to lie in a program that uses CPU. */
enum how {
	HOW_RUN,	 /* it is the program */
	HOW_PASS,	 /* so it is, of a process outside of the namespaces that got its descriptor */
	HOW_ARGUMENTS,	 /* it is mapped where the program's arguments lie */
	HOW_ENVIRONMENT, /* ... or its environment */
	HOW_NONE,	 /* no programs */
};

/*
 * In a child: executes the program. It is ready when it has written a byte to
 * standard output; it uses CPU from the end of standard input on, 10 ms of
 * each share x 10 ms. fd: of the file to be executed for HOW_PASS.
 */
_Noreturn void victim_exec(enum how how, const char *self, const char *file, int fd, unsigned share);
int victim_main(int argc, char **argv); /* hang victim ... */

#endif
