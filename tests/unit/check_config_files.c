// SPDX-License-Identifier: Apache-2.0
/* Configuration from files as they lie on disk, drop-ins, the environment, and what is documented. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/config/config_keys.h"

Suite *config_files_suite(void);

static char errors[8192], dir[64], path[128];

static void on_error(void *ctx, const char *line)
{
	size_t used = strlen(errors);

	snprintf(errors + used, sizeof(errors) - used, "%s\n", line);
}

static int load(struct config **ret)
{
	errors[0] = '\0';
	return config_load(path, on_error, NULL, ret);
}

/* NAME below the directory of the test, made with its parents' last one. */
static const char *write_file(const char *name, const void *text, size_t len, mode_t mode)
{
	static char full[256];
	char *slash;
	int fd;

	snprintf(full, sizeof(full), "%s/%s", dir, name);
	slash = strrchr(full, '/');
	*slash = '\0';
	mkdir(full, 0755);
	*slash = '/';
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
	fchmod(fd, mode);
	close(fd);
	return full;
}

static void put(const char *name, const char *text)
{
	write_file(name, text, strlen(text), 0644);
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(name);
}

/* What an error says of the directory of the test is left out: it has another name each time. */
static const char *said(void)
{
	static char text[sizeof(errors)];
	const char *from = errors, *at;

	text[0] = '\0';
	while ((at = strstr(from, dir))) {
		strncat(text, from, (size_t)(at - from));
		strcat(text, "DIR");
		from = at + strlen(dir);
	}
	strcat(text, from);
	return text;
}

static void set_up(void)
{
	snprintf(dir, sizeof(dir), "/tmp/otprof-config-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/otprof.conf", dir);
}

static void tear_down(void)
{
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Drop-ins. */

START_TEST(drop_ins_come_in_the_order_of_their_names)
{
	struct config *c = NULL;

	put("otprof.conf", "[sampler]\nfrequency_hz = 10\n[resource]\na = main\n");
	put("otprof.conf.d/20-b.conf", "[sampler]\nfrequency_hz = 30\n");
	put("otprof.conf.d/10-a.conf", "[sampler]\nfrequency_hz = 20\nstack_bytes = 2K\n[resource]\na = drop-in\nb = x\n");
	put("otprof.conf.d/99-not.conf.bak", "[sampler]\nfrequency_hz = 99\n");
	put("otprof.conf.d/.hidden.conf", "[sampler]\nfrequency_hz = 98\n");
	ck_assert_msg(load(&c) == 0, "%s", errors);
	ck_assert_uint_eq(c->frequency_hz, 30);
	ck_assert_uint_eq(c->stack_bytes, 2048);
	ck_assert_uint_eq(c->nr_resources, 2);
	ck_assert_str_eq(c->resources[0].value, "drop-in");
	config_free(c);
}
END_TEST

START_TEST(drop_in_goes_on_with_an_exporter)
{
	struct config *c = NULL;

	put("otprof.conf", "[exporter a]\nendpoint = http://one\nheaders = X-A: 1\n[targets]\ninclude = unit:a\n");
	put("otprof.conf.d/a.conf", "[exporter a]\nendpoint = http://two\nheaders = X-B: 2\n[targets]\ninclude = unit:b\n");
	ck_assert_msg(load(&c) == 0, "%s", errors);
	ck_assert_uint_eq(c->nr_exporters, 1);
	ck_assert_str_eq(c->exporters[0].endpoint, "http://two");
	ck_assert_uint_eq(c->exporters[0].nr_headers, 2);
	ck_assert_uint_eq(c->nr_targets, 2);
	config_free(c);
}
END_TEST

START_TEST(usual_file_may_be_missing_beside_drop_ins)
{
	struct config *c = NULL;

	put("otprof.conf.d/a.conf", "[sampler]\nfrequency_hz = 7\n");
	errors[0] = '\0';
	ck_assert_int_eq(config_load_usual(path, on_error, NULL, &c), 0);
	ck_assert_uint_eq(c->frequency_hz, 7);
	config_free(c);
	ck_assert_int_eq(load(&c), -ENOENT);
}
END_TEST

/* A wrong drop-in beside a good file, and what is said. */
static const struct {
	const char *main, *drop_in, *errors;
} wrong_drop_ins[] = {
	{"", "[sampler]\nfrequency_hz = x\n",
	 "DIR/otprof.conf.d/x.conf:2: sampler.frequency_hz: bad value \"x\", expected a number from 1 to 10000\n"},
	{"", "[sampler]\n\n[sampler]\n", "DIR/otprof.conf.d/x.conf:3: [sampler]: this section is there twice\n"},
	{"[sampler]\nmode = x\n", "[resource]\na = \xff\n",
	 "DIR/otprof.conf:2: sampler.mode: bad value \"x\", expected auto, bpf, kmod, perf or none\n"
	 "DIR/otprof.conf.d/x.conf:2: bytes that are no text, expected UTF-8 without control characters\n"},
	{"[exporter a]\nendpoint = http://h\n", "[exporter a]\nretry_initial = 60s\n",
	 "DIR/otprof.conf.d/x.conf:1: exporter a.retry_initial: above retry_max, expected it at or below\n"},
	{"[exporter a]\nendpoint = http://h\n", "[exporter b]\ntimeout = 1s\n",
	 "DIR/otprof.conf.d/x.conf:1: exporter b.endpoint: missing, expected http://HOST:PORT or file:///DIR\n"},
	{"[sampler]\nstack_bytes = 64K\n", "\n[sampler]\nstack_max_bytes = 4K\n",
	 "DIR/otprof.conf:2: sampler.stack_bytes: above stack_max_bytes, expected it at or below\n"},
	{"", "frequency_hz = 5\n",
	 "DIR/otprof.conf.d/x.conf:1: frequency_hz: before any section, expected [sampler] or another one first\n"},
	{"[resource]\na = b\n", "[resource]\na = b\na = c\n", "DIR/otprof.conf.d/x.conf:3: resource.a: given twice\n"},
};

START_TEST(wrong_drop_in_is_named_with_its_line)
{
	struct config *c = NULL;

	put("otprof.conf", wrong_drop_ins[_i].main);
	put("otprof.conf.d/x.conf", wrong_drop_ins[_i].drop_in);
	ck_assert_int_eq(load(&c), -EINVAL);
	ck_assert_str_eq(said(), wrong_drop_ins[_i].errors);
}
END_TEST

/* Files that cannot be what they should be. */

START_TEST(huge_file_is_refused)
{
	char *text = calloc(1, CONFIG_FILE_MAX + 1);
	struct config *c = NULL;

	memset(text, '#', CONFIG_FILE_MAX + 1);
	write_file("otprof.conf", text, CONFIG_FILE_MAX + 1, 0644);
	free(text);
	ck_assert_int_eq(load(&c), -EFBIG);
	ck_assert_str_eq(said(), "DIR/otprof.conf: cannot be read: larger than it may be, expected at most 1 MiB\n");
}
END_TEST

START_TEST(binary_junk_is_refused)
{
	static const unsigned char junk[] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, '\n', 0, 0xff, '='};
	struct config *c = NULL;

	write_file("otprof.conf", junk, sizeof(junk), 0644);
	ck_assert_int_eq(load(&c), -EINVAL);
	ck_assert_str_eq(said(), "DIR/otprof.conf:1: bytes that are no text, expected UTF-8 without control characters\n"
				 "DIR/otprof.conf:2: bytes that are no text, expected UTF-8 without control characters\n");
}
END_TEST

