// SPDX-License-Identifier: Apache-2.0
#include "cli/hub.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "cli/client.h"

#define ANSWER_MAX   (256u << 20)
#define WAIT_SECONDS 20L
#define FILE_NAME    "hub.token"
#define CERT_NAME    "hub.crt"
#define HTTPS	     "https://"

static int hub_missing(const char *runtime_dir, int err)
{
	if (err == -ENOENT)
		cli_error("there is no hub: otprofd does not run, or has no [hub] listen (%s/" FILE_NAME " does not exist)",
			  runtime_dir);
	else
		cli_error("%s/" FILE_NAME ": %s%s", runtime_dir, strerror(-err),
			  err == -EACCES ? "; root and the group of otprofd's sockets may read it" : "");
	return err == -ENOENT ? CLI_NOT_RUNNING : CLI_FAILED;
}

int hub_find(const char *runtime_dir, struct hub *ret)
{
	char path[1100], text[sizeof(*ret)];
	ssize_t n;
	_cleanup_(closep) int fd = -1;

	snprintf(path, sizeof(path), "%s/" FILE_NAME, runtime_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return hub_missing(runtime_dir, -errno);
	text[n] = '\0';
	*ret = (struct hub){0};
	if (sscanf(text, "%159s %159s", ret->address, ret->token) < 1)
		return hub_missing(runtime_dir, -EBADMSG);
	snprintf(ret->cert, sizeof(ret->cert), "%s/" CERT_NAME, runtime_dir);
	return 0;
}

const char *hub_scheme(const struct hub *h)
{
	return strncmp(h->address, HTTPS, strlen(HTTPS)) ? "http://" : "";
}

static size_t hub_take(char *data, size_t size, size_t n, void *ctx)
{
	struct buf *b = ctx;

	buf_add(b, data, size * n);
	return b->failed ? 0 : size * n;
}

static void hub_curl_done(CURL **curl)
{
	curl_easy_cleanup(*curl);
}

static void hub_slist_done(struct curl_slist **list)
{
	curl_slist_free_all(*list);
}

/*
 * The hub's own certificate stands in a file that otprofd has written: that one is expected, whatever names it has,
 * since this host asks itself.
 */
static void hub_set_address(CURL *curl, const struct hub *h, const char *path)
{
	bool is_unix = !strncmp(h->address, HUB_UNIX, strlen(HUB_UNIX));
	char url[1024];

	snprintf(url, sizeof(url), "%s%s/api/v1%s", hub_scheme(h), is_unix ? "localhost" : h->address, path);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	if (is_unix)
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, h->address + strlen(HUB_UNIX));
	if (*hub_scheme(h))
		return;
	curl_easy_setopt(curl, CURLOPT_CAINFO, h->cert);
	curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
}

/* Proxies are for other hosts: the hub is on this one. */
static int hub_transfer(const struct hub *h, const char *method, const char *path, struct buf *out, long *ret_status)
{
	_cleanup_(hub_curl_done) CURL *curl = curl_easy_init();
	_cleanup_(hub_slist_done) struct curl_slist *headers = NULL;
	char authorization[192];
	CURLcode r;

	if (!curl)
		return -ENOMEM;
	snprintf(authorization, sizeof(authorization), "Authorization: Bearer %s", h->token);
	headers = curl_slist_append(NULL, *h->token ? authorization : "Accept: application/json");
	hub_set_address(curl, h, path);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, WAIT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, hub_take);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
	r = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
	if (r == CURLE_OK)
		return 0;
	return r == CURLE_COULDNT_CONNECT ? -ECONNREFUSED : r == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EIO;
}

static int hub_refused(long status, const json_t *answer)
{
	const char *message = client_text(answer, "error.message");

	cli_error("the hub refused the request: %s (%ld)", *message ? message : "no reason", status);
	return CLI_FAILED;
}

int hub_ask(const struct hub *h, const char *method, const char *path, json_t **ret)
{
	_cleanup_(buf_done) struct buf b = {.max = ANSWER_MAX};
	_cleanup_(json_decrefp) json_t *answer = NULL;
	long status = 0;
	int r = hub_transfer(h, method, path, &b, &status);

	if (r < 0) {
		cli_error("the hub at %s does not answer: %s", h->address, strerror(-r));
		return r == -ECONNREFUSED ? CLI_NOT_RUNNING : CLI_FAILED;
	}
	answer = b.len ? json_loadb((const char *)b.data, b.len, 0, NULL) : NULL;
	if (b.len && !json_is_object(answer)) {
		cli_error("the answer of %s is not that of a hub", h->address);
		return CLI_FAILED;
	}
	if (status < 200 || status > 299)
		return hub_refused(status, answer);
	*ret = steal_ptr(&answer);
	return 0;
}

/* By id or by name; several of a name are told apart by their ids only. */
static json_t *hub_find_workload(const json_t *list, const char *word, size_t *ret_found)
{
	json_t *w, *found = NULL;
	size_t i;

	*ret_found = 0;
	json_array_foreach(list, i, w) {
		if (strcmp(client_text(w, "id"), word) == 0) {
			*ret_found = 1;
			return w;
		}
		if (strcmp(client_text(w, "name"), word) == 0) {
			++*ret_found;
			found = w;
		}
	}
	return found;
}

int hub_workload(const struct hub *h, const char *word, char ret_id[HUB_ID], json_t **ret_workload)
{
	_cleanup_(json_decrefp) json_t *all = NULL;
	int r = hub_ask(h, "GET", "/workloads", &all);
	json_t *found;
	size_t n;

	if (r)
		return r;
	found = hub_find_workload(client_at(all, "workloads"), word, &n);
	if (n > 1)
		cli_error("%zu workloads are called '%s': give the id of one ('otprof workloads' has them)", n, word);
	else if (!n)
		cli_error("no workload '%s' was seen in the last minutes ('otprof workloads' lists those that were)", word);
	if (n != 1)
		return CLI_FAILED;
	snprintf(ret_id, HUB_ID, "%s", client_text(found, "id"));
	*ret_workload = json_incref(found);
	return 0;
}
