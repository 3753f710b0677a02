// SPDX-License-Identifier: Apache-2.0
/* A question, and what is made of the answer: pure parts of both ends. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/explain.h"
#include "cli/packages.h"
#include "daemon/engine/explain.h"
#include "daemon/ipc.h"
#include "daemon/monitor/query.h"
#include "unwind/unwind.h"

Suite *explain_suite(void);

static char why[SELECTION_WHY];

static int ask(const char *text, struct query *q)
{
	return query_parse(text, strlen(text), q, why);
}

START_TEST(question_is_one_line_with_a_pid)
{
	struct query q = {0};

	ck_assert_int_eq(ask("explain 1234\n", &q), 0);
	ck_assert_uint_eq(q.pid, 1234);
	ck_assert_int_eq(ask("explain 4194304\n", &q), 0);
	ck_assert_uint_eq(q.pid, 4194304);
}
END_TEST

START_TEST(order_is_one_line_that_begins_with_select)
{
	struct query q = {0};

	ck_assert_int_eq(ask("select exe:a hz=49\n", &q), 0);
	ck_assert(q.verb == QUERY_SELECT && q.selection.hz == 49);
	ck_assert_str_eq(q.selection.targets, "exe:a");
	ck_assert_int_eq(ask("select\n", &q), 0);
	ck_assert_int_eq(q.verb, QUERY_DESELECT);
	ck_assert_int_eq(ask("selects\n", &q), -EINVAL);
	ck_assert_int_eq(ask("select \n", &q), -EDOM);
	ck_assert_int_eq(ask("select hz=0\n", &q), -EDOM);
	ck_assert_ptr_nonnull(strstr(why, "from 1 to 1000"));
}
END_TEST

START_TEST(question_that_is_not_over_is_waited_for)
{
	struct query q;
	char line[QUERY_LINE_MAX];

	ck_assert_int_eq(ask("", &q), -EAGAIN);
	ck_assert_int_eq(ask("explain 12", &q), -EAGAIN);
	memset(line, '1', sizeof(line));
	ck_assert_int_eq(query_parse(line, sizeof(line) - 1, &q, why), -EAGAIN);
	ck_assert_int_eq(query_parse(line, sizeof(line), &q, why), -EMSGSIZE);
}
END_TEST

START_TEST(what_is_no_question_is_refused)
{
	static const char *const bad[] = {"\n", "explain\n", "explain \n", "explain x\n", "explain 1 \n", "explain -1\n",
					  "explain 1\nexplain 2\n", "Explain 1\n", "status\n", "explain 0x1\n"};
	struct query q;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(ask(bad[i], &q) == -EINVAL, "%s", bad[i]);
	ck_assert_int_eq(ask("explain 0\n", &q), -ERANGE);
	ck_assert_int_eq(ask("explain 4194305\n", &q), -ERANGE);
	ck_assert_int_eq(ask("explain 99999999999999999999\n", &q), -ERANGE);
	ck_assert_int_eq(query_parse("explain 1\0\n", 11, &q, why), -EINVAL);
}
END_TEST

/* The daemon's side: a process with nothing but a file that was refused. */

static struct config *config;
static struct symbolizer *symbols;
static struct ledger_engine *page;
static struct jit jit;
static struct buf text;

static void setup(void)
{
	struct symbol_limits none = {0};

	ck_assert_int_eq(config_parse("F", "", 0, NULL, NULL, &config), 0);
	ck_assert_int_eq(symbolizer_new(&none, &symbols), 0);
	page = calloc(1, sizeof(*page));
	buf_init(&text, IPC_EXPLAINED_MAX);
}

static void teardown(void)
{
	buf_done(&text);
	symbolizer_free(symbols);
	config_free(config);
	free(page);
}

static const char *explain(const struct process *p)
{
	struct explain x = {.config = config, .ledger = page, .symbols = symbols, .jit = &jit, .process = p, .pid = 7};

	buf_reset(&text);
	explain_json(&x, &text);
	return buf_cstr(&text);
}

START_TEST(unknown_process_is_said_to_be_unknown)
{
	ck_assert_str_eq(explain(NULL), "{\"pid\":7,\"known\":false}");
}
END_TEST

