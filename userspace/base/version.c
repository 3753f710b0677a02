// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

#include <bpf/libbpf_version.h>
#include <curl/curlver.h>
#include <microhttpd.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

#include "kmod/uapi/otprof.h"
#include "kmod/uapi/otprof_dev.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#if defined(__x86_64__)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "another machine"
#endif

static const char *hardening(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return "sanitizers";
#elif defined(_FORTIFY_SOURCE) && defined(__PIE__) && defined(__SSP_STRONG__)
	return "fortified, stack protector, PIE";
#else
	return "none";
#endif
}

void version_print(const char *program)
{
	printf("%s %s\n", program, OTPROF_VERSION);
	printf("  built by:  %s, for %s\n", COMPILER, MACHINE);
	printf("  hardening: %s\n", hardening());
	printf("  samplers:  bpf kmod perf (contract %d, device %d)\n", OTP_ABI_VERSION, OTPROF_DEV_VERSION);
	printf("  exporters: otlp over http, otlp over grpc, file\n");
	printf("  libraries: libbpf %d.%d, libcurl %s, libmicrohttpd %x.%x.%x, protobuf-c %s\n", LIBBPF_MAJOR_VERSION,
	       LIBBPF_MINOR_VERSION, LIBCURL_VERSION, MHD_VERSION >> 24 & 0xff, MHD_VERSION >> 16 & 0xff,
	       MHD_VERSION >> 8 & 0xff, PROTOBUF_C_VERSION);
	printf("License Apache-2.0: <https://www.apache.org/licenses/LICENSE-2.0>\n");
}
