// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "daemon/ipc.h"

Suite *ipc_suite(void);

static int pair[2];
static struct ipc_message message;

static void setup(void)
{
	ck_assert_int_eq(ipc_pair(pair), 0);
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
}

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

START_TEST(message_arrives_whole)
{
	ck_assert_int_eq(ipc_send(pair[0], IPC_ASK, 77, "hello", 5, NULL, 0), 0);
	ck_assert_int_eq(ipc_receive(pair[1], &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_ASK);
	ck_assert_uint_eq(message.head.tag, 77);
	ck_assert(ipc_fits(&message, 5, 0));
	ck_assert_mem_eq(message.data, "hello", 5);
}
END_TEST

START_TEST(largest_message_arrives)
{
	static uint8_t data[IPC_DATA_MAX];

	memset(data, 0xa5, sizeof(data));
	ck_assert_int_eq(ipc_send(pair[0], IPC_ANSWER, 1, data, sizeof(data), NULL, 0), 0);
	ck_assert_int_eq(ipc_receive(pair[1], &message), 1);
	ck_assert(ipc_fits(&message, sizeof(data), 0));
	ck_assert_mem_eq(message.data, data, sizeof(data));
}
END_TEST

START_TEST(too_large_or_too_many_is_refused_by_the_sender)
{
	int fds[IPC_FDS_MAX + 1] = {0};

	ck_assert_int_eq(ipc_send(pair[0], IPC_ANSWER, 1, "x", IPC_DATA_MAX + 1, NULL, 0), -EINVAL);
	ck_assert_int_eq(ipc_send(pair[0], IPC_ANSWER, 1, NULL, 0, fds, IPC_FDS_MAX + 1), -EINVAL);
}
END_TEST

START_TEST(descriptors_arrive_close_on_exec)
{
	const int fds[2] = {pair[0], pair[1]};

	ck_assert_int_eq(ipc_send(pair[0], IPC_RING, 0, NULL, 0, fds, 2), 0);
	ck_assert_int_eq(ipc_receive(pair[1], &message), 1);
	ck_assert_int_eq(ipc_nr_fds(&message), 2);
	ck_assert_int_eq(fcntl(message.fds[0], F_GETFD), FD_CLOEXEC);
	ipc_close_fds(&message);
	ck_assert_int_eq(ipc_nr_fds(&message), 0);
}
END_TEST

START_TEST(taken_descriptor_survives_closing_the_rest)
{
	const int fds[2] = {pair[0], pair[1]};
	_cleanup_(closep) int taken = -1;

	ck_assert_int_eq(ipc_send(pair[0], IPC_RING, 0, NULL, 0, fds, 2), 0);
	ck_assert_int_eq(ipc_receive(pair[1], &message), 1);
	taken = ipc_take_fd(&message, 0);
	ipc_close_fds(&message);
	ck_assert_int_ge(fcntl(taken, F_GETFD), 0);
}
END_TEST

START_TEST(nothing_there_is_eagain_and_closed_is_zero)
{
	ck_assert_int_eq(ipc_receive(pair[1], &message), -EAGAIN);
	close(pair[0]);
	pair[0] = -1;
	ck_assert_int_eq(ipc_receive(pair[1], &message), 0);
	ck_assert_int_eq(ipc_send(pair[1], IPC_BEAT, 0, NULL, 0, NULL, 0), -EPIPE);
}
END_TEST

START_TEST(messages_sent_before_the_end_are_still_read)
{
	ck_assert_int_eq(ipc_send(pair[0], IPC_BEAT, 1, NULL, 0, NULL, 0), 0);
	ck_assert_int_eq(ipc_send(pair[0], IPC_BEAT, 2, NULL, 0, NULL, 0), 0);
	close(pair[0]);
	pair[0] = -1;
	ck_assert_int_eq(ipc_receive(pair[1], &message), 1);
	ck_assert_int_eq(ipc_receive(pair[1], &message), 1);
	ck_assert_uint_eq(message.head.tag, 2);
	ck_assert_int_eq(ipc_receive(pair[1], &message), 0);
}
END_TEST

START_TEST(full_socket_is_eagain)
{
	static uint8_t data[IPC_DATA_MAX];
	int err = 0;

	for (int i = 0; i < 1000 && !err; i++)
		err = ipc_send(pair[0], IPC_ANSWER, 0, data, sizeof(data), NULL, 0);
	ck_assert_int_eq(err, -EAGAIN);
}
END_TEST

static const struct {
	struct ipc_head head;
	size_t data;
} malformed[] = {
	{{.type = IPC_BEAT, .len = 1}, 0},	       /* says more than it has */
	{{.type = IPC_BEAT, .len = 0}, 8},	       /* has more than it says */
	{{.type = 0, .len = 0}, 0},		       /* no type */
	{{.type = 9999, .len = 0}, 0},		       /* unknown type */
	{{.type = IPC_BEAT, .len = UINT32_MAX}, 16},
};

START_TEST(malformed_message_is_refused)
{
	struct {
		struct ipc_head head;
		uint8_t data[16];
	} raw = {.head = malformed[_i].head};

	ck_assert_int_gt(send(pair[0], &raw, sizeof(raw.head) + malformed[_i].data, 0), 0);
	ck_assert_int_eq(ipc_receive(pair[1], &message), -EBADMSG);
}
END_TEST

START_TEST(short_and_oversized_packets_are_refused)
{
	static uint8_t raw[sizeof(struct ipc_head) + IPC_DATA_MAX + 1];
	const struct ipc_head head = {.type = IPC_ANSWER, .len = IPC_DATA_MAX + 1};

	ck_assert_int_eq(send(pair[0], "abc", 3, 0), 3);
	ck_assert_int_eq(ipc_receive(pair[1], &message), -EBADMSG);
	memcpy(raw, &head, sizeof(head));
	ck_assert_int_eq(send(pair[0], raw, sizeof(raw), 0), sizeof(raw));
	ck_assert_int_eq(ipc_receive(pair[1], &message), -EBADMSG);
}
END_TEST

static void send_descriptors(int n)
{
	struct ipc_head head = {.type = IPC_BEAT};
	struct iovec iov = {&head, sizeof(head)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 64)];
	} control = {0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = CMSG_SPACE(sizeof(int) * n)};
	struct cmsghdr *c = &control.align;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n);
	for (int i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &pair[0], sizeof(int));
	ck_assert_int_gt(sendmsg(pair[0], &msg, 0), 0);
}