START_TEST(process_is_told_with_its_files_and_stacks)
{
	struct process_stacks stacks = {.by_end = {[UNWIND_ROOT] = 8, [UNWIND_SHORT] = 2}};
	struct process p = {.pid = 7, .space = space_new(), .stacks = &stacks, .stack_bytes = 4096, .plan_gen = 3};
	struct attribute a = {str_get_c("service.name"), str_get_c("a\"b")};
	struct mapped_file *f = mapped_file_new(MAPPED_FILE, "/lib/x\n", 7), *anon = mapped_file_new(MAPPED_ANON, "", 0);
	json_t *j, *files;

	f->state = MAPPED_FAILED;
	f->error = -EACCES;
	ck_assert_int_eq(workload_get(&a, 1, &p.workload), 0);
	ck_assert_int_eq(space_map(&p.space, 0x1000, 0x3000, 0, f), 0);
	ck_assert_int_eq(space_map(&p.space, 0x8000, 0x9000, 0x7000, f), 0);
	ck_assert_int_eq(space_map(&p.space, 0xa000, 0xb000, 0, anon), 0);
	j = json_loads(explain(&p), 0, NULL);
	ck_assert_ptr_nonnull(j);
	files = json_object_get(j, "files");
	ck_assert_uint_eq(json_array_size(files), 2);
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(files, 0), "path")), "/lib/x?");
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(files, 0), "mappings")), 2);
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(files, 0), "bytes")), 0x3000);
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(files, 0), "error")), "Permission denied");
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(files, 1), "kind")), "generated");
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(j, "stacks"), "stacks")), 10);
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(j, "stacks"), "complete")), 8);
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(j, "plan"), "stack_bytes")), 4096);
	json_decref(j);
	mapped_file_put(f);
	mapped_file_put(anon);
	space_put(p.space);
	workload_put(p.workload);
	str_put(a.key);
	str_put(a.value);
}
END_TEST

/* The tool's side. */

static char root[64];
static int root_fd;

static void put(const char *path, const char *content)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "w");
	ck_assert_ptr_nonnull(f);
	fputs(content, f);
	fclose(f);
}

