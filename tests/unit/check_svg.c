// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>

#include "graph_fixture.h"
#include "render/palette.h"

Suite *svg_suite(void);

static size_t occurrences(const char *s, const char *what)
{
	size_t n = 0;

	for (; (s = strstr(s, what)); s += strlen(what))
		n++;
	return n;
}

static bool skip(const char **s, const char *open, const char *close)
{
	if (strncmp(*s, open, strlen(open)) != 0)
		return false;
	*s = strstr(*s, close);
	ck_assert_ptr_nonnull(*s);
	*s += strlen(close) - 1;
	return true;
}

/* Every element is closed in order, and no bare & or < stands in text. */
static void assert_well_formed(const char *s)
{
	char names[64][32];
	size_t depth = 0, n;

	for (; *s; s++) {
		if (*s == '&')
			ck_assert(!strncmp(s, "&amp;", 5) || !strncmp(s, "&lt;", 4) || !strncmp(s, "&gt;", 4) ||
				  !strncmp(s, "&quot;", 6));
		if (*s != '<' || skip(&s, "<?", "?>") || skip(&s, "<![CDATA[", "]]>"))
			continue;
		n = strcspn(s + 1, " \n>/");
		if (s[1] == '/') {
			n = strcspn(s + 2, ">");
			ck_assert_uint_gt(depth, 0);
			ck_assert_uint_eq(strlen(names[--depth]), n);
			ck_assert(strncmp(names[depth], s + 2, n) == 0);
			s = strchr(s, '>');
			continue;
		}
		ck_assert_uint_lt(depth, 64);
		ck_assert_uint_lt(n, 32);
		snprintf(names[depth++], 32, "%.*s", (int)n, s + 1);
		s = strchr(s, '>');
		ck_assert_ptr_nonnull(s);
		if (s[-1] == '/')
			depth--;
	}
	ck_assert_uint_eq(depth, 0);
}

static struct recording *recording_of(void (*change)(struct fixture *f))
{
	struct recording *r = NULL;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(change, r), 0);
	return r;
}

START_TEST(picture_has_every_frame_with_its_figures)
{
	struct picture p = {.title = "a title"};
	struct recording *r = fixture_recording();
	struct buf b = {0};
	const char *s;

	ck_assert_int_eq(fixture_draw(render_svg, r, p, "97 Hz", &b), 0);
	s = buf_cstr(&b);
	assert_well_formed(s);
	ck_assert_uint_eq(occurrences(s, "<g class=\"f\""), 9);
	ck_assert_ptr_nonnull(strstr(s, ">a title</text>"));
	ck_assert_ptr_nonnull(strstr(s, "97 Hz \xc2\xb7 10 samples \xc2\xb7 103 ms of CPU \xc2\xb7 host box"));
	/* offset total self row: the marker's two frames come first by name */
	ck_assert_ptr_nonnull(strstr(s, "data-v=\"0 10 0 0\"><title>all\n"));
	ck_assert_ptr_nonnull(strstr(s, "data-v=\"1 9 0 2\"><title>main\n/usr/bin/app \xc2\xb7 native\n9 samples (90.00 %), self 0 (0.00 %)"));
	ck_assert_ptr_nonnull(strstr(s, "data-v=\"2 8 5 4\"><title>inlined_fn\n/usr/bin/app \xc2\xb7 native \xc2\xb7 inlined\n"));
	ck_assert_ptr_nonnull(strstr(s, "data-v=\"2 3 3 5\"><title>vfs_read\n[kernel] \xc2\xb7 kernel\n"));
	ck_assert_ptr_nonnull(strstr(s, "kernel 30.0 %"));
	ck_assert_ptr_null(strstr(s, "not drawn"));
	buf_done(&b);
	recording_free(r);
}
END_TEST

START_TEST(same_recording_gives_the_same_picture)
{
	struct picture p = {0};
	struct recording *r = fixture_recording(), *again = fixture_recording();
	struct buf a = {0}, b = {0};

	ck_assert_int_eq(fixture_draw(render_svg, r, p, NULL, &a), 0);
	ck_assert_int_eq(fixture_draw(render_svg, again, p, NULL, &b), 0);
	ck_assert_str_eq(buf_cstr(&a), buf_cstr(&b));
	buf_done(&a);
	buf_done(&b);
	recording_free(r);
	recording_free(again);
}
END_TEST

static int main_y(bool inverted)
{
	struct picture p = {.inverted = inverted};
	struct recording *r = fixture_recording();
	struct buf b = {0};
	const char *s;
	int y;

	ck_assert_int_eq(fixture_draw(render_svg, r, p, NULL, &b), 0);
	s = strstr(buf_cstr(&b), "<title>all\n");
	ck_assert_ptr_nonnull(s);
	s = strstr(s, " y=\"");
	y = atoi(s + 4);
	buf_done(&b);
	recording_free(r);
	return y;
}

START_TEST(root_is_below_and_inverted_above)
{
	ck_assert_int_eq(main_y(true), 92);
	ck_assert_int_eq(main_y(false), 92 + 5 * 18);
}
END_TEST

