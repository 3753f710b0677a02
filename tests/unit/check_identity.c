// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "process/host.h"
#include "process/identity.h"
#include "process/service.h"

Suite *identity_suite(void);

/* Service: what a program is called. NUL-separated arguments, '|' stands for NUL. */

static const struct {
	const char *exe, *cmdline, *comm, *name, *script;
} programs[] = {
	{"/usr/bin/sleep", "sleep|5|", "sleep", "sleep", ""},
	{"/usr/bin/sleep (deleted)", "/usr/bin/sleep|5|", "sleep", "sleep", ""},
	/* The name it was started under. */
	{"/usr/bin/redis-check-rdb", "/usr/bin/redis-server 127.0.0.1:6379|", "redis-server", "redis-server", ""},
	{"/bin/busybox", "httpd|-f|", "httpd", "httpd", ""},
	{"/bin/busybox", "/bin/busybox|httpd|-f|", "busybox", "httpd", ""},
	{"/bin/busybox", "busybox|", "busybox", "busybox", ""},
	{"/bin/busybox", "sh|/entry.sh|", "sh", "sh", "entry.sh"},
	{"/usr/bin/mawk", "awk|{print}|", "awk", "awk", ""},
	{"/usr/lib/a-very-long-name-indeed", "a-very-long-name-indeed|", "a-very-long-nam", "a-very-long-name-indeed", ""},
	/* Arguments that lie. */
	{"/usr/sbin/nginx", "nginx: master process /usr/sbin/nginx -g daemon on;|", "nginx", "nginx", ""},
	{"/usr/lib/postgresql/15/bin/postgres", "postgres: checkpointer |", "postgres", "postgres", ""},
	{"/usr/sbin/sshd", "sshd: root@pts/0|", "sshd", "sshd", ""},
	{"/usr/bin/sleep", "something-else|5|", "sleep", "sleep", ""},
	{"/opt/chrome/chrome", "/proc/self/exe|--type=zygote|", "exe", "chrome", ""},
	{"/opt/My App/bin/run", "/opt/My App/bin/run|", "run", "run", ""},
	{"/usr/bin/bash", "-bash|", "bash", "bash", ""},
	{"/usr/bin/sleep", "", "sleep", "sleep", ""},
	{"", "", "gone", "gone", ""},
	{"/memfd:x (deleted)", "x|", "4", "memfd:x", ""},
	/* Scripts. */
	{"/usr/bin/python3.11", "python3|/srv/app.py|--port|80|", "python3", "python3", "app.py"},
	{"/usr/bin/python3.11", "/usr/bin/python3|-u|-W|ignore|/srv/app.py|", "python3", "python3", "app.py"},
	{"/usr/bin/python3.11", "python3|-m|http.server|80|", "python3", "python3", "http.server"},
	{"/usr/bin/python3.11", "python3|-c|print(1)|", "python3", "python3", ""},
	{"/usr/bin/python3.11", "python3|", "python3", "python3", ""},
	{"/usr/bin/python3.11", "/usr/bin/python3|/usr/bin/gunicorn|app:x|", "gunicorn", "python3", "gunicorn"},
	{"/usr/bin/python3.11", "gunicorn: worker [app]|", "gunicorn", "python3.11", "gunicorn"},
	{"/usr/bin/python3.11", "celery: worker|", "python3", "python3.11", "celery"},
	{"/usr/bin/dash", "/bin/sh|/usr/bin/foo.sh|-x|", "foo.sh", "sh", "foo.sh"},
	{"/usr/bin/bash", "bash|-c|echo hi|", "bash", "bash", ""},
	{"/usr/bin/bash", "bash|-x|-o|pipefail|/a/b/run.sh|", "bash", "bash", "run.sh"},
	{"/usr/bin/node", "node|--require|x.js|/srv/server.js|", "node", "node", "server.js"},
	{"/usr/bin/node", "node|-e|1|", "node", "node", ""},
	{"/usr/bin/ruby3.1", "ruby|-I|lib|bin/puma|", "ruby", "ruby", "puma"},
	{"/usr/bin/perl", "perl|-w|/x.pl|", "perl", "perl", "x.pl"},
	{"/usr/bin/php8.2", "php|-d|a=b|artisan|serve|", "php", "php", "artisan"},
	{"/usr/sbin/php-fpm8.2", "php-fpm: pool www|", "php-fpm8.2", "php-fpm8.2", ""},
	{"/usr/lib/jvm/bin/java", "java|-Xmx1g|-cp|/a:/b|com.example.Main|x|", "java", "java", "com.example.Main"},
	{"/usr/lib/jvm/bin/java", "java|-jar|/srv/shop.jar|", "java", "java", "shop.jar"},
	{"/usr/lib/jvm/bin/java", "java|--module|my.mod/my.Main|", "java", "java", "my.mod"},
	{"/usr/bin/dotnet", "dotnet|exec|/srv/Api.dll|", "dotnet", "dotnet", "Api.dll"},
	{"/usr/bin/python3.11", "python3|-|", "python3", "python3", ""},
	{"/usr/bin/python3.11", "python3|-m|", "python3", "python3", ""},
};

