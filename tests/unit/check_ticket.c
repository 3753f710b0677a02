// SPDX-License-Identifier: Apache-2.0
/* Tickets of files, and the questions that show them. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/monitor/monitor.h"
#include "daemon/ticket.h"
#include "process/host.h"

Suite *ticket_suite(void);

static const uint8_t key[TICKET_KEY] = "the key of openers and monitor.";
static struct ipc_message message;

/* HMAC-SHA-256 has test vectors (RFC 4231), but not of this length of key and text: this one is Python's hmac. */
static const uint8_t known[SHA256_LEN] = {
	0xfa, 0x5a, 0x6d, 0xfc, 0xc6, 0x03, 0x81, 0xa2, 0x18, 0xdc, 0xeb, 0xc3,
	0x77, 0x16, 0x60, 0x46, 0x4a, 0x08, 0xb9, 0x30, 0xad, 0x27, 0x4d, 0x5d,
	0x1b, 0xe4, 0x3d, 0x19, 0x72, 0xab, 0x80, 0xf0,
};

static struct ticket some(void)
{
	struct ticket t = {.file = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .shown = {10, 11, 12, 13, 14, 15, 16, 17, 18}};

	ticket_sign(&t, key);
	return t;
}

START_TEST(signature_is_hmac_sha256)
{
	struct ticket t = some();

	ck_assert_mem_eq(t.mac, known, sizeof(known));
}
END_TEST

START_TEST(changed_ticket_is_not_good)
{
	struct ticket t = some();

	ck_assert(ticket_is_good(&t, key));
	for (size_t i = 0; i < sizeof(t); i++) {
		((uint8_t *)&t)[i] ^= 0x40;
		ck_assert(!ticket_is_good(&t, key));
		((uint8_t *)&t)[i] ^= 0x40;
	}
	ck_assert(!ticket_is_good(&t, (const uint8_t[TICKET_KEY]){0}));
	memset(&t, 0, sizeof(t));
	ck_assert(!ticket_is_good(&t, key));
}
END_TEST

START_TEST(another_file_is_not_the_tickets)
{
	int fd = ipc_memfd_new("one"), other = ipc_memfd_new("other");
	struct ticket_file shown;
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	ticket_file_of(&st, &shown);
	ck_assert_int_eq(ticket_file_check(&shown, fd), 0);
	ck_assert_int_eq(ticket_file_check(&shown, other), -ESTALE);
	ck_assert_int_eq(ftruncate(fd, 1), 0);
	ck_assert_int_eq(ticket_file_check(&shown, fd), -ESTALE);
	ck_assert_int_eq(ticket_file_check(&shown, -1), -EBADF);
	close(fd);
	close(other);
}
END_TEST

/* The monitor's question handler, with the test as the engine. */
static struct monitor *monitor_new(int *ret_engine)
{
	struct monitor *m = calloc(1, sizeof(*m));
	int pair[2];

	ck_assert_int_eq(ipc_pair(pair), 0);
	workers_init(&m->workers);
	memcpy(m->ticket_key, key, sizeof(key));
	m->workers.engine.sock = pair[0];
	*ret_engine = pair[1];
	return m;
}

static void ask_index(struct monitor *m, const struct ticket *t, uint32_t path_len, size_t bytes)
{
	const struct ipc_ask ask = {.kind = HOST_OPEN_INDEX, .path_len = path_len};

	message.head = (struct ipc_head){.type = IPC_ASK, .len = (uint32_t)bytes, .tag = 1};
	memcpy(message.data, &ask, sizeof(ask));
	memcpy(message.data + sizeof(ask), t, sizeof(*t));
	index_jobs_ask(m, &message);
}

#define WHOLE (sizeof(struct ipc_ask) + sizeof(struct ticket))

START_TEST(monitor_believes_a_signed_ticket_only)
{
	struct ticket good = some(), forged = good;
	int engine;
	struct monitor *m = monitor_new(&engine);

	forged.file.ino++;
	ask_index(m, &good, 3, WHOLE + 3);
	ck_assert_int_eq(ipc_receive(engine, &message), 1); /* there is no cache here */
	ck_assert_int_eq(((struct ipc_answer *)(void *)message.data)->err, -ENOSYS);
	ask_index(m, &forged, 3, WHOLE + 3);
	ask_index(m, &good, 4, WHOLE + 3);
	ask_index(m, &good, UINT32_MAX, WHOLE + 3);
	ask_index(m, &good, HOST_PATH_MAX, WHOLE + HOST_PATH_MAX);
	ask_index(m, &good, 0, WHOLE - 1);
	ask_index(m, &good, 0, 0);
	ck_assert_int_eq(ipc_receive(engine, &message), -EAGAIN);
	close(engine);
	close(m->workers.engine.sock);
	free(m);
}
END_TEST

Suite *ticket_suite(void)
{
	Suite *s = suite_create("ticket");
	TCase *t = tcase_create("ticket");

	tcase_add_test(t, signature_is_hmac_sha256);
	tcase_add_test(t, changed_ticket_is_not_good);
	tcase_add_test(t, another_file_is_not_the_tickets);
	tcase_add_test(t, monitor_believes_a_signed_ticket_only);
	suite_add_tcase(s, t);
	return s;
}
