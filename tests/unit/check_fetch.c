// SPDX-License-Identifier: Apache-2.0
/* Debug files from servers: what a server may say, where it may lead, what is kept, and for how long. */
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/cache/disk_cache.h"
#include "daemon/cache/fetch_cache.h"
#include "daemon/disposable/fetch_address.h"
#include "daemon/disposable/fetch_http.h"
#include "daemon/disposable/fetch_proxy.h"
#include "symbol/debug_verify.h"
#include "tests/unit/receiver.h"

Suite *fetch_suite(void);

#define ID    "00112233445566778899aabbccddeeff00112233"
#define OTHER "ff112233445566778899aabbccddeeff00112233"

/* A debug file: a note with ID, .debug_info, names of sections, the table of sections at the end. */
struct debug_file {
	Elf64_Ehdr head;
	struct {
		Elf64_Nhdr head;
		char name[4];
		uint8_t id[20];
	} note;
	uint8_t info[64];
	char names[64];
	Elf64_Shdr sections[4];
};

static struct debug_file file;

static void make_file(void)
{
	static const char names[] = "\0.note.gnu.build-id\0.debug_info\0.shstrtab";

	file = (struct debug_file){
		.head = {.e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_shoff = offsetof(struct debug_file, sections), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 4,
			 .e_shstrndx = 3},
		.note = {.head = {4, 20, NT_GNU_BUILD_ID}, .name = "GNU"},
		.sections = {
			[1] = {.sh_name = 1, .sh_type = SHT_NOTE, .sh_offset = offsetof(struct debug_file, note), .sh_size = 36},
			[2] = {.sh_name = 20, .sh_type = SHT_PROGBITS, .sh_offset = offsetof(struct debug_file, info), .sh_size = 64},
			[3] = {.sh_name = 32, .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct debug_file, names), .sh_size = 64},
		},
	};
	memcpy(file.head.e_ident, "\177ELF\2\1\1", 7);
	memcpy(file.names, names, sizeof(names));
	for (unsigned int i = 0; i < 20; i++)
		sscanf(&ID[2 * i], "%2hhx", &file.note.id[i]);
}

static int file_with(const void *data, size_t len)
{
	int fd = memfd_create("check", MFD_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, data, len, 0), (ssize_t)len);
	return fd;
}

static enum debug_verdict verdict(size_t len, const char *id)
{
	_cleanup_(closep) int fd = file_with(&file, len);

	return debug_verify(fd, id);
}

START_TEST(file_is_what_it_says_or_not_taken)
{
	ck_assert_int_eq(verdict(sizeof(file), ID), DEBUG_IS_GOOD);
	ck_assert_int_eq(verdict(sizeof(file), OTHER), DEBUG_IS_ANOTHERS);
	ck_assert_int_eq(verdict(sizeof(file), ""), DEBUG_IS_ANOTHERS);
	ck_assert_int_eq(verdict(0, ID), DEBUG_IS_NO_ELF);
	ck_assert_int_eq(verdict(10, ID), DEBUG_IS_NO_ELF);
	for (size_t len = sizeof(file.head); len < sizeof(file); len += 7)
		ck_assert_int_eq(verdict(len, ID), DEBUG_IS_CUT);
	file.sections[2].sh_size = 1 << 20;
	ck_assert_int_eq(verdict(sizeof(file), ID), DEBUG_IS_CUT);
	file.sections[2].sh_type = SHT_NOBITS;
	ck_assert_int_eq(verdict(sizeof(file), ID), DEBUG_IS_EMPTY);
	file.head.e_shoff = UINT64_MAX - 10;
	ck_assert_int_eq(verdict(sizeof(file), ID), DEBUG_IS_CUT);
	file.head.e_ident[EI_CLASS] = ELFCLASS32;
	ck_assert_int_eq(verdict(sizeof(file), ID), DEBUG_IS_NO_ELF);
}
END_TEST

/* --- states and ids --- */

