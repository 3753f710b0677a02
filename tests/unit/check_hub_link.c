// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"

Suite *hub_link_suite(void);

/* A socket plays the hub, which may have been taken over. */
static struct monitor *m;
static struct config config;
static int hub;
static struct ipc_message message;

static void setup(void)
{
	int pair[2];

	log_init("test", LOG_LEVEL_ERROR);
	config = (struct config){.hub_selection = true, .frequency_hz = 19, .stack_bytes = 65536, .stack_max_bytes = 65536};
	m = calloc(1, sizeof(*m));
	ck_assert_ptr_nonnull(m);
	m->config = &config;
	m->sampler.sampling = true;
	hub_link_init(&m->hub);
	workers_init(&m->workers);
	ck_assert_int_eq(ipc_pair(pair), 0);
	m->workers.hub.sock = pair[0];
	hub = pair[1];
}

static void teardown(void)
{
	close(m->workers.hub.sock);
	close(hub);
	free(m);
}

/* What the monitor answers to a selection of the hub. */
static struct ipc_selected ask(const char *line)
{
	struct ipc_selected answer;

	ck_assert_int_eq(ipc_send(hub, IPC_SELECT, 0, line, strlen(line), NULL, 0), 0);
	ck_assert_int_eq(ipc_receive(m->workers.hub.sock, &message), 1);
	hub_link_from(m, &message);
	ck_assert_int_eq(ipc_receive(hub, &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_SELECTED);
	ck_assert(ipc_fits(&message, sizeof(answer), 0));
	memcpy(&answer, message.data, sizeof(answer));
	return answer;
}

START_TEST(hub_selects_where_the_configuration_lets_it)
{
	struct ipc_selected a = ask("exe:a hz=49 seconds=60");

	ck_assert_str_eq(a.why, "");
	ck_assert(a.may && a.shown.since_ns && a.shown.what.hz == 49);
	ck_assert_str_eq(a.shown.by, "the hub");
	ck_assert(m->selector.wanted);
}
END_TEST

START_TEST(hub_that_may_not_select_is_refused_by_the_monitor)
{
	struct ipc_selected a;

	config.hub_selection = false;
	a = ask("exe:a");
	ck_assert_str_ne(a.why, "");
	ck_assert(!a.may && !m->selector.wanted);
	a = ask("");
	ck_assert(*a.why && !m->selector.wanted);
}
END_TEST

static const char *const bad[] = {
	"nonsense", "pid:1", "exe:a hz=1001", "stack_bytes=65537", "exe:a\nexe:b", "unit:a;b", "seconds=86401 exe:a", " ",
};

START_TEST(hub_selects_nothing_by_a_malformed_line)
{
	struct ipc_selected a = ask(bad[_i]);

	ck_assert_str_ne(a.why, "");
	ck_assert(!m->selector.wanted && !a.shown.since_ns);
}
END_TEST

START_TEST(hub_selects_once_a_second_at_most)
{
	ck_assert_str_eq(ask("exe:a").why, "");
	ck_assert_str_ne(ask("exe:b").why, "");
	ck_assert_str_eq(m->selector.next.what.targets, "exe:a");
	m->hub.asked_ns -= 1000000000;
	ck_assert_str_eq(ask("exe:b").why, "");
	ck_assert_str_eq(m->selector.next.what.targets, "exe:b");
}
END_TEST

/* --- listening --- */

static char dir[64];

static void make_dir(void)
{
	strcpy(dir, "/tmp/otprof-hub-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/hub.sock", dir);
	unlink(path);
	rmdir(dir);
}

START_TEST(socket_file_is_its_owners_and_groups)
{
	char address[128], why[HUB_LISTEN_WHY];
	struct stat st;
	int fd = -1, again = -1;

	snprintf(address, sizeof(address), "unix:%s/hub.sock", dir);
	ck_assert_msg(hub_listen_open(address, &fd, why) == 0, "%s", why);
	ck_assert_int_eq(stat(address + 5, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0660);
	/* One that a killed otprofd left behind is no obstacle. */
	ck_assert_int_eq(hub_listen_open(address, &again, why), 0);
	close(fd);
	close(again);
	hub_listen_remove(address);
	ck_assert_int_ne(stat(address + 5, &st), 0);
}
END_TEST

START_TEST(file_of_others_is_not_removed_for_the_socket)
{
	char address[128], why[HUB_LISTEN_WHY];
	struct stat st;
	FILE *f;
	int fd = -1;

	snprintf(address, sizeof(address), "unix:%s/hub.sock", dir);
	f = fopen(address + 5, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
	ck_assert_int_eq(hub_listen_open(address, &fd, why), -EEXIST);
	ck_assert(!stat(address + 5, &st) && S_ISREG(st.st_mode));
}
END_TEST

START_TEST(directory_that_anybody_may_write_is_refused)
{
	char address[128], why[HUB_LISTEN_WHY];
	int fd = -1;

	ck_assert_int_eq(chmod(dir, 0777), 0);
	snprintf(address, sizeof(address), "unix:%s/hub.sock", dir);
	ck_assert_int_eq(hub_listen_open(address, &fd, why), -EPERM);
	ck_assert_ptr_nonnull(strstr(why, dir));
}
END_TEST

START_TEST(address_in_use_is_said)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int taken = socket(AF_INET, SOCK_STREAM, 0), fd = -1;
	char address[32], why[HUB_LISTEN_WHY];
	socklen_t len = sizeof(at);

	ck_assert(!bind(taken, (const struct sockaddr *)&at, len) && !listen(taken, 1));
	ck_assert_int_eq(getsockname(taken, (struct sockaddr *)&at, &len), 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
	ck_assert_int_eq(hub_listen_open(address, &fd, why), -EADDRINUSE);
	ck_assert_ptr_nonnull(strstr(why, address));
	close(taken);
	ck_assert_int_eq(hub_listen_open(address, &fd, why), 0);
	close(fd);
}
END_TEST

START_TEST(clients_of_this_host_connect_by_loopback)
{
	char near[64];

	hub_listen_near("0.0.0.0:4380", near, sizeof(near));
	ck_assert_str_eq(near, "127.0.0.1:4380");
	hub_listen_near("[::]:1", near, sizeof(near));
	ck_assert_str_eq(near, "[::1]:1");
	hub_listen_near("192.0.2.1:1", near, sizeof(near));
	ck_assert_str_eq(near, "192.0.2.1:1");
}
END_TEST

Suite *hub_link_suite(void)
{
	Suite *s = suite_create("hub_link");
	TCase *t = tcase_create("select"), *l = tcase_create("listen");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, hub_selects_where_the_configuration_lets_it);
	tcase_add_test(t, hub_that_may_not_select_is_refused_by_the_monitor);
	tcase_add_loop_test(t, hub_selects_nothing_by_a_malformed_line, 0, ARRAY_SIZE(bad));
	tcase_add_test(t, hub_selects_once_a_second_at_most);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(l, make_dir, remove_dir);
	tcase_add_test(l, socket_file_is_its_owners_and_groups);
	tcase_add_test(l, file_of_others_is_not_removed_for_the_socket);
	tcase_add_test(l, directory_that_anybody_may_write_is_refused);
	tcase_add_test(l, address_in_use_is_said);
	tcase_add_test(l, clients_of_this_host_connect_by_loopback);
	suite_add_tcase(s, l);
	return s;
}