static void make_root(void)
{
	snprintf(root, sizeof(root), "/tmp/otprof-check-explain-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void remove_root(void)
{
	char command[128];

	close(root_fd);

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(package_is_found_whichever_name_a_merged_usr_has)
{
	struct package_file files[] = {{.path = "/usr/lib/x86_64-linux-gnu/libc.so.6"}, {.path = "/usr/bin/redis-server"},
				       {.path = "/usr/local/bin/own"}, {.path = ""}};

	put("/var/lib/dpkg/info/libc6:amd64.list", "/.\n/lib/x86_64-linux-gnu/libc.so.6\n");
	put("/var/lib/dpkg/info/redis-server.list", "/usr/bin/redis-server\n");
	put("/var/lib/dpkg/info/other.md5sums", "/usr/local/bin/own\n");
	ck_assert_int_eq(packages_find(root_fd, files, ARRAY_SIZE(files)), 0);
	ck_assert_str_eq(files[0].package, "libc6");
	ck_assert_str_eq(files[1].package, "redis-server");
	ck_assert_str_eq(files[2].package, "");
	ck_assert_str_eq(files[3].package, "");
}
END_TEST

START_TEST(hostile_root_neither_blocks_nor_names_what_it_likes)
{
	struct package_file f = {.path = "/usr/bin/x"};
	char path[256];

	put("/var/lib/dpkg/info/a;reboot.list", "/usr/bin/x\n");
	snprintf(path, sizeof(path), "%s/var/lib/dpkg/info/pipe.list", root);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(packages_find(root_fd, &f, 1), 0);
	ck_assert_str_eq(f.package, "");
}
END_TEST

/* Absolute links are the container's own: they lead to its files, never to ours. */
START_TEST(no_link_leads_out_of_the_root)
{
	struct package_file f = {.path = "/usr/bin/x"};
	struct distribution d;
	char from[128], to[128];

	put("/outside", "ID=debian\nVERSION_CODENAME=ours\n");
	put("/inside/etc/x", "");
	put("/inside/usr/release", "ID=alpine\n");
	put("/info/a.list", "/usr/bin/x\n");
	close(root_fd);
	snprintf(from, sizeof(from), "%s/inside", root);
	root_fd = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(from, sizeof(from), "%s/inside/etc/os-release", root);
	snprintf(to, sizeof(to), "%s/outside", root);
	ck_assert_int_eq(symlink(to, from), 0);
	distribution_read(root_fd, &d);
	ck_assert_str_eq(d.id, "");
	ck_assert_int_eq(unlink(from), 0);
	ck_assert_int_eq(symlink("/usr/release", from), 0);
	distribution_read(root_fd, &d);
	ck_assert_str_eq(d.id, "alpine");
	put("/inside/var/lib/dpkg/x", "");
	snprintf(from, sizeof(from), "%s/inside/var/lib/dpkg/info", root);
	snprintf(to, sizeof(to), "%s/info", root);
	ck_assert_int_eq(symlink(to, from), 0);
	ck_assert_int_eq(packages_find(root_fd, &f, 1), -ENOENT);
	ck_assert_str_eq(f.package, "");
}
END_TEST

START_TEST(source_of_debug_packages_follows_the_distribution)
{
	struct distribution d;
	char name[PACKAGE_NAME_MAX];

	put("/etc/os-release", "PRETTY_NAME=\"Debian\"\nID_LIKE=x\nVERSION_CODENAME=\"trixie; rm\"\nID=debian\n");
	distribution_read(root_fd, &d);
	ck_assert_str_eq(d.id, "debian");
	ck_assert_str_eq(d.source, "deb http://deb.debian.org/debian-debug trixierm-debug main");
	put("/etc/os-release", "ID=alpine\n");
	distribution_read(root_fd, &d);
	ck_assert_str_eq(d.source, "");
	package_debug_name("libc6", name);
	ck_assert_str_eq(name, "libc6-dbg");
	package_debug_name("nginx", name);
	ck_assert_str_eq(name, "nginx-dbgsym");
}
END_TEST

static const char *missing(const char *names)
{
	static char answer[128];
	char file[512];
	json_t *p;

	snprintf(file, sizeof(file), "{\"files\":[{\"path\":\"/nowhere\",\"kind\":\"file\",\"state\":\"open\","
				     "\"elf\":true,\"build_id\":\"abcdef\",\"names\":{%s}}]}", names);
	p = json_loads(file, 0, NULL);
	ck_assert_ptr_nonnull(p);
	explain_files(p, (unsigned)getpid());
	snprintf(answer, sizeof(answer), "%s",
		 json_string_value(json_object_get(json_array_get(json_object_get(p, "files"), 0), "missing")));
	json_decref(p);
	return answer;
}

START_TEST(what_is_missing_follows_from_what_there_is)
{
	ck_assert_str_eq(missing("\"index\":\"ready\",\"dwarf\":true"), "");
	ck_assert_str_eq(missing("\"index\":\"ready\",\"gopclntab\":true"), "");
	ck_assert_str_eq(missing("\"index\":\"ready\",\"dwarf\":true,\"incomplete\":true"), "parts of its debug information");
	ck_assert_str_eq(missing("\"index\":\"ready\",\"debug_symbols\":true"), "inlined calls and lines");
	ck_assert_str_eq(missing("\"index\":\"not asked\",\"own_dwarf\":true"), "");
	ck_assert_str_eq(missing("\"index\":\"ready\",\"dynsym\":true"),
			 "names of functions that it does not export, inlined calls and lines");
	ck_assert_str_eq(missing("\"index\":\"ready\""), "names, inlined calls and lines");
}
END_TEST

Suite *explain_suite(void)
{
	Suite *s = suite_create("explain");
	TCase *question = tcase_create("question"), *daemon = tcase_create("daemon"), *tool = tcase_create("tool");

	tcase_add_test(question, question_is_one_line_with_a_pid);
	tcase_add_test(question, order_is_one_line_that_begins_with_select);
	tcase_add_test(question, question_that_is_not_over_is_waited_for);
	tcase_add_test(question, what_is_no_question_is_refused);
	tcase_add_checked_fixture(daemon, setup, teardown);
	tcase_add_test(daemon, unknown_process_is_said_to_be_unknown);
	tcase_add_test(daemon, process_is_told_with_its_files_and_stacks);
	tcase_add_checked_fixture(tool, make_root, remove_root);
	tcase_add_test(tool, package_is_found_whichever_name_a_merged_usr_has);
	tcase_add_test(tool, hostile_root_neither_blocks_nor_names_what_it_likes);
	tcase_add_test(tool, no_link_leads_out_of_the_root);
	tcase_add_test(tool, source_of_debug_packages_follows_the_distribution);
	tcase_add_test(tool, what_is_missing_follows_from_what_there_is);
	suite_add_tcase(s, question);
	suite_add_tcase(s, daemon);
	suite_add_tcase(s, tool);
	return s;
}
