// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

Suite *file_suite(void);

static char directory[64], path[96];
static struct buf bytes;

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(name);
}

static void setup(void)
{
	strcpy(directory, "/tmp/otprof-file-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/name", directory);
	buf_init(&bytes, 0);
}

static void teardown(void)
{
	buf_done(&bytes);
	nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_file(const char *text)
{
	ck_assert_int_eq(file_replace(AT_FDCWD, path, 0600, text, strlen(text), NULL, NULL), 0);
}

static void holds(const char *text)
{
	char have[64];

	ck_assert_int_eq(file_read_text(path, have, sizeof(have)), (int)strlen(text));
	ck_assert_str_eq(have, text);
}

static void nothing_but_the_file(void)
{
	_cleanup_(closedirp) DIR *d = opendir(directory);
	const struct dirent *e;

	while ((e = readdir(d)))
		if (e->d_name[0] != '.' || strlen(e->d_name) > 2)
			ck_assert_str_eq(e->d_name, "name");
}

START_TEST(text_is_cut_and_terminated)
{
	char to[4] = "xxx";

	make_file("abcdef");
	ck_assert_int_eq(file_read_text(path, to, sizeof(to)), 3);
	ck_assert_str_eq(to, "abc");
	ck_assert_int_eq(file_read_text("/nowhere/at/all", to, sizeof(to)), -ENOENT);
	ck_assert_str_eq(to, "");
	ck_assert_int_eq(file_read_text(directory, to, sizeof(to)), -EISDIR);
}
END_TEST

START_TEST(text_of_proc_is_read_whole)
{
	char to[64];
	ssize_t n = file_read_text("/proc/self/comm", to, sizeof(to));

	ck_assert_int_gt(n, 1);
	ck_assert_int_eq(to[n - 1], '\n');
}
END_TEST

/* What a pipe holds comes in as many pieces as it was written in. */
START_TEST(read_puts_pieces_together_and_cuts)
{
	static const char block[20000];
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(file_write(fds[1], block, sizeof(block)), 0);
	ck_assert_int_eq(file_write(fds[1], "end", 3), 0);
	close(fds[1]);
	ck_assert_int_eq(file_read(fds[0], 2, &bytes), 0);
	ck_assert_uint_eq(bytes.len, 2);
	ck_assert_int_eq(file_read(fds[0], 1 << 20, &bytes), 0);
	ck_assert_uint_eq(bytes.len, sizeof(block) + 3);
	ck_assert_mem_eq(bytes.data + sizeof(block), "end", 3);
	close(fds[0]);
}
END_TEST

START_TEST(load_is_whole_or_refused)
{
	struct stat st;

	make_file("abcdef");
	ck_assert_int_eq(file_load(path, 5, &bytes, &st), -EFBIG);
	buf_reset(&bytes);
	ck_assert_int_eq(file_load(path, 6, &bytes, &st), 0);
	ck_assert_str_eq(buf_cstr(&bytes), "abcdef");
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(file_load(directory, 6, &bytes, &st), -EISDIR);
	ck_assert_int_eq(file_load("/dev/null", 6, &bytes, &st), -ENODEV);
	ck_assert_int_eq(file_load("/nowhere/at/all", 6, &bytes, &st), -ENOENT);
}
END_TEST

/* Files of /proc are regular, and of no size. */
START_TEST(load_does_not_trust_a_size)
{
	struct stat st;

	ck_assert_int_eq(file_load("/proc/self/status", 1 << 20, &bytes, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	ck_assert_uint_gt(bytes.len, 100);
	buf_reset(&bytes);
	ck_assert_int_eq(file_load("/proc/self/status", 100, &bytes, &st), -EFBIG);
}
END_TEST

START_TEST(copy_begins_at_the_beginning)
{
	int fd = memfd_create("copy", MFD_CLOEXEC);

	ck_assert_int_eq(file_write(fd, "abcdef", 6), 0);
	ck_assert_int_eq(file_copy(fd, 6, &bytes), 0);
	ck_assert_str_eq(buf_cstr(&bytes), "abcdef");
	ck_assert_int_eq(file_copy(fd, 5, &bytes), -EFBIG);
	ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 6);
	close(fd);
}
END_TEST

START_TEST(read_at_is_exact)
{
	int fd = memfd_create("exact", MFD_CLOEXEC);
	char to[8];

	ck_assert_int_eq(file_write_at(fd, "cdef", 4, 2), 0);
	ck_assert_int_eq(file_write_at(fd, "ab", 2, 0), 0);
	ck_assert_int_eq(file_read_at(fd, to, 6, 0), 0);
	ck_assert_mem_eq(to, "abcdef", 6);
	ck_assert_int_eq(file_read_at(fd, to, 7, 0), -EIO);
	ck_assert_int_eq(file_read_at(fd, to, 1, 6), -EIO);
	ck_assert_int_eq(file_read_at(fd, to, 1, UINT64_MAX), -EIO);
	ck_assert_int_eq(file_read_at(-1, to, 1, 0), -EBADF);
	close(fd);
}
END_TEST

START_TEST(full_disk_is_an_error)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	ck_assert_int_eq(file_write(fd, "x", 1), -ENOSPC);
	ck_assert_int_eq(file_write_at(fd, "x", 1, 0), -ENOSPC);
	close(fd);
}
END_TEST

START_TEST(replaced_file_has_the_new_bytes_alone)
{
	make_file("a long text");
	make_file("short");
	holds("short");
	nothing_but_the_file();
}
END_TEST

static int refuse(void *ctx, int fd)
{
	return *(int *)ctx;
}

START_TEST(replacement_that_fails_leaves_the_old)
{
	int err = -EPERM;

	make_file("old");
	ck_assert_int_eq(file_replace(AT_FDCWD, path, 0600, "new", 3, refuse, &err), -EPERM);
	holds("old");
	nothing_but_the_file();
	err = 0;
	ck_assert_int_eq(file_replace(AT_FDCWD, path, 0600, "new", 3, refuse, &err), 0);
	holds("new");
	ck_assert_int_eq(file_replace(AT_FDCWD, "/nowhere/at/all", 0600, "new", 3, NULL, NULL), -ENOENT);
}
END_TEST

/* Who may write to the directory must not make us write elsewhere. */
START_TEST(replacement_follows_no_planted_link)
{
	char other[96], planted[96];
	int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	make_file("other");
	snprintf(other, sizeof(other), "%s/name", directory);
	snprintf(planted, sizeof(planted), "%s/.second.tmp", directory);
	ck_assert_int_eq(symlink(other, planted), 0);
	ck_assert_int_eq(file_replace(dir, "second", 0600, "new", 3, NULL, NULL), 0);
	close(dir);
	holds("other");
	snprintf(path, sizeof(path), "%s/second", directory);
	holds("new");
	ck_assert_int_lt(access(planted, F_OK), 0);
}
END_TEST

START_TEST(missing_directories_are_made)
{
	struct stat st;
	char deep[96];

	snprintf(deep, sizeof(deep), "%s/a/b", directory);
	ck_assert_int_eq(file_make_dirs(deep, 0755, 0700), 0);
	ck_assert_int_eq(file_make_dirs(deep, 0755, 0700), 0);
	ck_assert_int_eq(stat(deep, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
	make_file("no directory");
	snprintf(deep, sizeof(deep), "%s/name/b", directory);
	ck_assert_int_eq(file_make_dirs(deep, 0755, 0700), -ENOTDIR);
}
END_TEST

START_TEST(modes_do_not_depend_on_the_umask)
{
	mode_t before = umask(0077);
	struct stat st;
	char deep[96];

	snprintf(deep, sizeof(deep), "%s/a/b", directory);
	ck_assert_int_eq(file_make_dirs(deep, 0755, 0711), 0);
	ck_assert_int_eq(stat(deep, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0711);
	deep[strlen(deep) - 2] = '\0';
	ck_assert_int_eq(stat(deep, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0755);
	ck_assert_int_eq(file_replace(AT_FDCWD, path, 0644, "x", 1, NULL, NULL), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0644);
	umask(before);
}
END_TEST

Suite *file_suite(void)
{
	Suite *s = suite_create("file");
	TCase *t = tcase_create("file");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, text_is_cut_and_terminated);
	tcase_add_test(t, text_of_proc_is_read_whole);
	tcase_add_test(t, read_puts_pieces_together_and_cuts);
	tcase_add_test(t, load_is_whole_or_refused);
	tcase_add_test(t, load_does_not_trust_a_size);
	tcase_add_test(t, copy_begins_at_the_beginning);
	tcase_add_test(t, read_at_is_exact);
	tcase_add_test(t, full_disk_is_an_error);
	tcase_add_test(t, replaced_file_has_the_new_bytes_alone);
	tcase_add_test(t, replacement_that_fails_leaves_the_old);
	tcase_add_test(t, replacement_follows_no_planted_link);
	tcase_add_test(t, missing_directories_are_made);
	tcase_add_test(t, modes_do_not_depend_on_the_umask);
	suite_add_tcase(s, t);
	return s;
}
