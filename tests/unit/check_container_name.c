// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/disposable/container_name.h"
#include "process/host.h"

Suite *container_name_suite(void);

#define ID(c)  c c c c c c c c c c c c c c c c
#define DOCKER ID("d0c0")
#define CRI    ID("c010")
#define PODMAN ID("b0d0")
#define NONE   ID("0000")

static char root[64];
static struct container_names names;

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(name);
}

static void write_below(const char *dir, const char *file, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", root, dir);
	ck_assert_int_eq(file_make_dirs(path, 0700, 0700), 0);
	snprintf(path, sizeof(path), "%s%s/%s", root, dir, file);
	ck_assert_int_eq(file_replace(AT_FDCWD, path, 0600, text, strlen(text), NULL, NULL), 0);
}

static void setup(void)
{
	strcpy(root, "/tmp/otprof-names-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	write_below("/var/lib/docker/containers/" DOCKER, "config.v2.json", "{\"State\":{\"Pid\":7},\"Name\":\"/front\"}");
	write_below("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" CRI, "config.json",
		    "{\"ociVersion\":\"1\",\"annotations\":{\"io.kubernetes.cri.container-name\":\"back\"}}");
	write_below("/var/lib/containers/storage/overlay-containers", "containers.json",
		    "[{\"id\":\"" ID("1111") "\"},{\"id\":\"" PODMAN "\",\"names\":[\"pod\",\"other\"]}]");
	container_names_init(&names, root, getuid());
}

static void teardown(void)
{
	container_names_done(&names);
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

START_TEST(each_runtime_keeps_names_in_its_own_place)
{
	ck_assert_str_eq(container_names_find(&names, DOCKER), "front");
	ck_assert_str_eq(container_names_find(&names, CRI), "back");
	ck_assert_str_eq(container_names_find(&names, PODMAN), "pod");
	ck_assert_str_eq(container_names_find(&names, NONE), "");
}
END_TEST

START_TEST(name_that_was_found_is_not_looked_up_again)
{
	ck_assert_str_eq(container_names_find(&names, DOCKER), "front");
	write_below("/var/lib/docker/containers/" DOCKER, "config.v2.json", "{\"Name\":\"/renamed\"}");
	ck_assert_str_eq(container_names_find(&names, DOCKER), "front");
}
END_TEST

START_TEST(all_lists_every_container_with_a_name)
{
	static const char *const ids[] = {DOCKER, CRI, PODMAN}, *const texts[] = {"front", "back", "pod"};
	struct buf b = {0};
	const char *at;

	container_names_all(&names, &b);
	at = (const char *)b.data;
	ck_assert_uint_eq(b.len, 3 * HOST_CONTAINER_ID + sizeof("front") + sizeof("back") + sizeof("pod"));
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		ck_assert_mem_eq(at, ids[i], HOST_CONTAINER_ID);
		ck_assert_str_eq(at + HOST_CONTAINER_ID, texts[i]);
		at += HOST_CONTAINER_ID + strlen(texts[i]) + 1;
	}
	buf_done(&b);
}
END_TEST

START_TEST(answer_about_one_is_its_record_or_nothing)
{
	struct buf b = {0};

	container_names_one(&names, NONE, &b);
	container_names_one(&names, "../../../etc/passwd", &b);
	ck_assert_uint_eq(b.len, 0);
	container_names_one(&names, CRI, &b);
	ck_assert_uint_eq(b.len, HOST_CONTAINER_ID + sizeof("back"));
	buf_done(&b);
}
END_TEST

static const char *const useless[] = {
	"", "{", "[]", "null", "{\"Name\":7}", "{\"Name\":\"\"}", "{\"Name\":\"/\"}", "{\"Name\":[\"a\"]}",
	"{\"Name\":\"a\"", "\xff\xfe",
};

START_TEST(file_that_names_nothing_gives_no_name)
{
	write_below("/var/lib/docker/containers/" DOCKER, "config.v2.json", useless[_i]);
	ck_assert_str_eq(container_names_find(&names, DOCKER), "");
}
END_TEST

START_TEST(name_is_cleaned_and_cut)
{
	char text[400], want[HOST_CONTAINER_NAME_MAX];

	write_below("/var/lib/docker/containers/" DOCKER, "config.v2.json", "{\"Name\":\"/a\\u0007b\\nc\"}");
	ck_assert_str_eq(container_names_find(&names, DOCKER), "a?b?c");
	memset(want, 'x', sizeof(want));
	want[sizeof(want) - 1] = '\0';
	snprintf(text, sizeof(text), "{\"Name\":\"%sxxx\"}", want);
	write_below("/var/lib/docker/containers/" NONE, "config.v2.json", text);
	ck_assert_str_eq(container_names_find(&names, NONE), want);
}
END_TEST

/* Who may write below the directory could name any container. */
START_TEST(file_of_another_owner_or_a_link_is_not_read)
{
	char path[512], other[512];

	container_names_done(&names);
	container_names_init(&names, root, getuid() + 1);
	ck_assert_str_eq(container_names_find(&names, DOCKER), "");
	container_names_done(&names);
	container_names_init(&names, root, getuid());
	write_below("/elsewhere", "config.v2.json", "{\"Name\":\"/planted\"}");
	snprintf(other, sizeof(other), "%s/elsewhere/config.v2.json", root);
	snprintf(path, sizeof(path), "%s/var/lib/docker/containers/" DOCKER "/config.v2.json", root);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink(other, path), 0);
	ck_assert_str_eq(container_names_find(&names, DOCKER), "");
}
END_TEST

