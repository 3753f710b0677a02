// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>

#include "source/sideband_buffer.h"

Suite *sideband_suite(void);

#define SIZE 4096

static struct perf_event_mmap_page page;
static uint8_t data[SIZE], scratch[SIDEBAND_RECORD_MAX];
static struct sideband_buffer buffer;
static unsigned int seen, broken;
static size_t bytes;

static void setup(void)
{
	memset(&page, 0, sizeof(page));
	memset(data, 0, sizeof(data));
	buffer = (struct sideband_buffer){.page = &page, .data = data, .data_bytes = SIZE};
	seen = broken = 0;
	bytes = 0;
}

/* Every byte of a record's body is the low byte of its size. */
static void put(uint16_t size)
{
	struct perf_event_header h = {.type = PERF_RECORD_COMM, .size = size};

	for (size_t i = 0; i < size; i++)
		data[(page.data_head + i) & (SIZE - 1)] =
			i < sizeof(h) ? ((const uint8_t *)&h)[i] : (uint8_t)(size / 8);
	page.data_head += size;
}

static void take(void *ctx, const void *record, size_t len)
{
	const uint8_t *p = record;

	seen++;
	bytes += len;
	for (size_t i = sizeof(struct perf_event_header); i < len; i++)
		broken += p[i] != (uint8_t)(len / 8);
}

static int drain(void)
{
	return sideband_buffer_drain(&buffer, scratch, take, NULL);
}

START_TEST(records_are_handed_over_and_released)
{
	put(8);
	put(104);
	put(4096 - 112);
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(seen, 3);
	ck_assert_uint_eq(bytes, 4096);
	ck_assert_uint_eq(broken, 0);
	ck_assert_uint_eq(page.data_tail, 4096);
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(seen, 3);
}
END_TEST

START_TEST(record_that_wraps_is_put_together)
{
	page.data_head = page.data_tail = (uint64_t)_i * 8;
	put(2000);
	put(1000);
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(seen, 2);
	ck_assert_uint_eq(broken, 0);
}
END_TEST

static const uint16_t wrong_sizes[] = {0, 1, 7, 12, 512, 65535};

START_TEST(size_that_cannot_be_gives_up_the_rest)
{
	struct perf_event_header h = {.size = wrong_sizes[_i]};

	put(64);
	memcpy(data + 64, &h, sizeof(h));
	page.data_head += 64;
	ck_assert_int_eq(drain(), -EBADMSG);
	ck_assert_uint_eq(seen, 1);
	ck_assert_uint_eq(page.data_tail, page.data_head);
}
END_TEST

START_TEST(head_that_cannot_be_gives_up_the_rest)
{
	page.data_head = SIZE + 8;
	ck_assert_int_eq(drain(), -EBADMSG);
	ck_assert_uint_eq(seen, 0);
	ck_assert_uint_eq(page.data_tail, SIZE + 8);
	page.data_head += 4;
	ck_assert_int_eq(drain(), -EBADMSG);
}
END_TEST

START_TEST(tail_that_cannot_be_gives_up_the_rest)
{
	page.data_tail = SIZE - 4;
	page.data_head = SIZE + 8;
	ck_assert_int_eq(drain(), -EBADMSG);
	ck_assert_uint_eq(page.data_tail, SIZE + 8);
}
END_TEST

START_TEST(reader_refuses_what_is_no_buffer)
{
	struct sideband_reader *r = NULL;

	ck_assert_int_eq(sideband_reader_new(&r), 0);
	ck_assert_int_eq(sideband_reader_add(r, -1, 12288), -EINVAL);
	ck_assert_int_eq(sideband_reader_add(r, -1, 0), -EINVAL);
	ck_assert_int_eq(sideband_reader_add(r, -1, 4096), -EBADF);
	ck_assert_int_eq(sideband_reader_drain(r, take, NULL), 0);
	sideband_reader_free(r);
	sideband_reader_free(NULL);
	sideband_close(NULL);
}
END_TEST

Suite *sideband_suite(void)
{
	Suite *s = suite_create("sideband");
	TCase *t = tcase_create("reader");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, records_are_handed_over_and_released);
	tcase_add_loop_test(t, record_that_wraps_is_put_together, 0, SIZE / 8);
	tcase_add_loop_test(t, size_that_cannot_be_gives_up_the_rest, 0, sizeof(wrong_sizes) / sizeof(wrong_sizes[0]));
	tcase_add_test(t, head_that_cannot_be_gives_up_the_rest);
	tcase_add_test(t, tail_that_cannot_be_gives_up_the_rest);
	tcase_add_test(t, reader_refuses_what_is_no_buffer);
	suite_add_tcase(s, t);
	return s;
}