static void hostile(struct fixture *f)
{
	f->strings[5] = (char *)"</title><script>alert(\"&\")</script>]]>";
	f->strings[8] = (char *)"\"><script>alert(1)</script>";
	f->resource_values[0].string_value = (char *)"<b>&amp;\x01\xff";
	f->resource_values[1].string_value = (char *)"<i>host";
}

START_TEST(names_are_text_and_never_markup)
{
	struct picture p = {.title = "<script>&\""};
	struct recording *r = recording_of(hostile);
	struct buf b = {0};
	const char *s;

	ck_assert_int_eq(fixture_draw(render_svg, r, p, "]]><x>", &b), 0);
	s = buf_cstr(&b);
	assert_well_formed(s);
	ck_assert_uint_eq(occurrences(s, "<script"), 1);
	ck_assert_uint_eq(occurrences(s, "]]>"), 1);
	ck_assert_ptr_nonnull(strstr(s, "&lt;/title&gt;&lt;script&gt;alert(&quot;&amp;&quot;)"));
	buf_done(&b);
	recording_free(r);
}
END_TEST

static void page_faults(struct fixture *f)
{
	f->strings[20] = (char *)"page_faults";
	f->sample_type.type_strindex = 20;
	f->period_type.type_strindex = 20;
	f->period_type.unit_strindex = 2;
	f->profile.period = 1;
	f->values[0] = 312;
}

START_TEST(figures_are_in_the_unit_of_the_type)
{
	struct recording *r = recording_of(page_faults);
	struct picture p = {0};
	struct buf b = {0};
	const char *s;

	ck_assert_int_eq(fixture_draw(render_svg, r, p, NULL, &b), 0);
	s = buf_cstr(&b);
	ck_assert_ptr_nonnull(strstr(s, "data-period=\"0\" data-unit=\"page_faults\""));
	ck_assert_ptr_nonnull(strstr(s, ">319 page_faults \xc2\xb7 host box"));
	ck_assert_ptr_nonnull(strstr(s, "<title>vfs_read\n[kernel] \xc2\xb7 kernel\n312 page_faults (97.81 %), self 312 (97.81 %)"));
	ck_assert_ptr_null(strstr(s, " samples"));
	ck_assert_ptr_null(strstr(s, "of CPU"));
	buf_done(&b);
	recording_free(r);
}
END_TEST

static void one_in_a_million(struct fixture *f)
{
	f->values[1] = 1000000;
}

START_TEST(frames_too_narrow_are_left_out_and_counted)
{
	struct picture p = {0};
	struct recording *r = recording_of(one_in_a_million);
	struct buf b = {0};
	const char *s;

	ck_assert_int_eq(fixture_draw(render_svg, r, p, NULL, &b), 0);
	s = buf_cstr(&b);
	assert_well_formed(s);
	/* all, app, main, work, inlined_fn are drawn; vfs_read, the marker with its main and the nameless one are not. */
	ck_assert_uint_eq(occurrences(s, "<g class=\"f\""), 5);
	ck_assert_ptr_nonnull(strstr(s, "4 frames below 0.025 % are not drawn"));
	buf_done(&b);
	recording_free(r);
}
END_TEST

START_TEST(nothing_recorded_is_still_a_picture)
{
	struct picture p = {0};
	struct recording *r = NULL;
	struct buf b = {0};

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_draw(render_svg, r, p, NULL, &b), 0);
	assert_well_formed(buf_cstr(&b));
	ck_assert_uint_eq(occurrences(buf_cstr(&b), "<g class=\"f\""), 1);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&b), ">0 samples<"));
	ck_assert_ptr_null(strstr(buf_cstr(&b), "nan"));
	buf_done(&b);
	recording_free(r);
}
END_TEST

START_TEST(output_over_its_bound_fails)
{
	struct picture p = {0};
	struct recording *r = fixture_recording();
	struct buf b = {.max = 4096};

	ck_assert_int_eq(fixture_draw(render_svg, r, p, NULL, &b), -E2BIG);
	buf_done(&b);
	recording_free(r);
}
END_TEST

/* Twice as many samples; vfs_read had 3 of 10 and now has 17 of 20, the marker is gone. */
static void later(struct fixture *f)
{
	f->values[0] = 17;
	f->values[1] = 2;
	f->samples[2].stack_index = 4;
	f->values[2] = 0;
}

