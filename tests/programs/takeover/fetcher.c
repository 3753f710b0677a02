// SPDX-License-Identifier: Apache-2.0
/*
 * A fetcher that was taken over: it looks for secrets in its configuration, its
 * descriptors and the files that it reaches, tries to listen and to reach local
 * sockets, and sends the monitor every message. It has the network, one file to
 * write, and nothing else.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/config/config.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"
#include "takeover.h"

#define SOCK ROLE_SOCKET

int __real_sandbox_fetcher(const struct config *c);
int __wrap_sandbox_fetcher(const struct config *c);

static struct ipc_message message;
static uint32_t bad;

/* It knows the path of an exporter's key, and no more. */
static void read_files(const struct config *c)
{
	static const char *const paths[] = {"/etc/shadow", "/etc/otprof.conf", "/proc/1/environ", "/proc/self/maps",
					    "/dev/mem",	   "/run/otprof/lock"};
	uint32_t read_some = 0, keys = 0;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_(closep) int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		read_some += fd >= 0;
	}
	for (uint32_t i = 0; i < c->nr_exporters; i++) {
		_cleanup_(closep) int fd = c->exporters[i].tls_key ? open(c->exporters[i].tls_key, O_RDONLY | O_CLOEXEC) : -1;

		keys += c->exporters[i].tls_key != NULL;
		read_some += fd >= 0;
		for (uint32_t h = 0; h < c->exporters[i].nr_headers; h++)
			bad += strstr(c->exporters[i].headers[h], HELD_SECRET) != NULL;
	}
	takeover_ok(keys && !read_some, "fetcher opens no file of the host, and no key of an exporter (%u, %u keys)",
		    read_some, keys);
	takeover_ok(!bad, "fetcher's configuration has no exporter's secret");
}

static void write_files(void)
{
	static const char *const paths[] = {"/new", "/etc/resolv.conf", "/etc/new", "/tmp/new", "/dev/null"};
	uint32_t opened = 0;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_(closep) int fd = open(paths[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		opened += fd >= 0;
	}
	takeover_ok(!opened && mkdir("/directory", 0700) < 0 && unlink("/etc/resolv.conf") < 0,
		    "fetcher opens and makes nothing to write (%u)", opened);
}

static void look_at_descriptors(void)
{
	uint32_t writable = 0, secrets = 0;
	struct stat st;

	for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) {
		if (fstat(fd, &st) < 0)
			continue;
		writable += S_ISREG(st.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
		secrets += S_ISREG(st.st_mode) && takeover_holds_secret(fd);
	}
	takeover_ok(writable == 1 && !secrets, "fetcher has one file to write (%u), and descriptors without secrets",
		    writable);
}

static void open_sockets(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	_cleanup_(closep) int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	_cleanup_(closep) int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	_cleanup_(closep) int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	bool listens = !bind(tcp, (const struct sockaddr *)&any, sizeof(any)) && !listen(tcp, 1);

	takeover_ok(tcp >= 0 && local < 0 && raw < 0 && !listens, "fetcher has TCP, and neither listens nor has another socket");
}

/* Without descriptors, of which one alone ends a worker. The monitor has nothing to say to it. */
static void flood(void)
{
	static uint8_t data[IPC_DATA_MAX];
	uint32_t type, len, sent = 0, fds = 0;
	int err = 0;

	for (int t = 0; takeover_type(&t, &type);)
		for (int l = 0; takeover_length(&l, &len) && !err;) {
			memset(data, l % 2 ? 0xff : 0, sizeof(data));
			err = takeover_send(SOCK, type, l, data, len, len, NULL, 0);
			sent += !err;
		}
	while (takeover_receive(SOCK, &message, 300) == 1) {
		fds += (uint32_t)ipc_nr_fds(&message);
		ipc_close_fds(&message);
	}
	takeover_ok(sent > 100 && !fds, "fetcher sends the monitor all messages, and no descriptor arrives (%u)", fds);
}

int __wrap_sandbox_fetcher(const struct config *c)
{
	int err = __real_sandbox_fetcher(c);

	if (err)
		return err;
	ipc_send(SOCK, IPC_READY, 0, NULL, 0, NULL, 0);
	read_files(c);
	write_files();
	look_at_descriptors();
	open_sockets();
	flood();
	takeover_done();
	_exit(0);
}
