// SPDX-License-Identifier: Apache-2.0
/*
 * One debug file over HTTP, by libcurl. An answer is bounded in bytes, in
 * time and in the addresses that it may redirect to; only its status and the
 * file's build-id are interpreted.
 */
#include "daemon/disposable/fetch_http.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "daemon/disposable/fetch_address.h"
#include "daemon/disposable/fetch_proxy.h"
#include "symbol/debug_verify.h"

#define CONNECT_MS     10000L
#define SLOW_BYTES     1024L /* bytes a second, for this many seconds: below that the transfer is aborted */
#define SLOW_SECONDS   20L
#define REDIRECTS_MAX  3
#define CHATTER_MAX    65536u /* of the body of an error */
#define URL_BYTES      4096

struct transfer {
	const struct fetch_request *r;
	struct fetch_report *report;
	CURL *easy;
	char error[CURL_ERROR_SIZE];
	uint64_t written, chatter;
	bool led_away; /* after a redirection to another host or port */
	bool proxied;  /* the connection is the proxy's, which decides itself what it reaches */
	bool too_large, not_kept, not_allowed;
};

static long fetch_http_status_of(const struct transfer *t)
{
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static bool fetch_http_store(struct transfer *t, const char *data, size_t len)
{
	t->too_large = len > t->r->max_bytes - t->written;
	if (t->too_large)
		return false;
	t->not_kept = file_write_at(t->r->fd, data, len, t->written) < 0;
	if (!t->not_kept)
		t->written += len;
	return !t->not_kept;
}

static size_t fetch_http_on_write(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;

	if (fetch_http_status_of(t) == 200)
		return fetch_http_store(t, data, size * n) ? size * n : 0;
	t->chatter += size * n;
	return t->chatter <= CHATTER_MAX ? size * n : 0;
}

/* The operator of a server must not make this host query its own or its neighbours' services. */
static curl_socket_t fetch_http_open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct transfer *t = ctx;

	if (t->led_away && !t->proxied && !fetch_address_is_public(&a->addr)) {
		t->not_allowed = true;
		return CURL_SOCKET_BAD;
	}
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static void fetch_http_set_bounds(const struct transfer *t, uint64_t left_ns)
{
	long left_ms = (long)MAX(left_ns / NSEC_PER_MSEC, 1u);

	curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, left_ms);
	curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, MIN(left_ms, CONNECT_MS));
	curl_easy_setopt(t->easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->r->max_bytes);
	curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
	curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_TIME, SLOW_SECONDS);
}

static void fetch_http_set_behaviour(struct transfer *t)
{
	curl_easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	/* Redirections are followed in fetch_http_follow(). */
	curl_easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(t->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(t->easy, CURLOPT_USERAGENT, "otprof/" OTPROF_VERSION);
	curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(t->easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error);
	curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, fetch_http_on_write);
	curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETFUNCTION, fetch_http_open_socket);
	curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETDATA, t);
}

static void fetch_http_set_text(const struct transfer *t, const char *text)
{
	snprintf(t->report->text, sizeof(t->report->text), "%.*s", (int)sizeof(t->report->text) - 1, text);
}

static enum fetch_state fetch_http_judge_failure(const struct transfer *t, CURLcode result)
{
	fetch_http_set_text(t, *t->error ? t->error : curl_easy_strerror(result));
	if (t->not_allowed)
		return FETCH_REDIRECT;
	if (t->too_large || result == CURLE_FILESIZE_EXCEEDED)
		return FETCH_TOO_LARGE;
	if (t->not_kept)
		return FETCH_LOCAL;
	if (t->chatter > CHATTER_MAX)
		return FETCH_SERVER;
	if (result == CURLE_OPERATION_TIMEDOUT)
		return t->written ? FETCH_TIMEOUT : FETCH_UNREACHABLE;
	if (result == CURLE_PARTIAL_FILE || result == CURLE_RECV_ERROR || result == CURLE_GOT_NOTHING)
		return FETCH_TRUNCATED;
	return FETCH_UNREACHABLE;
}

static enum fetch_state fetch_http_judge_status(const struct transfer *t, long status)
{
	char text[32];

	snprintf(text, sizeof(text), "HTTP %ld", status);
	fetch_http_set_text(t, text);
	if (status == 404 || status == 410)
		return FETCH_NOT_FOUND;
	return status >= 500 || status == 429 ? FETCH_SERVER : FETCH_REFUSED;
}

static enum fetch_state fetch_http_judge_file(const struct transfer *t)
{
	static const enum fetch_state states[] = {
		[DEBUG_IS_GOOD] = FETCH_FETCHED, [DEBUG_IS_NO_ELF] = FETCH_NOT_ELF, [DEBUG_IS_CUT] = FETCH_TRUNCATED,
		[DEBUG_IS_ANOTHERS] = FETCH_WRONG_ID, [DEBUG_IS_EMPTY] = FETCH_NO_DEBUG};
	enum fetch_state state = states[debug_verify(t->r->fd, t->r->id)];