START_TEST(comparison_shows_both_figures_and_the_change_of_share)
{
	struct recording *before = fixture_recording(), *r = recording_of(later);
	struct graph *g = fixture_comparison(r, before);
	struct picture p = {.graph = g, .title = "t", .caption = "c", .unit = "samples", .period_ns = 1};
	struct buf b = {0};
	const char *s;
	char color[16];

	ck_assert_int_eq(render_svg(&p, &b), 0);
	s = buf_cstr(&b);
	assert_well_formed(s);
	ck_assert_ptr_nonnull(strstr(s, " data-before=\"10\""));
	/* all, app, main, work, inlined_fn, vfs_read, the nameless one; not the marker and its main */
	ck_assert_uint_eq(occurrences(s, "<g class=\"f\""), 7);
	ck_assert_ptr_nonnull(strstr(s, " data-b=\"3 3\"><title>vfs_read\n[kernel] \xc2\xb7 kernel\n"
					"17 samples (85.00 %), self 17 (85.00 %)\nbefore: 3 (30.00 %), self 3 (30.00 %)</title>"));
	ck_assert_ptr_nonnull(strstr(s, "stacks with 10.00 % of the value before are gone"));
	ck_assert_ptr_null(strstr(s, "are not drawn"));
	/* 85 % after 30: orange; the nameless frame 5 % after 10: blue; all of all is all. */
	snprintf(color, sizeof(color), "#%06x", palette_change((85.0 - 30) / (85 + 30)));
	ck_assert_ptr_nonnull(strstr(strstr(s, "<title>vfs_read"), color));
	snprintf(color, sizeof(color), "#%06x", palette_change((5.0 - 10) / (5 + 10)));
	ck_assert_ptr_nonnull(strstr(strstr(s, "<title>app+0x3039"), color));
	snprintf(color, sizeof(color), "#%06x", palette_change(0));
	ck_assert_ptr_nonnull(strstr(strstr(s, "<title>all"), color));
	ck_assert_ptr_nonnull(strstr(s, ">twice</text>"));
	graph_free(g);
	buf_done(&b);
	recording_free(r);
	recording_free(before);
}
END_TEST

START_TEST(comparison_with_nothing_is_all_new)
{
	struct recording *before = NULL, *r = fixture_recording();
	struct picture p = {.title = "t", .caption = "c", .unit = "samples"};
	struct buf b = {0};
	struct graph *g;

	ck_assert_int_eq(recording_new(&fixture_limits, &before), 0);
	g = fixture_comparison(r, before);
	p.graph = g;
	ck_assert_int_eq(render_svg(&p, &b), 0);
	assert_well_formed(buf_cstr(&b));
	ck_assert_ptr_null(strstr(buf_cstr(&b), "nan"));
	ck_assert_ptr_null(strstr(buf_cstr(&b), "are gone"));
	graph_free(g);
	buf_done(&b);
	recording_free(r);
	recording_free(before);
}
END_TEST

static int channel(uint32_t color, int shift)
{
	return (int)(color >> shift & 0xff);
}

START_TEST(change_is_orange_blue_or_grey)
{
	int i, last = 0;

	ck_assert_int_eq(channel(palette_change(0), 16), channel(palette_change(0), 0));
	for (i = 1; i <= 10; i++) {
		uint32_t more = palette_change(i / 10.0), less = palette_change(-i / 10.0);
		int red = channel(more, 16) - channel(more, 0), blue = channel(less, 0) - channel(less, 16);

		ck_assert_int_gt(red, last);
		ck_assert_int_gt(blue, last * 9 / 10);
		last = red;
	}
	ck_assert_uint_eq(palette_change(2), palette_change(1));
}
END_TEST

START_TEST(colours_follow_kind_and_name)
{
	uint32_t kernel = palette_color(KIND_KERNEL, "vfs_read", false), native = palette_color(KIND_NATIVE, "main", false);
	uint32_t marker = palette_color(KIND_MARKER, "[cut]", false);

	ck_assert_uint_eq(kernel, palette_color(KIND_KERNEL, "vfs_read", false));
	ck_assert_uint_ne(native, palette_color(KIND_NATIVE, "work", false));
	ck_assert_uint_ne(native, palette_color(KIND_NATIVE, "main", true));
	/* orange: red over green over blue; grey: all nearly the same */
	ck_assert_uint_gt(kernel >> 16, (kernel >> 8 & 0xff) + 30);
	ck_assert_uint_gt(kernel >> 8 & 0xff, (kernel & 0xff) + 40);
	ck_assert_int_lt(abs((int)(marker >> 16) - (int)(marker & 0xff)), 12);
}
END_TEST

Suite *svg_suite(void)
{
	Suite *s = suite_create("svg");
	TCase *t = tcase_create("svg");

	tcase_add_test(t, picture_has_every_frame_with_its_figures);
	tcase_add_test(t, same_recording_gives_the_same_picture);
	tcase_add_test(t, root_is_below_and_inverted_above);
	tcase_add_test(t, names_are_text_and_never_markup);
	tcase_add_test(t, figures_are_in_the_unit_of_the_type);
	tcase_add_test(t, frames_too_narrow_are_left_out_and_counted);
	tcase_add_test(t, nothing_recorded_is_still_a_picture);
	tcase_add_test(t, output_over_its_bound_fails);
	tcase_add_test(t, comparison_shows_both_figures_and_the_change_of_share);
	tcase_add_test(t, comparison_with_nothing_is_all_new);
	tcase_add_test(t, change_is_orange_blue_or_grey);
	tcase_add_test(t, colours_follow_kind_and_name);
	suite_add_tcase(s, t);
	return s;
}