START_TEST(states_have_names_and_are_found_by_them)
{
	for (uint32_t i = FETCH_WAITING; i < FETCH_STATE_NR; i++) {
		ck_assert_int_eq(fetch_state_find(fetch_state_name(i)), i);
		ck_assert_str_ne(fetch_state_text(i), "");
	}
	ck_assert_int_eq(fetch_state_find("nonsense"), FETCH_NONE);
	ck_assert_str_eq(fetch_state_name(FETCH_STATE_NR), "");
	ck_assert_str_eq(fetch_state_text(UINT32_MAX), "");
	ck_assert(fetch_state_again(FETCH_SERVER) && !fetch_state_again(FETCH_NOT_FOUND));
}
END_TEST

START_TEST(id_is_hexadecimal_and_nothing_else)
{
	static const char *const bad[] = {"", "a", "ab", "abc", "abcd/", "../..", "ABCD", "abcg", "abcd ", ID "00"};

	ck_assert(fetch_id_is_sound(ID) && fetch_id_is_sound("abcd"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(!fetch_id_is_sound(bad[i]), "%s", bad[i]);
}
END_TEST

/* --- where a server may lead --- */

static const struct {
	const char *address;
	bool is_public;
} addresses[] = {
	{"8.8.8.8", true},	     {"127.0.0.1", false},   {"127.255.0.1", false}, {"0.0.0.0", false},
	{"10.1.2.3", false},	     {"172.16.0.1", false},  {"172.32.0.1", true},   {"192.168.1.1", false},
	{"169.254.169.254", false},  {"100.64.0.1", false},  {"100.128.0.1", true},  {"224.0.0.1", false},
	{"255.255.255.255", false},  {"198.18.0.1", false},  {"::1", false},	     {"::", false},
	{"fe80::1", false},	     {"fc00::1", false},     {"fd12::1", false},     {"ff02::1", false},
	{"2a00:1450::1", true},	     {"::ffff:127.0.0.1", false}, {"::ffff:8.8.8.8", true}, {"64:ff9b::10.0.0.1", false},
	{"64:ff9b::8.8.8.8", true}, {"2002:7f00:1::", false}, {"2001:db8::1", false}, {"2001::1", false},
	{"::127.0.0.1", false},
};

START_TEST(private_addresses_are_not_public)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} a = {0};
	const char *text = addresses[_i].address;

	if (strchr(text, ':')) {
		a.in6.sin6_family = AF_INET6;
		ck_assert_int_eq(inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
	} else {
		a.in.sin_family = AF_INET;
		ck_assert_int_eq(inet_pton(AF_INET, text, &a.in.sin_addr), 1);
	}
	ck_assert_msg(fetch_address_is_public(&a.any) == addresses[_i].is_public, "%s", text);
	a.any.sa_family = AF_UNIX;
	ck_assert(!fetch_address_is_public(&a.any));
}
END_TEST

START_TEST(same_place_is_scheme_host_and_port)
{
	ck_assert(fetch_address_is_same_place("http://h:1/a", "http://H:1/b?c"));
	ck_assert(fetch_address_is_same_place("https://h", "https://h/"));
	ck_assert(!fetch_address_is_same_place("http://h:1/a", "http://h:12/a"));
	ck_assert(!fetch_address_is_same_place("http://h/a", "https://h/a"));
	ck_assert(!fetch_address_is_same_place("http://h/a", "http://h@evil/a"));
	ck_assert(!fetch_address_is_same_place("", ""));
}
END_TEST

/* --- the cache --- */

static char top[64];
static char why[SAFE_PATH_WHY];
static struct disk_cache cache;

static void remove_all(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", top);
	ck_assert_int_eq(system(command), 0);
}

static void cache_up(void)
{
	make_file();
	snprintf(top, sizeof(top), "/tmp/otprof-fetch-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(fetch_cache_open(top, why, &cache), 0);
	fetch_cache_limit(&cache, 1 << 20, 60);
}

static void cache_down(void)
{
	disk_cache_close(&cache);
	remove_all();
}

static void keep(const char *id, size_t bytes, int expected)
{
	_cleanup_(closep) int fd = fetch_cache_new(&cache);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(posix_fallocate(fd, 0, (off_t)bytes), 0);
	ck_assert_int_eq(fetch_cache_keep(&cache, id), expected);
}

static bool has(const char *id)
{
	_cleanup_(closep) int fd = fetch_cache_find(&cache, id);

	return fd >= 0;
}

START_TEST(file_is_there_once_it_is_whole)
{
	_cleanup_(closep) int fd = fetch_cache_new(&cache);

	ck_assert_int_ge(fd, 0);
	ck_assert(!has(ID));
	ck_assert_int_eq(fetch_cache_keep(&cache, ID), 0);
	ck_assert(has(ID) && !has(OTHER));
	ck_assert_int_eq(fetch_cache_keep(&cache, OTHER), -ENOENT);
}
END_TEST

START_TEST(used_longest_ago_goes_first)
{
	const struct timespec day_ago[2] = {{.tv_sec = time(NULL) - 86400}, {.tv_nsec = UTIME_OMIT}};
	const struct timespec before[2] = {{.tv_sec = time(NULL) - 172800}, {.tv_nsec = UTIME_OMIT}};

	keep("aaaa", 65536, 0);
	keep("bbbb", 65536, 0);
	ck_assert_int_eq(utimensat(cache.dir, "aaaa.debug", before, 0), 0);
	ck_assert_int_eq(utimensat(cache.dir, "bbbb.debug", day_ago, 0), 0);
	ck_assert(has("aaaa")); /* used: now */
	disk_cache_limit(&cache, 150000);
	keep("cccc", 65536, 0);
	ck_assert(has("aaaa") && !has("bbbb") && has("cccc"));
	ck_assert_uint_ge(cache.bytes, 131072);
	disk_cache_limit(&cache, 60000);
	keep("dddd", 65536, -EFBIG);
	ck_assert(!has("dddd"));
}
END_TEST

START_TEST(refusal_is_remembered_with_its_reason_for_a_while)
{
	uint64_t now = (uint64_t)time(NULL);

	ck_assert_int_eq(fetch_cache_refused(&cache, ID, now), FETCH_NONE);
	fetch_cache_refuse(&cache, ID, FETCH_WRONG_ID);
	ck_assert_int_eq(fetch_cache_refused(&cache, ID, now), FETCH_WRONG_ID);
	ck_assert_int_eq(fetch_cache_refused(&cache, ID, now + 100), FETCH_NONE);
	keep(ID, 10, 0);
	ck_assert_int_eq(fetch_cache_refused(&cache, ID, now), FETCH_NONE);
	fetch_cache_refuse(&cache, ID, FETCH_UNREADABLE);
	ck_assert(!has(ID));
	fetch_cache_forget_refusals(&cache);
	ck_assert_int_eq(fetch_cache_refused(&cache, ID, now), FETCH_NONE);
}
END_TEST

START_TEST(reason_that_is_nonsense_is_a_refusal_still)
{
	_cleanup_(closep) int fd = disk_cache_new(&cache, ID ".none");

	ck_assert_int_eq(write(fd, "\377\0fetched and a long, long, long tail", 36), 36);
	ck_assert_int_eq(fetch_cache_refused(&cache, ID, (uint64_t)time(NULL)), FETCH_NOT_FOUND);
}
END_TEST

/* --- over the wire --- */

static struct receiver server;

static enum fetch_state fetch(const struct step *steps, size_t n, const char *path, uint64_t max, struct fetch_report *ret)
{
	_cleanup_(closep) int fd = memfd_create("check", MFD_CLOEXEC);
	struct fetch_request r = {.id = ID, .timeout_ns = 2 * NSEC_PER_SEC, .max_bytes = max, .fd = fd};
	enum fetch_state state;
	char urls[256];

	receiver_start(&server, steps, n);
	snprintf(urls, sizeof(urls), "http://127.0.0.1:%u%s", server.port, path);
	r.urls = urls;
	state = fetch_http(&r, ret);
	return state;
}

#define OK_HEAD "HTTP/1.1 200 OK\r\n"
#define GONE	{.text = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"}
#define ERROR	{.text = "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n"}
#define WHOLE	{.text = OK_HEAD, .body = &file, .body_len = sizeof(file)}
#define LEAD(to) {.text = "HTTP/1.1 302 Found\r\nLocation: " to "\r\nContent-Length: 0\r\n\r\n"}

static const struct {
	struct step steps[5];
	size_t n;
	const char *path;
	uint64_t max;
	enum fetch_state state;
	uint32_t requests;
} answers[] = {
	{{WHOLE}, 1, "", 1 << 20, FETCH_FETCHED, 1},
	{{WHOLE}, 1, "/below//", 1 << 20, FETCH_FETCHED, 1},
	{{WHOLE}, 1, "", sizeof(file), FETCH_FETCHED, 1},
	{{WHOLE}, 1, "", sizeof(file) - 1, FETCH_TOO_LARGE, 1},
	{{GONE}, 1, "", 1 << 20, FETCH_NOT_FOUND, 1},
	{{ERROR}, 1, "", 1 << 20, FETCH_SERVER, 1},
	{{{.text = "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n"}}, 1, "", 1 << 20, FETCH_SERVER, 1},
	{{{.text = "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"}}, 1, "", 1 << 20, FETCH_REFUSED, 1},
	{{{.text = "HTTP/1.1 204 None\r\n\r\n"}}, 1, "", 1 << 20, FETCH_REFUSED, 1},
	{{{.text = OK_HEAD "Content-Length: 5\r\n\r\nhello"}}, 1, "", 1 << 20, FETCH_NOT_ELF, 1},
	{{{.text = OK_HEAD "Content-Length: 500\r\n\r\nhello", .close = true}}, 1, "", 1 << 20, FETCH_TRUNCATED, 1},
	{{{.text = OK_HEAD, .body = &file, .body_len = 300}}, 1, "", 1 << 20, FETCH_TRUNCATED, 1},
	{{{.text = "nonsense\r\n\r\n", .close = true}}, 1, "", 1 << 20, FETCH_UNREACHABLE, 1},
	{{{.kind = STEP_HUGE}}, 1, "", 1 << 20, FETCH_TOO_LARGE, 1},
	{{{.kind = STEP_HANG}}, 1, "", 1 << 20, FETCH_UNREACHABLE, 1},
	{{{.kind = STEP_DROP}}, 1, "", 1 << 20, FETCH_TRUNCATED, 1},
	/* Where it leads. */
	{{LEAD("/x"), WHOLE}, 2, "", 1 << 20, FETCH_FETCHED, 2},
	{{LEAD("/x"), LEAD("/y"), LEAD("/z"), WHOLE}, 4, "", 1 << 20, FETCH_FETCHED, 4},
	{{LEAD("/x")}, 1, "", 1 << 20, FETCH_REDIRECT, 4},
	{{LEAD("file:///etc/passwd")}, 1, "", 1 << 20, FETCH_REDIRECT, 1},
	{{LEAD("gopher://127.0.0.1/")}, 1, "", 1 << 20, FETCH_REDIRECT, 1},
	{{LEAD("http://127.0.0.1:9/")}, 1, "", 1 << 20, FETCH_REDIRECT, 2},
	{{LEAD("http://[::1]:9/")}, 1, "", 1 << 20, FETCH_REDIRECT, 2},
	{{LEAD("http://0x7f.1:9/")}, 1, "", 1 << 20, FETCH_REDIRECT, 2},
	{{{.text = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"}}, 1, "", 1 << 20, FETCH_REDIRECT, 1},
};

START_TEST(answer_is_judged)
{
	struct fetch_report report;
	enum fetch_state state;

	make_file();
	state = fetch(answers[_i].steps, answers[_i].n, answers[_i].path, answers[_i].max, &report);
	receiver_stop(&server);
	ck_assert_msg(state == answers[_i].state, "%s, not %s (%s)", fetch_state_name(state),
		      fetch_state_name(answers[_i].state), report.text);
	ck_assert_uint_eq(report.requests, answers[_i].requests);
	ck_assert_uint_eq(report.bytes, state == FETCH_FETCHED ? sizeof(file) : 0);
}
END_TEST

START_TEST(request_is_the_protocols)
{
	static const struct step whole[] = {WHOLE};
	struct fetch_report report;

	make_file();
	ck_assert_int_eq(fetch(whole, 1, "/base/", 1 << 20, &report), FETCH_FETCHED);
	ck_assert_uint_eq(receiver_count(&server), 1);
	ck_assert_ptr_nonnull(strstr(server.got[0].head, "GET /base/buildid/" ID "/debuginfo HTTP/1.1\r\n"));
	ck_assert_ptr_null(strstr(server.got[0].head, "Accept-Encoding"));
	receiver_stop(&server);
}
END_TEST

START_TEST(next_server_is_asked_and_the_worst_answer_counts)
{
	static const struct step steps[] = {GONE, ERROR, WHOLE};
	struct fetch_report report;
	struct fetch_request r = {.id = ID, .timeout_ns = NSEC_PER_SEC, .max_bytes = 1 << 20};
	char urls[256];

	make_file();
	receiver_start(&server, steps, 3);
	snprintf(urls, sizeof(urls), "http://127.0.0.1:%u http://127.0.0.1:%u", server.port, server.port);
	r.urls = urls;
	r.fd = memfd_create("check", MFD_CLOEXEC);
	ck_assert_int_eq(fetch_http(&r, &report), FETCH_SERVER);
	ck_assert_uint_eq(report.requests, 2);
	ck_assert_str_eq(report.text, "HTTP 502");
	ck_assert_int_eq(fetch_http(&r, &report), FETCH_FETCHED);
	ck_assert_uint_eq(report.requests, 1);
	ck_assert_str_eq(report.text, "");
	receiver_stop(&server);
	/* Nobody listens there any more. */
	ck_assert_int_eq(fetch_http(&r, &report), FETCH_UNREACHABLE);
	close(r.fd);
}
END_TEST

/* A proxy for https is none for this: where http leads is still checked. */
START_TEST(proxy_of_another_url_turns_no_check_off)
{
	static const struct step away[] = {LEAD("http://127.0.0.1:9/")};
	struct fetch_report report;

	setenv("https_proxy", "http://127.0.0.1:9", 1);
	ck_assert_int_eq(fetch(away, 1, "", 1 << 20, &report), FETCH_REDIRECT);
	receiver_stop(&server);
	setenv("all_proxy", "http://127.0.0.1:9", 1);
	setenv("no_proxy", "localhost, 127.0.0.0/8", 1);
	ck_assert_int_eq(fetch(away, 1, "", 1 << 20, &report), FETCH_REDIRECT);
	receiver_stop(&server);
}
END_TEST

START_TEST(proxy_is_asked_for_what_it_is_there_for)
{
	static const struct step steps[] = {WHOLE};
	struct fetch_report report;
	struct fetch_request r = {.id = ID, .timeout_ns = NSEC_PER_SEC, .max_bytes = 1 << 20,
				  .urls = "http://debuginfod.example"};
	char proxy[64];

	make_file();
	receiver_start(&server, steps, 1);
	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u", server.port);
	setenv("http_proxy", proxy, 1);
	setenv("no_proxy", "example.org", 1);
	r.fd = memfd_create("check", MFD_CLOEXEC);
	ck_assert_int_eq(fetch_http(&r, &report), FETCH_FETCHED);
	ck_assert_ptr_nonnull(strstr(server.got[0].head, "GET http://debuginfod.example/buildid/" ID "/debuginfo HTTP/1.1\r\n"));
	receiver_stop(&server);
	close(r.fd);
}
END_TEST

static const struct {
	const char *url, *proxy; /* one of the variables' values below */
} proxied[] = {
	{"http://h/", "http"}, {"HTTP://h/", "http"}, {"https://h/", "https"}, {"https://[2001:db8::1]:8/", "https"},
	{"https://in.example.org/", NULL}, {"nonsense://", NULL}, {"", NULL},
};

START_TEST(proxy_is_that_of_the_scheme)
{
	const char *have;

	setenv("http_proxy", "http", 1);
	setenv("HTTPS_PROXY", "https", 1);
	setenv("no_proxy", "example.org", 1);
	have = fetch_proxy_of(proxied[_i].url);
	ck_assert_msg(have ? proxied[_i].proxy && !strcmp(have, proxied[_i].proxy) : !proxied[_i].proxy, "%s", proxied[_i].url);
	unsetenv("http_proxy");
	setenv("HTTP_PROXY", "of a client", 1);
	ck_assert_ptr_null(fetch_proxy_of("http://h/"));
	unsetenv("HTTP_PROXY");
}
END_TEST

static const struct {
	const char *list, *host;
	bool excepted;
} exceptions[] = {
	{"*", "h", true}, {"", "h", false}, {" , ", "h", false}, {"a,h b", "h", true}, {"h", "H.", true},
	{"example.org", "a.example.org", true}, {".example.org", "example.org", true}, {"example.org", "notexample.org", false},
	{"a.example.org", "example.org", false}, {".", "h", false}, {"10.0.0.1", "10.0.0.1", true}, {"10.0.0.1", "10.0.0.10", false},
	{"10.0.0.0/8", "10.200.3.4", true}, {"10.0.0.0/9", "10.200.3.4", false}, {"10.0.0.0/33", "10.0.0.0", false},
	{"10.0.0.0/", "10.0.0.0", false}, {"10.0.0.0/8x", "10.0.0.0", false}, {"0.0.0.0/0", "1.2.3.4", true},
	{"[fd00::1]", "fd00::1", true}, {"fd00::/8", "fdab::1", true}, {"fd00::/8", "10.0.0.1", false}, {"[]", "h", false},
};

START_TEST(exceptions_are_names_addresses_and_networks)
{
	ck_assert_msg(fetch_proxy_is_excepted(exceptions[_i].list, exceptions[_i].host) == exceptions[_i].excepted, "%s: %s",
		      exceptions[_i].list, exceptions[_i].host);
}
END_TEST

static void no_proxy(void)
{
	static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
					    "no_proxy", "NO_PROXY"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
}

Suite *fetch_suite(void)
{
	Suite *s = suite_create("fetch");
	TCase *f = tcase_create("file"), *c = tcase_create("cache"), *w = tcase_create("wire");

	tcase_add_checked_fixture(f, make_file, NULL);
	tcase_add_test(f, file_is_what_it_says_or_not_taken);
	tcase_add_test(f, states_have_names_and_are_found_by_them);
	tcase_add_test(f, id_is_hexadecimal_and_nothing_else);
	tcase_add_loop_test(f, private_addresses_are_not_public, 0, ARRAY_SIZE(addresses));
	tcase_add_test(f, same_place_is_scheme_host_and_port);
	suite_add_tcase(s, f);
	tcase_add_checked_fixture(c, cache_up, cache_down);
	tcase_add_test(c, file_is_there_once_it_is_whole);
	tcase_add_test(c, used_longest_ago_goes_first);
	tcase_add_test(c, refusal_is_remembered_with_its_reason_for_a_while);
	tcase_add_test(c, reason_that_is_nonsense_is_a_refusal_still);
	suite_add_tcase(s, c);
	tcase_set_timeout(w, 30);
	tcase_add_checked_fixture(w, no_proxy, no_proxy);
	tcase_add_loop_test(w, answer_is_judged, 0, ARRAY_SIZE(answers));
	tcase_add_test(w, request_is_the_protocols);
	tcase_add_test(w, next_server_is_asked_and_the_worst_answer_counts);
	tcase_add_test(w, proxy_of_another_url_turns_no_check_off);
	tcase_add_test(w, proxy_is_asked_for_what_it_is_there_for);
	tcase_add_loop_test(w, proxy_is_that_of_the_scheme, 0, ARRAY_SIZE(proxied));
	tcase_add_loop_test(w, exceptions_are_names_addresses_and_networks, 0, ARRAY_SIZE(exceptions));
	suite_add_tcase(s, w);
	return s;
}