START_TEST(a_program_is_called_by_how_it_was_started)
{
	char cmdline[256];
	struct service_names names;
	struct service_input in = {.exe = programs[_i].exe, .exe_len = strlen(programs[_i].exe), .cmdline = cmdline,
				   .cmdline_len = strlen(programs[_i].cmdline), .comm = programs[_i].comm};

	memcpy(cmdline, programs[_i].cmdline, in.cmdline_len);
	for (size_t i = 0; i < in.cmdline_len; i++)
		if (cmdline[i] == '|')
			cmdline[i] = '\0';
	service_names(&in, &names);
	ck_assert_str_eq(names.exe, programs[_i].name);
	ck_assert_str_eq(names.script, programs[_i].script);
}
END_TEST

START_TEST(arguments_that_name_nothing_do_not_stay)
{
	char cmdline[257];
	struct service_names names;
	struct service_input in = {.exe = programs[_i].exe, .exe_len = strlen(programs[_i].exe), .cmdline = cmdline,
				   .cmdline_len = strlen(programs[_i].cmdline), .comm = programs[_i].comm};

	memcpy(cmdline, programs[_i].cmdline, in.cmdline_len);
	for (size_t i = 0; i < in.cmdline_len; i++)
		if (cmdline[i] == '|')
			cmdline[i] = '\0';
	in.cmdline_len = service_strip(&in, cmdline);
	service_names(&in, &names);
	ck_assert_str_eq(names.exe, programs[_i].name);
	ck_assert_str_eq(names.script, programs[_i].script);
}
END_TEST

static const struct {
	const char *exe, *cmdline, *left;
} stripped[] = {
	{"/usr/bin/sleep", "sleep|--password=x|y|", "sleep|"},
	{"/usr/bin/python3.11", "python3|-u|-W|key|/srv/app.py|--password|x|", "python3|+|-W||/srv/app.py|"},
	{"/usr/bin/python3.11", "python3|-c|password='x'|", "python3|"},
	{"/usr/lib/jvm/bin/java", "java|-Dpassword=x|-cp|/secret|Main|y|", "java|+|-cp||Main|"},
	{"/usr/bin/php8.2", "php|-d|key=x|artisan|y|", "php|-d||artisan|"},
	{"/bin/busybox", "busybox|sh|-e|/a.sh|x|", "busybox|sh|+|/a.sh|"},
	{"/usr/bin/python3.11", "python3|app.py", "python3|app.py"},
};

