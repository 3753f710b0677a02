// SPDX-License-Identifier: Apache-2.0
#include "export/http_url.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define PROFILES_PATH "/v1development/profiles"
#define EXPORT_METHOD "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

static void url_freep(CURLU **url)
{
	curl_url_cleanup(*url);
}

static void curl_freep(char **s)
{
	curl_free(*s);
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

static int add_path(CURLU *url)
{
	_cleanup_(curl_freep) char *path = NULL;
	_cleanup_(freep) char *longer = NULL;
	size_t len;

	if (curl_url_get(url, CURLUPART_PATH, &path, 0) != CURLUE_OK)
		return -EINVAL;
	if (ends_with(path, PROFILES_PATH))
		return 0;
	len = strlen(path);
	while (len && path[len - 1] == '/')
		len--;
	if (asprintf(&longer, "%.*s%s", (int)len, path, PROFILES_PATH) < 0) {
		longer = NULL;
		return -ENOMEM;
	}
	return curl_url_set(url, CURLUPART_PATH, longer, 0) == CURLUE_OK ? 0 : -EINVAL;
}

/* complete: what makes a URL of the endpoint; NULL: it is one. */
static int url_complete(const char *endpoint, int (*complete)(CURLU *url), char **ret_url)
{
	_cleanup_(url_freep) CURLU *url = curl_url();
	_cleanup_(curl_freep) char *whole = NULL;
	char *copy;
	int rc;

	if (!url)
		return -ENOMEM;
	if (curl_url_set(url, CURLUPART_URL, endpoint, 0) != CURLUE_OK)
		return -EINVAL;
	rc = complete ? complete(url) : 0;
	if (rc < 0)
		return rc;
	if (curl_url_get(url, CURLUPART_URL, &whole, 0) != CURLUE_OK)
		return -EINVAL;
	copy = strdup(whole);
	if (!copy)
		return -ENOMEM;
	*ret_url = copy;
	return 0;
}

int http_url(const char *endpoint, bool full, char **ret_url)
{
	return url_complete(endpoint, full ? NULL : add_path, ret_url);
}

static int set_method(CURLU *url)
{
	_cleanup_(curl_freep) char *path = NULL;
	_cleanup_(curl_freep) char *query = NULL;

	if (curl_url_get(url, CURLUPART_PATH, &path, 0) != CURLUE_OK || strcmp(path, "/") != 0 ||
	    curl_url_get(url, CURLUPART_QUERY, &query, 0) == CURLUE_OK)
		return -EINVAL;
	return curl_url_set(url, CURLUPART_PATH, EXPORT_METHOD, 0) == CURLUE_OK ? 0 : -ENOMEM;
}

int grpc_url(const char *endpoint, char **ret_url)
{
	return url_complete(endpoint, set_method, ret_url);
}

/* These say how the body is encoded, which is not for the configuration to say; gRPC's own are reserved. */
static bool is_ours(const char *header, size_t name_len)
{
	static const char *const names[] = {
		"Content-Type", "Content-Encoding", "Content-Length", "Transfer-Encoding", "Expect", "TE"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == name_len && !strncasecmp(header, names[i], name_len))
			return true;
	return !strncasecmp(header, "grpc-", 5);
}

static int check_header(const char *header, char why[EXPORT_WHY])
{
	size_t name_len = strcspn(header, ":; \t\r\n");

	if (!name_len || header[name_len] != ':' || strpbrk(header, "\r\n"))
		snprintf(why, EXPORT_WHY, "bad header, expected \"Name: value\"");
	else if (is_ours(header, name_len))
		snprintf(why, EXPORT_WHY, "header %.*s is set by otprof", (int)name_len, header);
	else
		return 0;
	return -EINVAL;
}

static int check_headers(const struct export_config *cfg, char why[EXPORT_WHY])
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < cfg->nr_headers; i++)
		rc = check_header(cfg->headers[i], why);
	return rc;
}

int http_check(const struct export_config *cfg, char why[EXPORT_WHY])
{
	_cleanup_(freep) char *url = NULL;
	int rc = http_url(cfg->endpoint, cfg->endpoint_is_full, &url);

	if (rc < 0) {
		snprintf(why, EXPORT_WHY, "bad URL, expected http://HOST[:PORT][/PATH] or https://...");
		return rc;
	}
	return check_headers(cfg, why);
}

/* libcurl is built without HTTP/2 somewhere; a try would fail later, with a less useful text. */
static bool has_http2(void)
{
	return curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTP2;
}

int grpc_check(const struct export_config *cfg, char why[EXPORT_WHY])
{
	_cleanup_(freep) char *url = NULL;
	int rc = grpc_url(cfg->endpoint, &url);

	if (rc < 0)
		snprintf(why, EXPORT_WHY, "bad URL for gRPC, expected http://HOST[:PORT] or https://..., without a path");
	else if (!has_http2())
		snprintf(why, EXPORT_WHY, "this libcurl (%s) has no HTTP/2, which protocol = grpc needs",
			 curl_version_info(CURLVERSION_NOW)->version);
	else
		return check_headers(cfg, why);
	return rc < 0 ? rc : -EINVAL;
}
