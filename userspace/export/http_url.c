// SPDX-License-Identifier: Apache-2.0
#include "export/http_url.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define PROFILES_PATH "/v1development/profiles"
#define METRICS_PATH  "/v1/metrics"
#define METRICS_METHOD "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
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

/* Appends what the path does not end with already. other: the path of another signal, which it replaces; or NULL. */
static int url_add_path(CURLU *url, const char *signal, const char *other)
{
	_cleanup_(curl_freep) char *path = NULL;
	_cleanup_(freep) char *longer = NULL;
	size_t len;

	if (curl_url_get(url, CURLUPART_PATH, &path, 0) != CURLUE_OK)
		return -EINVAL;
	if (ends_with(path, signal))
		return 0;
	len = strlen(path);
	if (other && ends_with(path, other))
		len -= strlen(other);
	while (len && path[len - 1] == '/')
		len--;
	if (asprintf(&longer, "%.*s%s", (int)len, path, signal) < 0) {
		longer = NULL;
		return -ENOMEM;
	}
	return curl_url_set(url, CURLUPART_PATH, longer, 0) == CURLUE_OK ? 0 : -EINVAL;
}

static int add_path(CURLU *url)
{
	return url_add_path(url, PROFILES_PATH, NULL);
}

static int add_metrics_path(CURLU *url)
{
	return url_add_path(url, METRICS_PATH, PROFILES_PATH);
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

static int url_set_method(CURLU *url, const char *method)
{
	_cleanup_(curl_freep) char *path = NULL;
	_cleanup_(curl_freep) char *query = NULL;

	if (curl_url_get(url, CURLUPART_PATH, &path, 0) != CURLUE_OK || strcmp(path, "/") != 0 ||
	    curl_url_get(url, CURLUPART_QUERY, &query, 0) == CURLUE_OK)
		return -EINVAL;
	return curl_url_set(url, CURLUPART_PATH, method, 0) == CURLUE_OK ? 0 : -ENOMEM;
}

static int set_method(CURLU *url)
{
	return url_set_method(url, EXPORT_METHOD);
}

static int set_metrics_method(CURLU *url)
{
	return url_set_method(url, METRICS_METHOD);
}

int grpc_url(const char *endpoint, char **ret_url)
{
	return url_complete(endpoint, set_method, ret_url);
}

/* Of a whole URL, only the path of profiles is known to have a neighbour. */
static bool url_is_of_profiles(const char *endpoint)
{
	return !strchr(endpoint, '?') && ends_with(endpoint, PROFILES_PATH);
}

int metrics_url(const struct export_config *cfg, char **ret_url)
{
	const char *endpoint = cfg->metrics_endpoint ? cfg->metrics_endpoint : cfg->endpoint;

	if (strncmp(endpoint, "http://", 7) && strncmp(endpoint, "https://", 8))
		return -EINVAL;
	if (cfg->protocol == EXPORT_PROTOCOL_GRPC)
		return url_complete(endpoint, set_metrics_method, ret_url);
	if (cfg->metrics_endpoint)
		return url_complete(endpoint, NULL, ret_url);
	if (cfg->endpoint_is_full && !url_is_of_profiles(endpoint))
		return -EINVAL;
	return url_complete(endpoint, add_metrics_path, ret_url);
}

static int check_metrics(const struct export_config *cfg, char why[EXPORT_WHY])
{
	_cleanup_(freep) char *url = NULL;
	int rc = cfg->metrics ? metrics_url(cfg, &url) : 0;

	if (rc < 0)
		snprintf(why, EXPORT_WHY, "metrics: the endpoint does not say where to, expected metrics_endpoint");
	return rc;
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
	rc = check_metrics(cfg, why);
	return rc < 0 ? rc : check_headers(cfg, why);
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
		return check_metrics(cfg, why) < 0 ? -EINVAL : check_headers(cfg, why);
	return rc < 0 ? rc : -EINVAL;
}
