// SPDX-License-Identifier: Apache-2.0
/* What the header's own assertions cannot say. */
#include <check.h>
#include <stdbool.h>
#include <string.h>

#include "kmod/uapi/otprof.h"

Suite *contract_suite(void);

static const struct {
	unsigned int number;
	const char *name, *text;
} reasons[] = {
#define X(number, NAME, name, place, text) {number, name, text},
	OTP_LOSS_REASONS(X)
#undef X
};

static const struct {
	unsigned int number;
	const char *name;
} skips[] = {
#define X(number, NAME, name, text) {number, name},
	OTP_SKIP_REASONS(X)
#undef X
};

#define NR(a) (sizeof(a) / sizeof((a)[0]))

START_TEST(loss_reasons_have_their_own_number_and_name)
{
	uint32_t used = 0;

	ck_assert_uint_le(NR(reasons), OTP_LOSS_NR);
	for (size_t i = 0; i < NR(reasons); i++) {
		ck_assert_uint_lt(reasons[i].number, OTP_LOSS_NR);
		ck_assert_uint_eq(used >> reasons[i].number & 1, 0);
		used |= 1U << reasons[i].number;
		ck_assert_uint_gt(strlen(reasons[i].text), 0);
		for (size_t j = 0; j < i; j++)
			ck_assert_str_ne(reasons[i].name, reasons[j].name);
	}
	ck_assert_uint_lt(OTP_LOSS_NR, OTP_LOSS_MAX);
}
END_TEST

START_TEST(skip_reasons_have_their_own_number_and_name)
{
	ck_assert_uint_eq(NR(skips), OTP_SKIP_NR);
	for (size_t i = 0; i < NR(skips); i++) {
		ck_assert_uint_eq(skips[i].number, i);
		ck_assert_uint_lt(skips[i].number, OTP_SKIP_MAX);
	}
}
END_TEST

START_TEST(structures_have_no_hidden_padding)
{
	/* Of each, the sum of its parts: what a sampler fills field by field has no byte left over. */
	ck_assert_uint_eq(sizeof(struct otp_sample), 8 + 8 * 2 + 4 * 4 + 8 * 4 + OTP_COMM_LEN + 4 * 3 + 2 * 2 + 8);
	ck_assert_uint_eq(sizeof(struct otp_chunk), 8 + 8 + 4 * 2 + 8 + 4 * 2);
	ck_assert_uint_eq(sizeof(struct otp_loss), 8 + 8 + 4 * 2 + 8 * 2);
	ck_assert_uint_eq(sizeof(struct otp_cpu_counters), 8 * (8 + OTP_SKIP_MAX + OTP_LOSS_MAX + 16));
	ck_assert_uint_eq(sizeof(struct otp_defaults), 3 * 4 + 4 + 4 * 4);
	ck_assert_uint_eq(sizeof(struct otp_plan), 2 * 4 + 2 * 8 + 4 + 4);
}
END_TEST

START_TEST(a_record_fits_the_scratch_area)
{
	size_t head = sizeof(struct otp_sample) + 8 + sizeof(struct otp_regs) + OTP_REGS_MAX * 8 + 8 +
		      OTP_KSTACK_MAX * 8 + 8 + sizeof(struct otp_ustack) + OTP_HEAD_STACK;

	ck_assert_uint_le(head, OTP_SCRATCH);
	ck_assert_uint_le(sizeof(struct otp_chunk) + OTP_CHUNK_STACK, OTP_SCRATCH);
	ck_assert_uint_eq(OTP_STACK_LIMIT % OTP_CHUNK_STACK, 0);
}
END_TEST

Suite *contract_suite(void)
{
	Suite *s = suite_create("contract");
	TCase *t = tcase_create("header");

	tcase_add_test(t, loss_reasons_have_their_own_number_and_name);
	tcase_add_test(t, skip_reasons_have_their_own_number_and_name);
	tcase_add_test(t, structures_have_no_hidden_padding);
	tcase_add_test(t, a_record_fits_the_scratch_area);
	suite_add_tcase(s, t);
	return s;
}