START_TEST(directory_is_no_file)
{
	struct config *c = NULL;

	mkdir(path, 0755);
	ck_assert_int_eq(load(&c), -EISDIR);
	ck_assert_str_eq(said(), "DIR/otprof.conf: cannot be read: Is a directory\n");
}
END_TEST

START_TEST(unreadable_drop_in_is_refused)
{
	char link[160];
	struct config *c = NULL;

	put("otprof.conf", "");
	put("otprof.conf.d/a.conf", "");
	snprintf(link, sizeof(link), "%s.d/b.conf", path);
	ck_assert_int_eq(symlink("nowhere", link), 0);
	ck_assert_int_eq(load(&c), -ENOENT);
	ck_assert_str_eq(said(), "DIR/otprof.conf.d/b.conf: cannot be read: No such file or directory\n");
}
END_TEST

START_TEST(drop_in_directory_that_is_a_file_is_refused)
{
	struct config *c = NULL;

	put("otprof.conf", "");
	put("otprof.conf.d", "");
	ck_assert_int_eq(load(&c), -ENOTDIR);
	ck_assert_str_eq(said(), "DIR/otprof.conf: its directory DIR/otprof.conf.d cannot be read: Not a directory\n");
}
END_TEST

/* Secrets. */

#define SECRET "s3cret-value"

static char *print(const struct config *c, int (*fn)(const struct config *c, FILE *to))
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ck_assert_int_eq(fn(c, f), 0);
	fclose(f);
	return text;
}

START_TEST(secret_in_an_open_file_is_refused_and_not_shown)
{
	struct config *c = NULL;

	put("otprof.conf", "[exporter a]\nendpoint = http://h\nheaders = Authorization: Bearer " SECRET "\n");
	ck_assert_int_eq(load(&c), -EINVAL);
	ck_assert_str_eq(said(), "DIR/otprof.conf:3: exporter a.headers: a secret in a file that others may read or change, "
				 "expected a file of mode 0600 that root owns; or put it into one and name that as headers_file\n");
	ck_assert_ptr_null(strstr(errors, SECRET));
}
END_TEST