#define PODMAN_DIR "/var/lib/containers/storage/overlay-containers"

static const char *id_of(unsigned int n)
{
	static char id[HOST_CONTAINER_ID + 1];

	snprintf(id, sizeof(id), "%064x", n);
	return id;
}

/* A question holds 63 ids and has a deadline; the list may have megabytes. */
START_TEST(list_of_podman_is_parsed_once_for_all_ids)
{
	for (unsigned int i = 1; i < 5000; i++)
		ck_assert_str_eq(container_names_find(&names, id_of(i)), "");
	ck_assert_str_eq(container_names_find(&names, PODMAN), "pod");
	ck_assert_uint_eq(names.parsed, 1);
}
END_TEST

START_TEST(list_of_podman_is_parsed_again_after_a_change)
{
	struct buf b = {0};

	ck_assert_str_eq(container_names_find(&names, PODMAN), "pod");
	write_below(PODMAN_DIR, "containers.json", "[{\"id\":\"" NONE "\",\"names\":[\"new\"]}]");
	ck_assert_str_eq(container_names_find(&names, NONE), "new");
	ck_assert_uint_eq(names.parsed, 2);
	write_below(PODMAN_DIR, "containers.json", "[{\"id\":\"" NONE "\"");
	container_names_all(&names, &b);
	ck_assert_uint_eq(b.len, 2 * HOST_CONTAINER_ID + sizeof("front") + sizeof("back"));
	ck_assert_str_eq(container_names_find(&names, id_of(1)), "");
	ck_assert_uint_eq(names.parsed, 3);
	buf_done(&b);
}
END_TEST

Suite *container_name_suite(void)
{
	Suite *s = suite_create("container_name");
	TCase *t = tcase_create("names");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, each_runtime_keeps_names_in_its_own_place);
	tcase_add_test(t, name_that_was_found_is_not_looked_up_again);
	tcase_add_test(t, all_lists_every_container_with_a_name);
	tcase_add_test(t, answer_about_one_is_its_record_or_nothing);
	tcase_add_loop_test(t, file_that_names_nothing_gives_no_name, 0, ARRAY_SIZE(useless));
	tcase_add_test(t, name_is_cleaned_and_cut);
	tcase_add_test(t, file_of_another_owner_or_a_link_is_not_read);
	tcase_add_test(t, list_of_podman_is_parsed_once_for_all_ids);
	tcase_add_test(t, list_of_podman_is_parsed_again_after_a_change);
	suite_add_tcase(s, t);
	return s;
}