START_TEST(too_many_descriptors_are_refused_and_closed)
{
	int before = open_files();

	send_descriptors(IPC_FDS_MAX + 1);
	ck_assert_int_eq(ipc_receive(pair[1], &message), -EBADMSG);
	ck_assert_int_eq(open_files(), before);
	send_descriptors(64);
	ck_assert_int_eq(ipc_receive(pair[1], &message), -EBADMSG);
	ck_assert_int_eq(open_files(), before);
}
END_TEST

/* None of them is opened here: this process would have to close it, which may take for ever. */
START_TEST(descriptors_for_one_who_takes_none_are_refused_unopened)
{
	int pipes[2];
	char end;

	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_eq(ipc_send(pair[0], IPC_BEAT, 0, NULL, 0, &pipes[1], 1), 0);
	close(pipes[1]);
	ck_assert_int_eq(ipc_receive_plain(pair[1], &message), -EBADMSG);
	ck_assert_int_eq(ipc_nr_fds(&message), 0);
	ck_assert_int_eq(read(pipes[0], &end, 1), 0); /* its last writer is gone */
	ck_assert_int_eq(ipc_send(pair[0], IPC_BEAT, 0, NULL, 0, NULL, 0), 0);
	ck_assert_int_eq(ipc_receive_plain(pair[1], &message), 1);
	close(pipes[0]);
}
END_TEST

START_TEST(memfd_is_sealed_and_reads_back)
{
	_cleanup_(closep) int fd = ipc_memfd("test", "some text", 9);
	_cleanup_(freep) char *text = NULL;
	size_t len;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_lt(write(fd, "x", 1), 0);
	ck_assert_int_lt(ftruncate(fd, 1), 0);
	ck_assert_int_eq(ipc_memfd_read(fd, 100, &text, &len), 0);
	ck_assert_uint_eq(len, 9);
	ck_assert_str_eq(text, "some text");
}
END_TEST

START_TEST(memfd_that_may_change_is_refused)
{
	_cleanup_(closep) int fd = ipc_memfd_new("test");
	char *text = NULL;
	size_t len;

	ck_assert_int_eq(write(fd, "abc", 3), 3);
	ck_assert_int_eq(ipc_memfd_read(fd, 100, &text, &len), -EBADMSG);
	ck_assert_int_eq(ipc_memfd_seal(fd), 0);
	ck_assert_int_eq(ipc_memfd_read(fd, 2, &text, &len), -EFBIG);
	ck_assert_ptr_null(text);
}
END_TEST

Suite *ipc_suite(void)
{
	Suite *s = suite_create("ipc");
	TCase *t = tcase_create("messages");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, message_arrives_whole);
	tcase_add_test(t, largest_message_arrives);
	tcase_add_test(t, too_large_or_too_many_is_refused_by_the_sender);
	tcase_add_test(t, descriptors_arrive_close_on_exec);
	tcase_add_test(t, taken_descriptor_survives_closing_the_rest);
	tcase_add_test(t, nothing_there_is_eagain_and_closed_is_zero);
	tcase_add_test(t, messages_sent_before_the_end_are_still_read);
	tcase_add_test(t, full_socket_is_eagain);
	tcase_add_loop_test(t, malformed_message_is_refused, 0, ARRAY_SIZE(malformed));
	tcase_add_test(t, short_and_oversized_packets_are_refused);
	tcase_add_test(t, too_many_descriptors_are_refused_and_closed);
	tcase_add_test(t, descriptors_for_one_who_takes_none_are_refused_unopened);
	tcase_add_test(t, memfd_is_sealed_and_reads_back);
	tcase_add_test(t, memfd_that_may_change_is_refused);
	suite_add_tcase(s, t);
	return s;
}