static const struct {
	const char *header;
	bool secret;
} headers_of_vendors[] = {
	{"Authorization: x", true},	 {"X-Api-Key: x", true},      {"dd-api-key: x", true},
	{"x-honeycomb-team: x", true},	 {"uptrace-dsn: x", true},    {"X-Custom: Bearer x", true},
	{"X-Custom:basic eDp5", true},	 {"to: https://u@h/1", true}, {"X-Scope-OrgID: tenant-1", false},
	{"X-Custom: Bearers", false},	 {"from: https://h/1", false},
};

START_TEST(header_with_a_secret_is_known)
{
	ck_assert_int_eq(config_header_is_secret(headers_of_vendors[_i].header), headers_of_vendors[_i].secret);
}
END_TEST

START_TEST(secret_in_a_closed_file_is_taken_and_not_printed)
{
	static const char text[] = "[exporter a]\nendpoint = http://h\nheaders = X-Api-Key: " SECRET "\nheaders = X-Scope: t\n";
	struct config *c = NULL;
	char *shown, *whole;

	write_file("otprof.conf", text, strlen(text), 0600);
	ck_assert_msg(load(&c) == 0, "%s", errors);
	shown = print(c, config_print_shown);
	whole = print(c, config_print);
	ck_assert_ptr_null(strstr(shown, SECRET));
	ck_assert_ptr_nonnull(strstr(shown, "# headers = X-Api-Key: (not shown)\nheaders = X-Scope: t\n"));
	ck_assert_ptr_nonnull(strstr(whole, SECRET));
	config_free(c);
	free(shown);
	free(whole);
}
END_TEST

static int load_with(const char *key, const char *file, mode_t mode, struct config **ret)
{
	const char *named = write_file("secret", file, strlen(file), mode);
	char text[512];

	snprintf(text, sizeof(text), "[exporter a]\nendpoint = http://h\n%s = %s\n", key, named);
	put("otprof.conf", text);
	return load(ret);
}

START_TEST(headers_come_from_their_file)
{
	struct config *c = NULL;
	char *shown;

	ck_assert_msg(load_with("headers_file", "# mine\nAuthorization: Bearer " SECRET "\r\n\nX-B: 2\n", 0600, &c) == 0, "%s",
		      errors);
	ck_assert_uint_eq(c->exporters[0].nr_headers, 2);
	ck_assert_str_eq(c->exporters[0].headers[0], "Authorization: Bearer " SECRET);
	shown = print(c, config_print_shown);
	ck_assert_ptr_null(strstr(shown, SECRET));
	ck_assert_ptr_null(strstr(shown, "X-B"));
	ck_assert_ptr_nonnull(strstr(shown, "headers_file = "));
	config_free(c);
	free(shown);
}
END_TEST

static const struct {
	const char *key, *file;
	mode_t mode;
	const char *errors;
} wrong_secrets[] = {
	{"headers_file", "A: b\n", 0640,
	 "DIR/otprof.conf:1: exporter a.headers_file: DIR/secret is open to others, expected mode 0600 and root as its owner\n"},
	{"headers_file", "A: b\n", 0604,
	 "DIR/otprof.conf:1: exporter a.headers_file: DIR/secret is open to others, expected mode 0600 and root as its owner\n"},
	{"headers_file", "A: b\n" SECRET "\n", 0600,
	 "DIR/secret:2: exporter a: no header, expected one \"Name: value\" a line\n"},
	{"headers_file", "A: \xff\n", 0600, "DIR/secret:1: exporter a: no header, expected one \"Name: value\" a line\n"},
	{"headers_file", "Content-Type: text/plain\n", 0600,
	 "DIR/otprof.conf:1: exporter a: header Content-Type is set by otprof\n"},
};

START_TEST(wrong_secret_is_refused)
{
	struct config *c = NULL;

	ck_assert_int_lt(load_with(wrong_secrets[_i].key, wrong_secrets[_i].file, wrong_secrets[_i].mode, &c), 0);
	ck_assert_str_eq(said(), wrong_secrets[_i].errors);
}
END_TEST

static void put_with_tls(const char *key_file)
{
	char text[512];

	snprintf(text, sizeof(text), "[exporter a]\nendpoint = https://h\ntls_cert_file = %s/cert\ntls_key_file = %s\n", dir,
		 key_file);
	write_file("cert", "c", 1, 0644);
	put("otprof.conf", text);
}

START_TEST(key_that_others_may_read_is_refused)
{
	struct config *c = NULL;

	put_with_tls(write_file("key", "k", 1, 0644));
	ck_assert_int_eq(load(&c), -EINVAL);
	ck_assert_str_eq(said(), "DIR/otprof.conf:1: exporter a.tls_key_file: DIR/key is open to others, expected mode 0600 "
				 "and root as its owner\n");
	put_with_tls(write_file("key", "k", 1, 0400));
	ck_assert_msg(load(&c) == 0, "%s", errors);
	config_free(c);
}
END_TEST

