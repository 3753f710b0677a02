/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URL and headers of an HTTP or gRPC destination's configuration, checked and
 * completed. Pure; called by these transports and, through
 * export_config_check, by the configuration.
 */
#ifndef OTP_EXPORT_HTTP_URL_H
#define OTP_EXPORT_HTTP_URL_H

#include <stdbool.h>

#include "export/transport.h"

/* ret_url: owned. A base URL gets the path of the profiles signal; full: left as it is. */
int http_url(const char *endpoint, bool full, char **ret_url);
/* The URL that otprof's own metrics go to, over HTTP or gRPC. -EINVAL: the endpoint leads to no other signal. */
int metrics_url(const struct export_config *cfg, char **ret_url);
int http_check(const struct export_config *cfg, char why[EXPORT_WHY]);
/* The path is that of the method: an endpoint with a path or a query is -EINVAL. */
int grpc_url(const char *endpoint, char **ret_url);
int grpc_check(const struct export_config *cfg, char why[EXPORT_WHY]);

#endif