	t->report->bytes = state == FETCH_FETCHED ? t->written : 0;
	fetch_http_set_text(t, state == FETCH_FETCHED ? "" : fetch_state_text(state));
	return state;
}

/* The address of a redirection: never another protocol, and never http after https. */
static bool fetch_http_follow(struct transfer *t, char url[URL_BYTES])
{
	char *to = NULL;

	if (curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &to) != CURLE_OK || !to || strlen(to) >= URL_BYTES)
		return false;
	if (strncasecmp(to, "https://", 8) && (strncasecmp(to, "http://", 7) || strncasecmp(url, "http://", 7)))
		return false;
	t->led_away |= !fetch_address_is_same_place(url, to);
	memcpy(url, to, strlen(to) + 1);
	return true;
}

/* Each URL may have another proxy, or none. The choice is ours alone: "" keeps libcurl from making one. */
static void fetch_http_set_url(struct transfer *t, const char *url)
{
	const char *proxy = fetch_proxy_of(url);

	t->proxied = proxy;
	curl_easy_setopt(t->easy, CURLOPT_URL, url);
	curl_easy_setopt(t->easy, CURLOPT_PROXY, proxy ? proxy : "");
	curl_easy_setopt(t->easy, CURLOPT_NOPROXY, "");
}

static enum fetch_state fetch_http_ask_once(struct transfer *t, const char *url, uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns();
	CURLcode result;
	long status;

	if (now >= deadline_ns)
		return FETCH_TIMEOUT;
	if (ftruncate(t->r->fd, 0) < 0)
		return FETCH_LOCAL;
	t->written = t->chatter = 0;
	t->error[0] = '\0';
	fetch_http_set_bounds(t, deadline_ns - now);
	fetch_http_set_url(t, url);
	t->report->requests++;
	result = curl_easy_perform(t->easy);
	status = fetch_http_status_of(t);
	/* A refusal's status counts, also where its body is cut off. */
	if (result != CURLE_OK && status != 404)
		return fetch_http_judge_failure(t, result);
	return status == 200 ? fetch_http_judge_file(t) : fetch_http_judge_status(t, status);
}

static bool fetch_http_is_redirection(const struct transfer *t, enum fetch_state state)
{
	long status = fetch_http_status_of(t);

	return state == FETCH_REFUSED && status > 300 && status < 400 && status != 304;
}

static enum fetch_state fetch_http_ask_server(struct transfer *t, char url[URL_BYTES])
{
	uint64_t deadline = clock_now_ns() + t->r->timeout_ns;
	enum fetch_state state = fetch_http_ask_once(t, url, deadline);

	t->led_away = false;
	for (int i = 0; fetch_http_is_redirection(t, state); i++) {
		if (i == REDIRECTS_MAX || !fetch_http_follow(t, url))
			return FETCH_REDIRECT;
		state = fetch_http_ask_once(t, url, deadline);
	}
	return state;
}

static enum fetch_state fetch_http_ask_base(const struct fetch_request *r, const char *base, size_t len,
					    struct fetch_report *ret)
{
	struct transfer t = {.r = r, .report = ret, .easy = curl_easy_init()};
	enum fetch_state state = FETCH_LOCAL;
	char url[URL_BYTES];

	while (len && base[len - 1] == '/')
		len--;
	if (!t.easy)
		return state;
	fetch_http_set_behaviour(&t);
	if (snprintf(url, sizeof(url), "%.*s/buildid/%s/debuginfo", (int)len, base, r->id) < (int)sizeof(url))
		state = fetch_http_ask_server(&t, url);
	curl_easy_cleanup(t.easy);
	return state;
}

/* A server that may have the file but has an error now outweighs one that does not have it. */
static enum fetch_state fetch_http_worse(enum fetch_state a, enum fetch_state b)
{
	if (a == FETCH_NONE || (!fetch_state_again(a) && fetch_state_again(b)))
		return b;
	return a == FETCH_NOT_FOUND ? b : a;
}

enum fetch_state fetch_http(const struct fetch_request *r, struct fetch_report *ret)
{
	enum fetch_state all = FETCH_NONE;

	*ret = (struct fetch_report){0};
	for (const char *at = r->urls; *(at += strspn(at, " ")); at += strcspn(at, " ")) {
		char before[sizeof(ret->text)];
		enum fetch_state state;

		memcpy(before, ret->text, sizeof(before));
		state = fetch_http_ask_base(r, at, strcspn(at, " "), ret);
		if (state == FETCH_FETCHED)
			return state;
		if (fetch_http_worse(all, state) == all)
			memcpy(ret->text, before, sizeof(before));
		all = fetch_http_worse(all, state);
	}
	return all == FETCH_NONE ? FETCH_NOT_FOUND : all;
}