START_TEST(key_of_another_user_is_refused)
{
	struct config *c = NULL;
	const char *key = write_file("key", "k", 1, 0600);

	if (chown(key, 12345, 12345) < 0)
		return; /* only root can give a file away */
	put_with_tls(key);
	ck_assert_int_eq(load(&c), -EINVAL);
	ck_assert_str_eq(said(), "DIR/otprof.conf:1: exporter a.tls_key_file: DIR/key is open to others, expected mode 0600 "
				 "and root as its owner\n");
}
END_TEST

START_TEST(missing_certificate_is_refused)
{
	struct config *c = NULL;

	put("otprof.conf", "[exporter a]\nendpoint = https://h\ntls_ca_file = /nonexistent/ca.pem\n");
	ck_assert_int_eq(load(&c), -EINVAL);
	ck_assert_str_eq(said(), "DIR/otprof.conf:1: exporter a.tls_ca_file: /nonexistent/ca.pem cannot be read: No such file "
				 "or directory\n");
}
END_TEST

/* Changes. */

static char changed[1024];

static void on_change(void *ctx, const char *title, bool restart)
{
	strcat(changed, title);
	strcat(changed, restart ? " (restart)\n" : "\n");
}

static struct config *parse_good(const char *text)
{
	struct config *c = NULL;

	errors[0] = '\0';
	ck_assert_msg(config_parse("F", text, strlen(text), on_error, NULL, &c) == 0, "%s", errors);
	return c;
}

START_TEST(changes_are_told_once_and_what_needs_a_restart_stays)
{
	struct config *from = parse_good("[sampler]\nring_size = 1M\n[exporter a]\nendpoint = http://h\n[exporter b]\n"
					 "endpoint = http://i\n[daemon]\nruntime_dir = /a\n");
	struct config *to = parse_good("[sampler]\nring_size = 2M\ncpus = 0\nfrequency_hz = 50\n[exporter a]\n"
				       "endpoint = http://h\nheaders = X: y\n[exporter c]\nendpoint = http://i\n"
				       "[resource]\nk = v\n[targets]\ninclude = unit:x\n[daemon]\nruntime_dir = /b\n");

	changed[0] = '\0';
	ck_assert_int_eq(config_changes(from, to, on_change, NULL), 0);
	ck_assert_str_eq(changed, "sampler.frequency_hz\nsampler.ring_size (restart)\nsampler.cpus (restart)\n"
				  "targets.include\ndaemon.runtime_dir (restart)\nexporter a\nexporter c\nexporter b\n"
				  "resource\n");
	ck_assert_uint_eq(to->ring_bytes, 1 << 20);
	ck_assert_ptr_null(to->cpus);
	ck_assert_str_eq(to->runtime_dir, "/a");
	ck_assert_uint_eq(to->frequency_hz, 50);
	changed[0] = '\0';
	ck_assert_int_eq(config_changes(to, to, on_change, NULL), 0);
	ck_assert_str_eq(changed, "");
	config_free(from);
	config_free(to);
}
END_TEST

/* What is documented: the file that is shipped, and the manual page. */

static char *read_text(const char *name)
{
	FILE *f = fopen(name, "re");
	char *text = calloc(1, CONFIG_FILE_MAX);

	ck_assert_msg(f != NULL, "%s: the tests run in the top directory", name);
	ck_assert_uint_gt(fread(text, 1, CONFIG_FILE_MAX - 1, f), 0);
	fclose(f);
	return text;
}

/* From the section's line to the next one. */
static char *section_of(const char *text, const char *name)
{
	char head[80];
	const char *from, *end;

	snprintf(head, sizeof(head), "\n[%s", name);
	from = strstr(text, head);
	ck_assert_msg(from != NULL, "[%s] is not in the file that is shipped", name);
	end = strstr(from + 2, "\n[");
	return end ? strndup(from, (size_t)(end - from)) : strdup(from);
}

START_TEST(every_key_is_in_the_file_that_is_shipped)
{
	char *text = read_text("packaging/otprof.conf");

	for (size_t i = 0; i < config_keys_nr; i++) {
		char *section = section_of(text, config_section_names[config_keys[i].section]), line[80];

		snprintf(line, sizeof(line), "\n#%s = ", config_keys[i].name);
		ck_assert_msg(strstr(section, line) != NULL, "[%s] %s is not in packaging/otprof.conf",
			      config_section_names[config_keys[i].section], config_keys[i].name);
		free(section);
	}
	free(text);
}
END_TEST

