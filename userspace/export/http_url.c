// SPDX-License-Identifier: Apache-2.0
#include "export/http_url.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define PROFILES_PATH "/v1development/profiles"

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

int http_url(const char *endpoint, bool full, char **ret_url)
{
	_cleanup_(url_freep) CURLU *url = curl_url();
	_cleanup_(curl_freep) char *whole = NULL;
	char *copy;
	int rc;

	if (!url)
		return -ENOMEM;
	if (curl_url_set(url, CURLUPART_URL, endpoint, 0) != CURLUE_OK)
		return -EINVAL;
	rc = full ? 0 : add_path(url);
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

/* These say how the body is encoded, which is not for the configuration to say. */
static bool is_ours(const char *header, size_t name_len)
{
	static const char *const names[] = {
		"Content-Type", "Content-Encoding", "Content-Length", "Transfer-Encoding", "Expect"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == name_len && !strncasecmp(header, names[i], name_len))
			return true;
	return false;
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

int http_check(const struct export_config *cfg, char why[EXPORT_WHY])
{
	_cleanup_(freep) char *url = NULL;
	int rc = http_url(cfg->endpoint, cfg->endpoint_is_full, &url);

	if (rc < 0) {
		snprintf(why, EXPORT_WHY, "bad URL, expected http://HOST[:PORT][/PATH] or https://...");
		return rc;
	}
	for (uint32_t i = 0; !rc && i < cfg->nr_headers; i++)
		rc = check_header(cfg->headers[i], why);
	return rc;
}