START_TEST(what_stays_of_arguments)
{
	char cmdline[257];
	struct service_input in = {.exe = stripped[_i].exe, .exe_len = strlen(stripped[_i].exe), .cmdline = cmdline,
				   .cmdline_len = strlen(stripped[_i].cmdline), .comm = ""};
	size_t len;

	memcpy(cmdline, stripped[_i].cmdline, in.cmdline_len);
	for (size_t i = 0; i < in.cmdline_len; i++)
		if (cmdline[i] == '|')
			cmdline[i] = '\0';
	len = service_strip(&in, cmdline);
	for (size_t i = 0; i < len; i++)
		if (!cmdline[i])
			cmdline[i] = '|';
	cmdline[len] = '\0';
	ck_assert_str_eq(cmdline, stripped[_i].left);
}
END_TEST

/* Environment. */

static const struct {
	const char *text;
	size_t len;
	const char *service, *key, *value;
	uint32_t count;
} environments[] = {
#define TEXT(s) s, sizeof(s) - 1
	{TEXT("OTEL_SERVICE_NAME=shop\0"), "shop", NULL, NULL, 0},
	{TEXT("A=b\0OTEL_SERVICE_NAME=one\0OTEL_SERVICE_NAME=two\0"), "one", NULL, NULL, 0},
	{TEXT("OTEL_SERVICE_NAME=\0OTEL_RESOURCE_ATTRIBUTES=service.name=list\0"), "list", NULL, NULL, 0},
	{TEXT("OTEL_SERVICE_NAME=own\0OTEL_RESOURCE_ATTRIBUTES=service.name=list,a=b\0"), "own", "a", "b", 1},
	{TEXT("OTEL_RESOURCE_ATTRIBUTES= k = v%20w , x=%zz\0"), NULL, "k", "v w", 2},
	{TEXT("OTEL_RESOURCE_ATTRIBUTES=x=%zz\0"), NULL, "x", "%zz", 1},
	{TEXT("OTEL_RESOURCE_ATTRIBUTES=a=1,a=2\0"), NULL, "a", "2", 1},
	{TEXT("OTEL_RESOURCE_ATTRIBUTES=novalue,,=x,a=1\0"), NULL, "a", "1", 1},
	{TEXT("OTEL_RESOURCE_ATTRIBUTES=a=b=c\0"), NULL, "a", "b=c", 1},
	{TEXT("OTEL_RESOURCE_ATTRIBUTES=a=%00%ff\0"), NULL, "a", "??", 1},
	{TEXT("OTEL_RESOURCE_ATTRIBUTES=a=%4"), NULL, "a", "%4", 1},
	{TEXT("XOTEL_SERVICE_NAME=no\0"), NULL, NULL, NULL, 0},
	{TEXT(""), NULL, NULL, NULL, 0},
	{TEXT("\0\0\0"), NULL, NULL, NULL, 0},
};

START_TEST(variables_tell_service_and_attributes)
{
	struct environ_facts f;

	ck_assert_int_eq(environ_parse(environments[_i].text, environments[_i].len, &f), 0);
	ck_assert_pstr_eq(f.service ? f.service->s : NULL, environments[_i].service);
	ck_assert_uint_eq(f.count, environments[_i].count);
	if (f.count) {
		ck_assert_str_eq(f.attributes[0].key->s, environments[_i].key);
		ck_assert_str_eq(f.attributes[0].value->s, environments[_i].value);
	}
	environ_done(&f);
}
END_TEST

START_TEST(variables_are_bounded)
{
	struct buf b = {0};
	struct environ_facts f;

	buf_add_str(&b, "OTEL_RESOURCE_ATTRIBUTES=");
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "key%d=%02000d,", i, i);
	ck_assert_int_eq(environ_parse((char *)b.data, b.len, &f), 0);
	ck_assert_uint_eq(f.count, ENVIRON_ATTRIBUTES_MAX);
	ck_assert_uint_eq(f.attributes[0].value->len, ENVIRON_VALUE_MAX);
	environ_done(&f);
	buf_done(&b);
}
END_TEST