START_TEST(every_key_is_in_the_manual_page)
{
	char *text = read_text("packaging/man/otprof.conf.5");

	for (size_t i = 0; i < config_keys_nr; i++) {
		char line[80];

		snprintf(line, sizeof(line), "\n.B %s\n", config_keys[i].name);
		if (!strstr(text, line))
			snprintf(line, sizeof(line), "\n.BR %s ", config_keys[i].name);
		ck_assert_msg(strstr(text, line) != NULL, "%s is not in packaging/man/otprof.conf.5", config_keys[i].name);
	}
	for (int i = 0; i < SECTION_NR; i++) {
		char line[80];

		snprintf(line, sizeof(line), "\n.SS [%s", config_section_names[i]);
		ck_assert_msg(strstr(text, line) != NULL, "[%s] is not in packaging/man/otprof.conf.5", config_section_names[i]);
	}
	free(text);
}
END_TEST

/* Each "#key = value" line of the shipped file is the default, or an example: it must parse. */
static void uncomment(char *text)
{
	char *to = text, *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		size_t key = line[0] == '#' ? 1 + strspn(line + 1, "abcdefghijklmnopqrstuvwxyz_.") : 0, len;
		bool is_key = key > 1 && !strncmp(line + key, " = ", 3);
		bool is_section = line[0] == '#' && line[1] == '[';

		line += is_key || is_section;
		len = strlen(line);
		memmove(to, line, len); /* by a few bytes: they overlap */
		to += len;
		*to++ = '\n';
	}
	*to = '\0';
}

START_TEST(shipped_file_is_the_defaults_and_its_examples_are_good)
{
	char *text = read_text("packaging/otprof.conf"), *with, *without;
	struct config *c = parse_good(text), *defaults = parse_good("");

	with = print(c, config_print);
	without = print(defaults, config_print);
	ck_assert_str_eq(with, without);
	ck_assert(c->exporter_is_default);
	free(with);
	free(without);
	config_free(c);
	config_free(defaults);
	uncomment(text);
	config_free(parse_good(text));
	free(text);
}
END_TEST

/* The environment. */

static void clear_environment(void)
{
	static const char *const names[] = {"ENDPOINT", "HEADERS", "TIMEOUT", "COMPRESSION", "PROTOCOL", "CERTIFICATE",
					    "INSECURE", "PROFILE", "INTERVAL", "SPOOL", "SPOOL_AGE"};
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", names[i]);
		unsetenv(name);
		snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_PROFILES_%s", names[i]);
		unsetenv(name);
	}
	unsetenv("OTEL_RESOURCE_ATTRIBUTES");
	errors[0] = '\0';
}

START_TEST(environment_sets_the_exporter)
{
	struct config *c = NULL;

	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318", 1);
	setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b%20c, d = e", 1);
	setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2500", 1);
	setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none", 1);
	setenv("OTEL_RESOURCE_ATTRIBUTES", "team=x%2Cy,service.name=not-theirs", 1);
	ck_assert_int_eq(config_load(NULL, on_error, NULL, &c), 0);
	ck_assert_str_eq(c->exporters[0].endpoint, "http://collector:4318");
	ck_assert(!c->exporters[0].endpoint_is_full && !c->exporters[0].compression && !c->exporter_is_default);
	ck_assert_str_eq(c->exporters[0].headers[0], "a: b c");
	ck_assert_str_eq(c->exporters[0].headers[1], "d: e");
	ck_assert_uint_eq(c->exporters[0].timeout_ns, 2500 * NSEC_PER_MSEC);
	ck_assert_uint_eq(c->nr_resources, 1);
	ck_assert_str_eq(c->resources[0].value, "x,y");
	config_free(c);
}
END_TEST

START_TEST(variable_for_profiles_wins_and_is_a_whole_url)
{
	struct config *c = NULL;

	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://common", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://profiles/path", 1);
	ck_assert_int_eq(config_load(NULL, on_error, NULL, &c), 0);
	ck_assert_str_eq(c->exporters[0].endpoint, "http://profiles/path");
	ck_assert(c->exporters[0].endpoint_is_full);
	config_free(c);
}
END_TEST

static const struct {
	const char *endpoint, *insecure, *url;
} grpc_endpoints[] = {
	{"collector:4317", NULL, "https://collector:4317"},
	{"collector:4317", "false", "https://collector:4317"},
	{"collector:4317", "TRUE", "http://collector:4317"},
	{"http://collector:4317", "false", "http://collector:4317"},
	{"https://collector:4317", "true", "https://collector:4317"},
	{NULL, NULL, "http://127.0.0.1:4317"},
};

