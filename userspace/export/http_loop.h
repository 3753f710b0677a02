/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop that all HTTP and gRPC transports share: one epoll descriptor
 * for two libcurl multi handles, one for each version of HTTP. A multi handle
 * owns connections, and libcurl 7.88 may hand an idle one of HTTP/1.1 to a
 * transfer that wants HTTP/2, where both protocols are served by one port.
 *
 * Called by the exporter, one thread. libcurl resolves names in threads of its
 * own; all else runs in the caller's.
 */
#ifndef OTP_EXPORT_HTTP_LOOP_H
#define OTP_EXPORT_HTTP_LOOP_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

struct transport_host;

int http_loop_new(struct transport_host **ret);
struct transport_host *http_loop_free(struct transport_host *l); /* NULL; after the last transport */
int http_loop_fd(const struct transport_host *l);      /* readable when there is work */
uint64_t http_loop_due_ns(const struct transport_host *l); /* UINT64_MAX: no timer */
void http_loop_run(struct transport_host *l); /* calls done for every try that has ended */

CURLM *http_loop_multi(const struct transport_host *l, bool http2);
/* Implemented by the transport: the try of this handle has ended. */
void http_finished(CURL *easy, CURLcode result);

#endif