/* All together: from the host's answer to a workload. */

static const char *runtime_name = "";

static void answer(struct buf *b, const char *exe, const char *cmdline, const char *cgroup, const char *env,
		   const char *status)
{
	const char *const texts_[HOST_TEXT_NR] = {exe, cmdline, cgroup, env, status, runtime_name};
	struct host_identity_text head = {.start_ns = 5, .ppid = 1};

	buf_reset(b);
	for (int i = 0; i < HOST_TEXT_NR; i++)
		head.len[i] = (uint32_t)strlen(texts_[i]);
	buf_add(b, &head, sizeof(head));
	for (int i = 0; i < HOST_TEXT_NR; i++)
		buf_add_str(b, texts_[i]);
}

static struct workload *workload_from(const struct buf *b, const struct attribute *resource, size_t n)
{
	struct workload *w = NULL;
	struct identity *id;

	ck_assert_int_eq(identity_parse(b->data, b->len, "", &id), 0);
	ck_assert_int_eq(identity_workload(id, resource, n, &w), 0);
	identity_put(id);
	return w;
}

static const char *value(const struct workload *w, const char *key)
{
	const struct str *s = workload_attribute(w, key);

	return s ? s->s : NULL;
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define STATUS "Name:\tprog\nPid:\t7\n"

static const struct {
	const char *exe, *cmdline, *cgroup, *env, *service;
} order[] = {
	{"/bin/python3", "python3", "0::/system.slice/a.service\n", "OTEL_SERVICE_NAME=said", "said"},
	{"/bin/python3", "python3", "0::/system.slice/a.service\n", "", "a"},
	{"/bin/python3", "python3", "0::/lxc.payload.box/x\n", "", "box"},
	{"/bin/prog", "prog", "0::/system.slice/docker-" ID ".scope\n", "", "prog"},
	{"/bin/prog", "prog", "0::/user.slice/user-0.slice/session-1.scope\n", "", "prog"},
	{"", "", "", "", "unknown"},
};

START_TEST(the_service_is_what_a_person_would_call_it)
{
	struct buf b = {0};
	struct workload *w;
	struct identity *id;

	answer(&b, order[_i].exe, order[_i].cmdline, order[_i].cgroup, order[_i].env, "");
	ck_assert_int_eq(identity_parse(b.data, b.len, "", &id), 0);
	ck_assert_int_eq(identity_workload(id, NULL, 0, &w), 0);
	ck_assert_str_eq(w->service->s, order[_i].service);
	ck_assert_str_eq(w->attributes[0].key->s, "service.name");
	workload_put(w);
	identity_put(id);
	buf_done(&b);
}
END_TEST

START_TEST(a_workload_carries_what_was_found)
{
	const size_t strings = str_count();
	struct attribute resource[] = {
		{str_get_c("host.name"), str_get_c("node1")},
		{str_get_c("deployment.environment"), str_get_c("prod")},
	};
	struct buf b = {0};
	struct workload *w;

	answer(&b, "/bin/prog", "prog", "0::/kubepods/pod2f1d3a5c-1111-2222-3333-444455556666/" ID "\n",
	       "OTEL_RESOURCE_ATTRIBUTES=host.name=liar,container.id=liar,k8s.pod.name=p-1", STATUS);
	w = workload_from(&b, resource, 2);
	ck_assert_str_eq(value(w, "service.name"), "prog");
	ck_assert_str_eq(value(w, "host.name"), "node1");
	ck_assert_str_eq(value(w, "deployment.environment"), "prod");
	ck_assert_str_eq(value(w, "container.id"), ID);
	ck_assert_str_eq(value(w, "k8s.pod.uid"), "2f1d3a5c-1111-2222-3333-444455556666");
	ck_assert_str_eq(value(w, "k8s.pod.name"), "p-1");
	ck_assert_str_eq(value(w, "process.executable.name"), "prog");
	ck_assert_ptr_null(value(w, "otprof.cgroup"));
	for (uint32_t i = 2; i < w->count; i++)
		ck_assert_int_lt(strcmp(w->attributes[i - 1].key->s, w->attributes[i].key->s), 0);
	workload_put(w);
	for (int i = 0; i < 2; i++) {
		str_put(resource[i].key);
		str_put(resource[i].value);
	}
	buf_done(&b);
	ck_assert_uint_eq(str_count(), strings);
}
END_TEST

START_TEST(equal_attributes_are_one_workload)
{
	struct buf b = {0};
	struct workload *w[3];

	answer(&b, "/bin/prog", "prog", "0::/system.slice/a.service\n", "", STATUS);
	w[0] = workload_from(&b, NULL, 0);
	w[1] = workload_from(&b, NULL, 0);
	answer(&b, "/bin/prog", "prog", "0::/system.slice/b.service\n", "", STATUS);
	w[2] = workload_from(&b, NULL, 0);
	ck_assert_ptr_eq(w[0], w[1]);
	ck_assert_ptr_ne(w[0], w[2]);
	ck_assert_ptr_ne(w[0], w[2]);
	for (int i = 0; i < 3; i++)
		workload_put(w[i]);
	buf_done(&b);
}
END_TEST

START_TEST(kernel_threads_are_one_workload)
{
	struct buf b = {0};
	struct host_identity_text *head;
	struct identity *id;
	struct workload *w;

	answer(&b, "", "", "0::/\n", "", "Name:\tkworker/0:1\nPid:\t30\n");
	head = (struct host_identity_text *)b.data;
	head->ppid = 2;
	ck_assert_int_eq(identity_parse(b.data, b.len, "", &id), 0);
	ck_assert(id->kernel);
	ck_assert_int_eq(identity_workload(id, NULL, 0, &w), 0);
	ck_assert_str_eq(w->service->s, "kernel");
	ck_assert_str_eq(value(w, "process.executable.name"), "[kernel]");
	workload_put(w);
	identity_put(id);
	buf_done(&b);
}
END_TEST

START_TEST(name_that_a_runtime_keeps_is_an_attribute_and_no_service)
{
	struct buf b = {0};
	struct workload *w;

	runtime_name = "web-1";
	answer(&b, "/bin/prog", "prog", "0::/docker/" ID "\n", "", STATUS);
	w = workload_from(&b, NULL, 0);
	ck_assert_str_eq(value(w, "service.name"), "prog");
	ck_assert_str_eq(value(w, "container.name"), "web-1");
	workload_put(w);
	answer(&b, "/bin/prog", "prog", "0::/lxc.payload.box/x\n", "", STATUS);
	runtime_name = "";
	w = workload_from(&b, NULL, 0);
	ck_assert_str_eq(value(w, "service.name"), "box");
	ck_assert_str_eq(value(w, "container.name"), "box");
	workload_put(w);
	buf_done(&b);
}
END_TEST

/* Captures of older versions: five texts. */
START_TEST(answer_without_a_container_is_whole)
{
	struct buf b = {0};
	struct workload *w;
	struct host_identity_text head;

	answer(&b, "/bin/prog", "prog", "0::/docker/" ID "\n", "", STATUS);
	memcpy(&head, b.data, sizeof(head));
	ck_assert_uint_eq(head.len[HOST_TEXT_CONTAINER], 0);
	ck_assert_uint_eq(sizeof(head), 40);
	w = workload_from(&b, NULL, 0);
	ck_assert_ptr_null(value(w, "container.name"));
	workload_put(w);
	buf_done(&b);
}
END_TEST

START_TEST(too_many_attributes_are_cut_behind_ours)
{
	struct buf b = {0}, env = {0};
	struct workload *w;

	buf_add_str(&env, "OTEL_RESOURCE_ATTRIBUTES=");
	for (int i = 0; i < 40; i++)
		buf_printf(&env, "a%d=x,", i);
	answer(&b, "/bin/prog", "prog", "0::/docker/" ID "\n", buf_cstr(&env), STATUS);
	w = workload_from(&b, NULL, 0);
	ck_assert_uint_le(w->count, WORKLOAD_ATTRIBUTES_MAX);
	ck_assert_str_eq(value(w, "container.id"), ID);
	ck_assert_str_eq(w->attributes[0].key->s, "service.name");
	workload_put(w);
	buf_done(&b);
	buf_done(&env);
}
END_TEST

START_TEST(every_cut_of_an_answer_is_refused)
{
	struct buf b = {0};
	struct identity *id = NULL;

	answer(&b, "/bin/prog", "prog", "0::/docker/" ID "\n", "OTEL_SERVICE_NAME=x", STATUS);
	for (size_t len = 0; len < b.len; len++)
		ck_assert_int_eq(identity_parse(b.data, len, "", &id), -EBADMSG);
	ck_assert_ptr_null(id);
	buf_done(&b);
}
END_TEST

START_TEST(a_guess_takes_environment_and_cgroup_from_others)
{
	const size_t strings = str_count();
	struct buf b = {0};
	struct identity *parent, *neighbour, *id;
	struct workload *w;

	answer(&b, "/bin/sh", "sh", "0::/system.slice/a.service\n", "OTEL_RESOURCE_ATTRIBUTES=team=red", STATUS);
	ck_assert_int_eq(identity_parse(b.data, b.len, "", &parent), 0);
	answer(&b, "/bin/x", "x", "0::/docker/" ID "\n", "OTEL_SERVICE_NAME=x", STATUS);
	ck_assert_int_eq(identity_parse(b.data, b.len, "", &neighbour), 0);
	ck_assert_int_eq(identity_guess(parent, neighbour, "date", "", &id), 0);
	ck_assert_int_eq(identity_workload(id, NULL, 0, &w), 0);
	ck_assert_str_eq(w->service->s, "date");
	ck_assert_str_eq(value(w, "team"), "red");
	ck_assert_str_eq(value(w, "container.id"), ID);
	workload_put(w);
	identity_put(id);
	identity_put(parent);
	identity_put(neighbour);
	buf_done(&b);
	ck_assert_uint_eq(str_count(), strings);
}
END_TEST

Suite *identity_suite(void)
{
	Suite *s = suite_create("identity");
	TCase *t = tcase_create("names");

	tcase_add_loop_test(t, a_program_is_called_by_how_it_was_started, 0, ARRAY_SIZE(programs));
	tcase_add_loop_test(t, arguments_that_name_nothing_do_not_stay, 0, ARRAY_SIZE(programs));
	tcase_add_loop_test(t, what_stays_of_arguments, 0, ARRAY_SIZE(stripped));
	tcase_add_loop_test(t, variables_tell_service_and_attributes, 0, ARRAY_SIZE(environments));
	tcase_add_test(t, variables_are_bounded);
	suite_add_tcase(s, t);
	t = tcase_create("workloads");
	tcase_add_loop_test(t, the_service_is_what_a_person_would_call_it, 0, ARRAY_SIZE(order));
	tcase_add_test(t, a_workload_carries_what_was_found);
	tcase_add_test(t, equal_attributes_are_one_workload);
	tcase_add_test(t, kernel_threads_are_one_workload);
	tcase_add_test(t, name_that_a_runtime_keeps_is_an_attribute_and_no_service);
	tcase_add_test(t, answer_without_a_container_is_whole);
	tcase_add_test(t, too_many_attributes_are_cut_behind_ours);
	tcase_add_test(t, every_cut_of_an_answer_is_refused);
	tcase_add_test(t, a_guess_takes_environment_and_cgroup_from_others);
	suite_add_tcase(s, t);
	return s;
}