START_TEST(endpoint_of_grpc_has_a_scheme_or_is_secure)
{
	struct config *c = NULL;

	setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
	if (grpc_endpoints[_i].endpoint)
		setenv("OTEL_EXPORTER_OTLP_ENDPOINT", grpc_endpoints[_i].endpoint, 1);
	if (grpc_endpoints[_i].insecure)
		setenv("OTEL_EXPORTER_OTLP_INSECURE", grpc_endpoints[_i].insecure, 1);
	ck_assert_int_eq(config_load(NULL, on_error, NULL, &c), 0);
	ck_assert_int_eq(c->exporters[0].protocol, EXPORT_PROTOCOL_GRPC);
	ck_assert_str_eq(c->exporters[0].endpoint, grpc_endpoints[_i].url);
	config_free(c);
}
END_TEST

START_TEST(wrong_variable_is_refused_by_name)
{
	struct config *c = NULL;

	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", 1);
	setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", 1);
	ck_assert_int_eq(config_load(NULL, on_error, NULL, &c), -EINVAL);
	ck_assert_str_eq(errors, "environment: OTEL_EXPORTER_OTLP_TIMEOUT: bad value \"soon\", expected milliseconds "
				 "from 100 to 600000\n");
}
END_TEST

START_TEST(variables_without_an_endpoint_set_the_usual_exporter)
{
	struct config *c = NULL;

	setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2500", 1);
	setenv("OTEL_RESOURCE_ATTRIBUTES", "a=,b=2", 1);
	ck_assert_int_eq(config_load(NULL, on_error, NULL, &c), 0);
	ck_assert_uint_eq(c->nr_exporters, 1);
	ck_assert_str_eq(c->exporters[0].endpoint, "http://127.0.0.1:4318");
	ck_assert_uint_eq(c->exporters[0].timeout_ns, 2500 * NSEC_PER_MSEC);
	ck_assert(c->exporter_is_default);
	ck_assert_uint_eq(c->nr_resources, 1);
	ck_assert_str_eq(c->resources[0].key, "b");
	config_free(c);
}
END_TEST

START_TEST(variable_with_too_much_says_how_much_may_be)
{
	char list[256] = "";
	struct config *c = NULL;

	for (int i = 0; i < 17; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "k%d=v,", i);
	errors[0] = '\0';
	setenv("OTEL_RESOURCE_ATTRIBUTES", list, 1);
	ck_assert_int_eq(config_load(NULL, on_error, NULL, &c), -EINVAL);
	ck_assert_str_eq(errors, "environment: OTEL_RESOURCE_ATTRIBUTES: bad value, expected at most 12 attributes, those of "
				 "[resource] included\n");
	unsetenv("OTEL_RESOURCE_ATTRIBUTES");
	errors[0] = '\0';
	setenv("OTEL_EXPORTER_OTLP_HEADERS", list, 1);
	ck_assert_int_eq(config_load(NULL, on_error, NULL, &c), -EINVAL);
	ck_assert_str_eq(errors, "environment: OTEL_EXPORTER_OTLP_HEADERS: bad value, expected at most 16 headers, the "
				 "exporter's own included\n");
}
END_TEST

START_TEST(missing_file_is_named)
{
	struct config *c = NULL;

	errors[0] = '\0';
	ck_assert_int_eq(config_load("/nonexistent/otprof.conf", on_error, NULL, &c), -ENOENT);
	ck_assert_str_eq(errors, "/nonexistent/otprof.conf: cannot be read: No such file or directory\n");
	errors[0] = '\0';
	ck_assert_int_eq(config_load("/dev/zero", on_error, NULL, &c), -ENODEV);
	ck_assert_str_eq(errors, "/dev/zero: cannot be read: no regular file\n");
}
END_TEST

START_TEST(every_variable_for_profiles_wins)
{
	static const struct {
		const char *name, *common, *own;
	} variables[] = {{"HEADERS", "a=1", "a=2"},   {"TIMEOUT", "1000", "2000"},	   {"COMPRESSION", "gzip", "zstd"},
			 {"PROTOCOL", "x", "http/protobuf"}};
	struct config *c = NULL;
	char name[64];

	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", 1);
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", variables[i].name);
		setenv(name, variables[i].common, 1);
		snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_PROFILES_%s", variables[i].name);
		setenv(name, variables[i].own, 1);
	}
	ck_assert_msg(config_load(NULL, on_error, NULL, &c) == 0, "%s", errors);
	ck_assert_str_eq(c->exporters[0].headers[0], "a: 2");
	ck_assert_uint_eq(c->exporters[0].nr_headers, 1);
	ck_assert_uint_eq(c->exporters[0].timeout_ns, 2 * NSEC_PER_SEC);
	ck_assert_int_eq(c->exporters[0].compression, EXPORT_CODING_ZSTD);
	config_free(c);
}
END_TEST

