/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that run from a file system that stops answering, as a user's
 * attack or as an administrator's dead file server:
 *   hang WHERE STYLE HOW COUNT SILENT DIR CONTENT DEVICE
 *     WHERE   user: in a user and a mount namespace of its own; host: as root, where it was started
 *     STYLE   fuse, or overlay: one on top of it, through which everybody's requests are made by its owner
 *     HOW     run, pass, arguments, environment, none: see enum how
 *     COUNT   so many programs, each with a file of its own; together they use one CPU
 *     SILENT  the request that is never answered: flush, read, getattr, open, release, statfs, lookup, all; read@N:
 *             reads that contain byte N
 *     DIR     an empty directory to mount on
 *     CONTENT what the files contain: this program, linked statically
 *     DEVICE  /dev/fuse, or another node of that device
 * Says "ready" when the programs wait; a line on standard input silences the
 * file system ("silent") and lets them run. At the end of standard input, and
 * when this process is killed, all end: the server dies, which ends the
 * connection (server.c), then no process is held any more.
 * Exit code 77: this kernel does not let it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hang.h"

#define COUNT_MAX 64
#define NOBODY	  65534
#define READY_MS  10000

static struct {
	struct world world;
	enum how how;
	unsigned count;
	const char *silent, *content;
	int control[2]; /* of the server */
	int gate[2];	/* its end lets the programs run */
	int ready[2];	/* a byte from each program */
	int outside[2]; /* to the process that gets descriptors */
	pid_t server;
} a;

_Noreturn static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Ends with its parent, or by itself. */
static pid_t begin_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIFE_SECONDS);
	return 0;
}

static void begin_server(int fuse_fd)
{
	a.server = begin_child();
	if (!a.server) {
		close(a.gate[1]);
		close(a.control[0]);
		close(STDIN_FILENO);
		server_run(fuse_fd, a.control[1], a.content, a.silent);
		_exit(0);
	}
	close(fuse_fd);
	close(a.control[1]);
}

/* Programs on root's mounts belong to somebody else. Changed ids clear the signal at the parent's death. */
static void drop_root(void)
{
	if (!a.world.host)
		return;
	if (setgid(NOBODY) || setuid(NOBODY))
		fail("setuid");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void begin_program(unsigned i, int fd)
{
	char file[512];

	if (begin_child())
		return;
	world_path(&a.world, i, file, sizeof(file));
	dup2(a.gate[0], STDIN_FILENO);
	dup2(a.ready[1], STDOUT_FILENO);
	drop_root();
	victim_exec(a.how, a.content, file, fd, a.count);
}

/* One descriptor in a message of one byte. */
union passed {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static void send_fd(int sock, int fd)
{
	struct iovec byte = { .iov_base = "f", .iov_len = 1 };
	union passed control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr msg = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (sendmsg(sock, &msg, 0) != 1)
		fail("sendmsg");
}

/* -1: none will come. */
static int receive_fd(int sock)
{
	char byte;
	union passed control;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != 1 || msg.msg_controllen < sizeof(control.head))
		return -1;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

/* Outside of the namespaces: runs each file of which it gets a descriptor. */
static void begin_outside(void)
{
	if (begin_child())
		return;
	close(a.gate[1]);
	close(a.outside[0]);
	for (unsigned i = 0; i < a.count; i++) {
		int fd = receive_fd(a.outside[1]);

		if (fd < 0)
			_exit(1);
		begin_program(i, fd);
		close(fd);
	}
	for (;;)
		pause();
}

static void pass_file(unsigned i)
{
	char file[512];
	int fd;

	world_path(&a.world, i, file, sizeof(file));
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(file);
	send_fd(a.outside[0], fd);
	close(fd);
}

static void wait_for_program(void)
{
	struct pollfd polled = { .fd = a.ready[0], .events = POLLIN };
	char byte;

	if (poll(&polled, 1, READY_MS) != 1 || read(a.ready[0], &byte, 1) != 1)
		fail("a program is not ready");
}

static void begin_programs(void)
{
	if (a.how == HOW_NONE)
		return;
	for (unsigned i = 0; i < a.count; i++) {
		if (a.how == HOW_PASS)
			pass_file(i);
		else
			begin_program(i, -1);
		wait_for_program();
	}
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void silence(void)
{
	char byte = 's';

	if (write(a.control[0], &byte, 1) != 1 || read(a.control[0], &byte, 1) != 1)
		fail("server");
	close(a.gate[1]);
	say("silent");
}

/* The server first: what hangs cannot be killed before. */
static void end(void)
{
	kill(a.server, SIGKILL);
	waitpid(a.server, NULL, 0);
	world_unmount(&a.world);
}

static void open_pipes(void)
{
	if (pipe2(a.gate, O_CLOEXEC) || pipe2(a.ready, O_CLOEXEC) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a.control) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a.outside))
		fail("pipes");
}

static int attack(void)
{
	char line[16];

	alarm(LIFE_SECONDS);
	open_pipes();
	if (a.how == HOW_PASS)
		begin_outside();
	begin_server(world_mount_fuse(&a.world));
	world_mount_overlay(&a.world);
	begin_programs();
	close(a.ready[1]);
	say("ready");
	if (fgets(line, sizeof(line), stdin)) {
		silence();
		while (fgets(line, sizeof(line), stdin))
			;
	}
	end();
	return 0;
}

static int find_how(const char *name)
{
	static const char *const names[] = { "run", "pass", "arguments", "environment", "none" };

	for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

static bool parse(char **argv)
{
	int how = find_how(argv[3]);

	a.world = (struct world){ .host = !strcmp(argv[1], "host"), .overlay = !strcmp(argv[2], "overlay"), .dir = argv[6],
				  .device = argv[8] };
	a.how = (enum how)how;
	a.count = (unsigned)atoi(argv[4]);
	a.silent = argv[5];
	a.content = argv[7];
	return how >= 0 && a.count && a.count <= COUNT_MAX && server_knows(a.silent);
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "victim"))
		return victim_main(argc, argv);
	if (argc != 9 || !parse(argv)) {
		fprintf(stderr, "usage: hang WHERE STYLE HOW COUNT SILENT DIR CONTENT DEVICE\n");
		return 2;
	}
	return attack();
}