START_TEST(keys_of_our_own_have_variables_for_profiles_alone)
{
	struct config *c = NULL;

	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_PROFILE", "pyroscope", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_INTERVAL", "15000", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_SPOOL", "64M", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_SPOOL_AGE", "3600000", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILE", "minimal", 1);
	ck_assert_msg(config_load(NULL, on_error, NULL, &c) == 0, "%s", errors);
	ck_assert_int_eq(c->exporters[0].preset, EXPORT_PRESET_PYROSCOPE);
	ck_assert_uint_eq(c->exporters[0].interval_ns, 15 * NSEC_PER_SEC);
	ck_assert_uint_eq(c->exporters[0].spool_bytes, 64 << 20);
	ck_assert_uint_eq(c->exporters[0].spool_age_ns, 3600 * NSEC_PER_SEC);
	config_free(c);
}
END_TEST

static const struct {
	const char *name, *value, *what;
} wrong_own_variables[] = {
	{"PROFILE", "all", "expected otlp, pyroscope or minimal"},
	{"INTERVAL", "15s", "expected milliseconds"},
	{"SPOOL_AGE", "", NULL}, /* as if it were not set */
};

START_TEST(variable_of_our_own_that_is_wrong_is_named)
{
	struct config *c = NULL;
	char name[64], line[160];

	snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_PROFILES_%s", wrong_own_variables[_i].name);
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", 1);
	setenv(name, wrong_own_variables[_i].value, 1);
	errors[0] = '\0';
	ck_assert_int_eq(config_load(NULL, on_error, NULL, &c), wrong_own_variables[_i].what ? -EINVAL : 0);
	snprintf(line, sizeof(line), "environment: %s: bad value \"%s\", %s\n", name, wrong_own_variables[_i].value,
		 wrong_own_variables[_i].what ? wrong_own_variables[_i].what : "");
	ck_assert_str_eq(errors, wrong_own_variables[_i].what ? line : "");
	config_free(c);
}
END_TEST

START_TEST(header_of_a_variable_replaces_those_of_its_name)
{
	static const char headers[] = "x-scope: of the headers file\nX-More: 3\n";
	const char *named = write_file("secret", headers, strlen(headers), 0600);
	struct config *c = NULL;
	char text[512];

	snprintf(text, sizeof(text), "[exporter a]\nendpoint = http://h\nheaders = X-Scope: of the file\nheaders = X-B: 1\n"
		 "headers = X-SCOPE: again\nheaders_file = %s\n", named);
	put("otprof.conf", text);
	setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-scope=one,x-c=2,X-Scope=two", 1);
	ck_assert_msg(load(&c) == 0, "%s", said());
	unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
	ck_assert_uint_eq(c->exporters[0].nr_headers, 4);
	ck_assert_str_eq(c->exporters[0].headers[0], "X-B: 1");
	ck_assert_str_eq(c->exporters[0].headers[1], "x-c: 2");
	ck_assert_str_eq(c->exporters[0].headers[2], "X-Scope: two");
	ck_assert_str_eq(c->exporters[0].headers[3], "X-More: 3");
	ck_assert_uint_eq(c->exporters[0].nr_headers_file, 1);
	config_free(c);
}
END_TEST

START_TEST(query_of_an_endpoint_is_sent_and_not_shown)
{
	struct config *c = parse_good("[exporter a]\nendpoint = https://h/intake?token=" SECRET "\n"), *again;
	char *shown = print(c, config_print_shown), *whole = print(c, config_print);

	ck_assert_ptr_null(strstr(shown, SECRET));
	ck_assert_ptr_nonnull(strstr(shown, "endpoint = https://h/intake?not-shown\n"));
	ck_assert_ptr_nonnull(strstr(whole, "endpoint = https://h/intake?token=" SECRET "\n"));
	again = parse_good(shown);
	config_free(again);
	ck_assert_int_eq(config_endpoint_shown("file:///what?"), (int)strlen("file:///what?"));
	config_free(c);
	errors[0] = '\0';
	ck_assert_int_eq(config_parse("F", "[exporter a]\nendpoint = https://h:99999/?t=" SECRET "\n",
				      strlen("[exporter a]\nendpoint = https://h:99999/?t=" SECRET "\n"), on_error, NULL, &c),
			 -EINVAL);
	ck_assert_ptr_null(strstr(errors, SECRET));
	free(shown);
	free(whole);
}
END_TEST

START_TEST(variable_with_a_secret_is_not_shown)
{
	struct config *c = NULL;

	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", 1);
	setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization " SECRET, 1);
	ck_assert_int_eq(config_load(NULL, on_error, NULL, &c), -EINVAL);
	ck_assert_str_eq(errors, "environment: OTEL_EXPORTER_OTLP_HEADERS: bad value, expected key=value,key=value with "
				 "percent-encoded values\n");
	unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
	errors[0] = '\0';
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:" SECRET "@h", 1);
	ck_assert_int_eq(config_load(NULL, on_error, NULL, &c), -EINVAL);
	ck_assert_ptr_null(strstr(errors, SECRET));
}
END_TEST

START_TEST(servers_of_the_environment_are_taken_only_where_asked_for)
{
	_cleanup_(freep) char *name = NULL;
	struct config *c = NULL;
	FILE *f;

	setenv("DEBUGINFOD_URLS", "ima:enforcing https://a.example,  ftp://b https://c.example/x", 1);
	ck_assert_int_eq(config_load(NULL, on_error, NULL, &c), 0);
	ck_assert_ptr_null(c->debuginfod.urls);
	config_free(c);
	ck_assert_int_gt(asprintf(&name, "/tmp/otprof-check-%d.conf", (int)getpid()), 0);
	f = fopen(name, "we");
	fputs("[debuginfod]\nurls = environment\n", f);
	fclose(f);
	ck_assert_int_eq(config_load(name, on_error, NULL, &c), 0);
	ck_assert_str_eq(c->debuginfod.urls, "https://a.example https://c.example/x");
	config_free(c);
	setenv("DEBUGINFOD_URLS", "https://me:" SECRET "@h", 1);
	ck_assert_int_eq(config_load(name, on_error, NULL, &c), -EINVAL);
	ck_assert_str_eq(errors, "environment: DEBUGINFOD_URLS: bad value, expected no user and password in a URL\n");
	unsetenv("DEBUGINFOD_URLS");
	ck_assert_int_eq(config_load(name, on_error, NULL, &c), 0);
	ck_assert_ptr_null(c->debuginfod.urls);
	config_free(c);
	unlink(name);
}
END_TEST

Suite *config_files_suite(void)
{
	Suite *s = suite_create("config_files");
	TCase *f = tcase_create("files"), *d = tcase_create("documented"), *e = tcase_create("environment");

	tcase_add_checked_fixture(f, set_up, tear_down);
	tcase_add_test(f, drop_ins_come_in_the_order_of_their_names);
	tcase_add_test(f, drop_in_goes_on_with_an_exporter);
	tcase_add_test(f, usual_file_may_be_missing_beside_drop_ins);
	tcase_add_loop_test(f, wrong_drop_in_is_named_with_its_line, 0, ARRAY_SIZE(wrong_drop_ins));
	tcase_add_test(f, huge_file_is_refused);
	tcase_add_test(f, binary_junk_is_refused);
	tcase_add_test(f, directory_is_no_file);
	tcase_add_test(f, unreadable_drop_in_is_refused);
	tcase_add_test(f, drop_in_directory_that_is_a_file_is_refused);
	tcase_add_test(f, secret_in_an_open_file_is_refused_and_not_shown);
	tcase_add_loop_test(f, header_with_a_secret_is_known, 0, ARRAY_SIZE(headers_of_vendors));
	tcase_add_test(f, secret_in_a_closed_file_is_taken_and_not_printed);
	tcase_add_test(f, header_of_a_variable_replaces_those_of_its_name);
	tcase_add_test(f, headers_come_from_their_file);
	tcase_add_loop_test(f, wrong_secret_is_refused, 0, ARRAY_SIZE(wrong_secrets));
	tcase_add_test(f, key_that_others_may_read_is_refused);
	tcase_add_test(f, key_of_another_user_is_refused);
	tcase_add_test(f, missing_certificate_is_refused);
	tcase_add_test(f, missing_file_is_named);
	tcase_add_test(f, changes_are_told_once_and_what_needs_a_restart_stays);
	suite_add_tcase(s, f);
	tcase_add_test(d, every_key_is_in_the_file_that_is_shipped);
	tcase_add_test(d, every_key_is_in_the_manual_page);
	tcase_add_test(d, shipped_file_is_the_defaults_and_its_examples_are_good);
	suite_add_tcase(s, d);
	tcase_add_checked_fixture(e, clear_environment, clear_environment);
	tcase_add_test(e, environment_sets_the_exporter);
	tcase_add_test(e, variables_without_an_endpoint_set_the_usual_exporter);
	tcase_add_test(e, variable_with_too_much_says_how_much_may_be);
	tcase_add_test(e, variable_for_profiles_wins_and_is_a_whole_url);
	tcase_add_loop_test(e, endpoint_of_grpc_has_a_scheme_or_is_secure, 0, ARRAY_SIZE(grpc_endpoints));
	tcase_add_test(e, wrong_variable_is_refused_by_name);
	tcase_add_test(e, every_variable_for_profiles_wins);
	tcase_add_test(e, keys_of_our_own_have_variables_for_profiles_alone);
	tcase_add_loop_test(e, variable_of_our_own_that_is_wrong_is_named, 0, ARRAY_SIZE(wrong_own_variables));
	tcase_add_test(e, query_of_an_endpoint_is_sent_and_not_shown);
	tcase_add_test(e, variable_with_a_secret_is_not_shown);
	tcase_add_test(e, servers_of_the_environment_are_taken_only_where_asked_for);
	suite_add_tcase(s, e);
	return s;
}
