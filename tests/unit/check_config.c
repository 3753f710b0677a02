// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"
#include "profile/profile.h"

Suite *config_suite(void);

static char errors[8192];

static void on_error(void *ctx, const char *line)
{
	size_t used = strlen(errors);

	snprintf(errors + used, sizeof(errors) - used, "%s\n", line);
}

static int parse(const char *text, struct config **ret)
{
	errors[0] = '\0';
	return config_parse("F", text, strlen(text), on_error, NULL, ret);
}

static struct config *parse_good(const char *text)
{
	struct config *c = NULL;

	ck_assert_msg(parse(text, &c) == 0, "%s", errors);
	ck_assert_str_eq(errors, "");
	return c;
}

#define SECTIONS "sampler, profile, targets, exporter NAME, resource, metrics, hub, limits, symbols, runtimes, debuginfod or daemon"
#define TEN	"0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define URLS "off, environment, or up to 8 URLs http://HOST[:PORT][/PATH] or https://..., separated by spaces"
#define EXPORTER "[exporter a]\nendpoint = http://h\n"

/* A wrong file, and all that is said about it. */
static const struct {
	const char *text, *errors;
} wrong[] = {
	{"x = 1\n", "F:1: x: before any section, expected [sampler] or another one first\n"},
	{"[sampler]\nfrequency = 5\n", "F:2: sampler.frequency: unknown key, expected one of [sampler], did you mean frequency_hz?\n"},
	{"[sampler]\nfrequency_hz = fast\n",
	 "F:2: sampler.frequency_hz: bad value \"fast\", expected a number from 1 to 10000\n"},
	{"[sampler]\nfrequency_hz = 0\n",
	 "F:2: sampler.frequency_hz: bad value \"0\", expected a number from 1 to 10000\n"},
	{"[sampler]\nfrequency_hz = 10001\n",
	 "F:2: sampler.frequency_hz: bad value \"10001\", expected a number from 1 to 10000\n"},
	{"[sampler]\nfrequency_hz = 99999999999999999999\n",
	 "F:2: sampler.frequency_hz: bad value \"99999999999999999999\", expected a number from 1 to 10000\n"},
	{"[sampler]\nfrequency_hz = -5\n",
	 "F:2: sampler.frequency_hz: bad value \"-5\", expected a number from 1 to 10000\n"},
	{"[sampler]\nfrequency_hz =\n", "F:2: sampler.frequency_hz: no value, expected one behind the =, or no such line\n"},
	{"[sampler]\nfrequency_hz = 5\n\nfrequency_hz = 6\n",
	 "F:4: sampler.frequency_hz: given twice, first in line 2\n"},
	{"[sampler]\nmode = fast\n", "F:2: sampler.mode: bad value \"fast\", expected auto, bpf, kmod, perf or none\n"},
	{"[sampler]\nring_size = 100000\n", "F:2: sampler.ring_size: bad value \"100000\", expected a size from 64K to "
					    "1G, a power of two, such as 64K or 4M\n"},
	{"[sampler]\nring_size = 4MB\n", "F:2: sampler.ring_size: bad value \"4MB\", expected a size from 64K to 1G, a "
					 "power of two, such as 64K or 4M\n"},
	{"[sampler]\nstack_bytes = 1M\n",
	 "F:2: sampler.stack_bytes: bad value \"1M\", expected a size from 512 to 512K, such as 64K or 4M\n"},
	{"[sampler]\nstack_bytes = 64K\nstack_max_bytes = 4K\n",
	 "F:2: sampler.stack_bytes: above stack_max_bytes, expected it at or below\n"},
	{"[sampler]\nkernel_threads = maybe\n",
	 "F:2: sampler.kernel_threads: bad value \"maybe\", expected yes or no\n"},
	{"[sampler]\ncpus = 3-1\n", "F:2: sampler.cpus: bad value \"3-1\", expected a list of CPUs, such as 0-3,8\n"},
	{"[sampler]\ncpus = 0,,1\n", "F:2: sampler.cpus: bad value \"0,,1\", expected a list of CPUs, such as 0-3,8\n"},
	{"[samplr]\n", "F:1: [samplr]: unknown section, expected " SECTIONS ", did you mean [sampler]?\n"},
	{"[sampler x]\n", "F:1: [sampler x]: unknown section, expected " SECTIONS ", did you mean [sampler]?\n"},
	{"[hub-of-the-future]\n", "F:1: [hub-of-the-future]: unknown section, expected " SECTIONS "\n"},
	{"[]\n", "F:1: []: unknown section, expected " SECTIONS "\n"},
	{"[sampler\n", "F:1: section without its end, expected [NAME]\n"},
	{"[sampler] x\n", "F:1: text after the section's name, expected the end of the line\n"},
	{"[sampler]\n[sampler]\n", "F:2: [sampler]: this section is there twice\n"},
	{"[sampler]\njust words\n", "F:2: expected [SECTION], \"key = value\" or a comment\n"},
	{"[sampler]\n= 5\n", "F:2: expected \"key = value\"\n"},
	{"[profile]\ninterval = 5\n", "F:2: profile.interval: bad value \"5\", expected a time from 100ms to 3600s with "
				      "its unit, such as 500ms, 5s or 2m\n"},
	{"[profile]\ninterval = 2d\n", "F:2: profile.interval: bad value \"2d\", expected a time from 100ms to 3600s "
				       "with its unit, such as 500ms, 5s or 2m\n"},
	{"[profile]\nsample_attributes = process.pid cpu\n",
	 "F:2: profile.sample_attributes: bad value \"process.pid cpu\", expected none, or some of process.pid "
	 "process.executable.name thread.name thread.id cpu.logical_number process.context.label\n"},
	{"[targets]\ninclude = /system.slice\n",
	 "F:2: targets.include: bad value \"/system.slice\", expected unit:NAME, container:ID, cgroup:PATH, exe:NAME, "
	 "user:NAME or pid:NUMBER, separated by spaces\n"},
	{"[targets]\ninclude = unit:a, unit:b\n",
	 "F:2: targets.include: bad value \"unit:a, unit:b\", expected unit:NAME of a systemd unit\n"},
	{"[targets]\ninclude = unit:\n",
	 "F:2: targets.include: bad value \"unit:\", expected unit:NAME of a systemd unit\n"},
	{"[targets]\ninclude = container:a/b\n",
	 "F:2: targets.include: bad value \"container:a/b\", expected container:ID or container:NAME\n"},
	{"[targets]\ninclude = pid:0\n",
	 "F:2: targets.include: bad value \"pid:0\", expected pid:NUMBER from 1 to 4194304\n"},
	{"[targets]\ninclude = pid:12x\n",
	 "F:2: targets.include: bad value \"pid:12x\", expected pid:NUMBER from 1 to 4194304\n"},
	{"[targets]\nexclude = cgroup:../x\n", "F:2: targets.exclude: bad value \"cgroup:../x\", expected cgroup:PATH "
					       "below the hierarchy's root, without ..\n"},
	{"[targets]\nexclude = exe:bin/sh\n",
	 "F:2: targets.exclude: bad value \"exe:bin/sh\", expected exe:NAME or exe:/ABSOLUTE/PATH\n"},
	{"[targets]\nexclude = user:a;b\n",
	 "F:2: targets.exclude: bad value \"user:a;b\", expected user:NAME or user:NUMBER\n"},
	{"[targets]\ncgroup = /x\n", "F:2: targets.cgroup: unknown key, expected one of include, exclude\n"},
	{"[exporter]\n", "F:1: [exporter ]: bad name, expected [exporter NAME] with letters, digits, - and _\n"},
	{"[exporter a b]\n", "F:1: [exporter a b]: bad name, expected [exporter NAME] with letters, digits, - and _\n"},
	{"\n[exporter a]\n", "F:2: exporter a.endpoint: missing, expected http://HOST:PORT or file:///DIR\n"},
	{EXPORTER "[exporter a]\n", "F:3: [exporter a]: this section is there twice, first in line 1\n"},
	{"[exporter a]\nendpoint = gopher://h\n", "F:2: exporter a.endpoint: bad value \"gopher://h\", expected "
						  "http://HOST[:PORT][/PATH], https://..., HOST:PORT for gRPC, or file:///DIR\n"},
	{"[exporter a]\ntimeout = 5s\nendpoint = http://h:99999\n",
	 "F:3: exporter a.endpoint: bad value \"http://h:99999\", expected "
	 "http://HOST[:PORT][/PATH], https://..., HOST:PORT for gRPC, or file:///DIR\n"},
	{"[exporter a]\n\nendpoint = http://[::1\n",
	 "F:3: exporter a.endpoint: bad value \"http://[::1\", expected "
	 "http://HOST[:PORT][/PATH], https://..., HOST:PORT for gRPC, or file:///DIR\n"},
	{"[exporter a]\nendpoint = file://relative\n", "F:2: exporter a.endpoint: bad value \"file://relative\", "
						       "expected http://HOST[:PORT][/PATH], https://..., HOST:PORT for gRPC, or file:///DIR\n"},
	{EXPORTER "protocol = udp\n", "F:3: exporter a.protocol: bad value \"udp\", expected http or grpc\n"},
	{"[exporter a]\nprotocol = grpc\nendpoint = http://h/v1development/profiles\n",
	 "F:1: exporter a: bad URL for gRPC, expected http://HOST[:PORT] or https://..., without a path\n"},
	{"[exporter a]\nendpoint = h:4317\n", "F:1: exporter a: no transport for this endpoint and protocol, expected "
					       "http://, https:// or file:///DIR\n"},
	{EXPORTER "compression = lz4\n", "F:3: exporter a.compression: bad value \"lz4\", expected gzip, zstd or none\n"},
	{EXPORTER "headers = no colon\n", "F:3: exporter a.headers: bad value, expected one \"Name: value\"; "
					  "give the key again for the next\n"},
	{EXPORTER "tls_cert_file = /c\n", "F:1: exporter a.tls_key_file: missing, expected both or neither of "
					  "tls_cert_file and tls_key_file\n"},
	{EXPORTER "tls_ca_file = ca.pem\n", "F:3: exporter a.tls_ca_file: bad value \"ca.pem\", expected an absolute path\n"},
	{EXPORTER "interval = 7s\n", "F:1: exporter a.interval: no multiple of profile.interval, expected one\n"},
	{"[exporter a]\nendpoint = file:///d\nmetrics = yes\n",
	 "F:1: exporter a.metrics: they are not written as files, expected an endpoint of http:// or https://\n"},
	{EXPORTER "endpoint_is_full = yes\nmetrics = yes\n",
	 "F:1: exporter a: metrics: the endpoint does not say where to, expected metrics_endpoint\n"},
	{EXPORTER "profile = jaeger\n", "F:3: exporter a.profile: bad value \"jaeger\", expected otlp, pyroscope or minimal\n"},
	{EXPORTER "retry_initial = 60s\n", "F:1: exporter a.retry_initial: above retry_max, expected it at or below\n"},
	{EXPORTER "timout = 5s\n", "F:3: exporter a.timout: unknown key, expected one of [exporter], did you mean timeout?\n"},
	{"[metrics]\nlisten = 0.0.0.0:9464\n", "F:2: metrics.listen: bad value \"0.0.0.0:9464\", expected a loopback "
					       "address with a port, such as 127.0.0.1:9464\n"},
	{"[metrics]\nlisten = localhost:99999\n", "F:2: metrics.listen: bad value \"localhost:99999\", expected a "
						  "loopback address with a port, such as 127.0.0.1:9464\n"},
	{"[limits]\ncpu_percent = 2%\n",
	 "F:2: limits.cpu_percent: bad value \"2%\", expected a percentage from 0 to 100, such as 2 or 0.5\n"},
	{"[limits]\nmemory = 1M\n", "F:2: limits.memory: bad value \"1M\", expected a size from 16M to 1024G, such as 64K "
				    "or 4M\n"},
	{"[debuginfod]\nurls = debuginfod.example.org\n",
	 "F:2: debuginfod.urls: bad value \"debuginfod.example.org\", expected " URLS "\n"},
	{"[debuginfod]\nurls = file:///etc\n", "F:2: debuginfod.urls: bad value \"file:///etc\", expected " URLS "\n"},
	{"[debuginfod]\nurls = http://\n", "F:2: debuginfod.urls: bad value \"http://\", expected " URLS "\n"},
	{"[debuginfod]\nurls = https://h off\n", "F:2: debuginfod.urls: bad value \"https://h off\", expected " URLS "\n"},
	{"[debuginfod]\nurls = https://user:pass@h\n",
	 "F:2: debuginfod.urls: bad value, expected no user and password in a URL\n"},
	{"[debuginfod]\nurls = http://1 http://2 http://3 http://4 http://5 http://6 http://7 http://8 http://9\n",
	 "F:2: debuginfod.urls: bad value \"http://1 http://2 http://3 http://4 http://5 http://6 http://7 http://8 "
	 "http://9\", expected " URLS "\n"},
	{"[debuginfod]\ntimeout = 0s\n", "F:2: debuginfod.timeout: bad value \"0s\", expected a time from 1s to 3600s "
					 "with its unit, such as 500ms, 5s or 2m\n"},
	{"[debuginfod]\nmax_file_bytes = 8G\n", "F:2: debuginfod.max_file_bytes: bad value \"8G\", expected a size from "
						"64K to 4G, such as 64K or 4M\n"},
	{"[debuginfod]\ncache_bytes = 0\n", "F:2: debuginfod.cache_bytes: bad value \"0\", expected a size from 1M to "
					    "1024G, such as 64K or 4M\n"},
	{"[debuginfod]\nrequests_per_minute = 0\n",
	 "F:2: debuginfod.requests_per_minute: bad value \"0\", expected a number from 1 to 600\n"},
	{"[daemon]\nruntime_dir = run\n", "F:2: daemon.runtime_dir: bad value \"run\", expected an absolute path\n"},
	{"[daemon]\nnet_user = a b\n", "F:2: daemon.net_user: bad value \"a b\", expected a user name\n"},
	{"[daemon]\nnet_user = u\nengine_user = u\n", "F:2: daemon.net_user: the same as engine_user, expected two users\n"},
	{"[daemon]\nlog_level = loud\n",
	 "F:2: daemon.log_level: bad value \"loud\", expected error, warn, notice, info or debug\n"},
	{"[resource]\nbad key = x\n", "F:2: resource.bad key: bad attribute, expected a name of letters, digits, '.', "
				      "'_', '-', '/' and a value\n"},
	{"[resource]\na = x\na = y\n", "F:3: resource.a: given twice\n"},
	{"[sampler]\nmode = \001\n", "F:2: bytes that are no text, expected UTF-8 without control characters\n"},
	{"[resource]\na = \xc3\x28\n", "F:2: bytes that are no text, expected UTF-8 without control characters\n"},
	{"[resource]\na = \xed\xa0\x80\n", "F:2: bytes that are no text, expected UTF-8 without control characters\n"},
	/* A key where it does not belong, and one that is half right. */
	{"[sampler]\ninterval = 5s\n",
	 "F:2: sampler.interval: unknown key, expected one of [sampler], did you mean interval in [profile]?\n"},
	{"[sampler]\nstack = 4K\n", "F:2: sampler.stack: unknown key, expected one of [sampler], did you mean stack_bytes?\n"},
	{"[Sampler]\n", "F:1: [Sampler]: unknown section, expected " SECTIONS ", did you mean [sampler]?\n"},
	{"[sampler]\nFrequency_Hz = 5\n",
	 "F:2: sampler.Frequency_Hz: unknown key, expected one of [sampler], did you mean frequency_hz?\n"},
	/* Units. */
	{"[profile]\ninterval = 5 s\n", "F:2: profile.interval: bad value \"5 s\", expected a time from 100ms to 3600s with "
					"its unit, such as 500ms, 5s or 2m\n"},
	{"[profile]\ninterval = 99999999999999999h\n", "F:2: profile.interval: bad value \"99999999999999999h\", expected a "
						       "time from 100ms to 3600s with its unit, such as 500ms, 5s or 2m\n"},
	{"[profile]\nrequest_max_size = 1.5M\n", "F:2: profile.request_max_size: bad value \"1.5M\", expected a size from "
						 "64K to 64M, such as 64K or 4M\n"},
	{"[profile]\nrequest_max_size = 4m\n", "F:2: profile.request_max_size: bad value \"4m\", expected a size from 64K "
					       "to 64M, such as 64K or 4M\n"},
	{EXPORTER "timeout = 5000\n", "F:3: exporter a.timeout: bad value \"5000\", expected a time from 100ms to 600s with "
				     "its unit, such as 500ms, 5s or 2m\n"},
	{EXPORTER "queue_size = -1\n", "F:3: exporter a.queue_size: bad value \"-1\", expected a size from 64K to 4G, such "
				      "as 64K or 4M\n"},
	{EXPORTER "keep_files = many\n",
	 "F:3: exporter a.keep_files: bad value \"many\", expected a number from 0 to 100000000\n"},
	{EXPORTER "tls_insecure = 2\n", "F:3: exporter a.tls_insecure: bad value \"2\", expected yes or no\n"},
	{EXPORTER "endpoint = http://h\n", "F:3: exporter a.endpoint: given twice, first in line 2\n"},
	{"[exporter a]\nendpoint = http://user:pass@h\n",
	 "F:2: exporter a.endpoint: bad value, expected no user and password in it; authenticate by a header of headers_file\n"},
	{"[exporter a]\nendpoint = http://h\nheaders_file = token\n",
	 "F:3: exporter a.headers_file: bad value \"token\", expected an absolute path\n"},
	{"[limits]\ncpu_percent = 101\n",
	 "F:2: limits.cpu_percent: bad value \"101\", expected a percentage from 0 to 100, such as 2 or 0.5\n"},
	{"[limits]\ncpu_percent = 1.\n",
	 "F:2: limits.cpu_percent: bad value \"1.\", expected a percentage from 0 to 100, such as 2 or 0.5\n"},
	{"[limits]\ncpu_percent = 1.2345\n",
	 "F:2: limits.cpu_percent: bad value \"1.2345\", expected a percentage from 0 to 100, such as 2 or 0.5\n"},
	{"[daemon]\nprocesses_max = 1\n",
	 "F:2: daemon.processes_max: bad value \"1\", expected a number from 256 to 1048576\n"},
	{"[daemon]\nruntime_dir = /run/../etc\n",
	 "F:2: daemon.runtime_dir: bad value \"/run/../etc\", expected an absolute path\n"},
	{"[daemon]\nruntime_dir = /" HUNDRED "\n",
	 "F:2: daemon.runtime_dir: bad value \"/" HUNDRED "\", expected a path of at most 95 bytes\n"},
	{"[sampler]\nfrequency_hz = 20  # a second\n", "F:2: sampler.frequency_hz: bad value \"20  # a second\", expected a "
	 "number from 1 to 10000, and no comment behind it\n"},
	{"[targets]\ninclude = unit:a ; not b\n", "F:2: targets.include: bad value \"unit:a ; not b\", expected unit:NAME, "
	 "container:ID, cgroup:PATH, exe:NAME, user:NAME or pid:NUMBER, separated by spaces, and no comment behind it\n"},
	{"[symbols]\ncache_dir = /var/x # big\n", "F:2: symbols.cache_dir: bad value \"/var/x # big\", expected an absolute "
	 "path, and no comment behind it\n"},
	{"key without a section\n", "F:1: expected [SECTION], \"key = value\" or a comment\n"},
	{"\x7f" "ELF\x02\x01\x01\n", "F:1: bytes that are no text, expected UTF-8 without control characters\n"},
	{"[resource]\na = caf\xe9\n", "F:2: bytes that are no text, expected UTF-8 without control characters\n"},
	{"[resource]\na = \xff\xfe\n", "F:2: bytes that are no text, expected UTF-8 without control characters\n"},
	{"[hub]\nlisten = hub.example:4380\n", "F:2: hub.listen: bad value \"hub.example:4380\", expected an address with a "
						"port, such as 127.0.0.1:4380, or unix:/ABSOLUTE/PATH\n"},
	{"[hub]\nlisten = 127.0.0.1\n", "F:2: hub.listen: bad value \"127.0.0.1\", expected an address with a port, such as "
					 "127.0.0.1:4380, or unix:/ABSOLUTE/PATH\n"},
	{"[hub]\nlisten = unix:hub.sock\n", "F:2: hub.listen: bad value \"unix:hub.sock\", expected an address with a port, "
					     "such as 127.0.0.1:4380, or unix:/ABSOLUTE/PATH\n"},
	{"[hub]\nlisten = 10.0.0.1:4380\n",
	 "F:2: hub.listen: not on this host alone, expected tls_cert_file and tls_key_file with it\n"},
	{"[hub]\nlisten = [::]:4380\ntls_cert_file = /a\ntls_key_file = /b\ntoken = no\n",
	 "F:2: hub.listen: not on this host alone, expected token = yes with it\n"},
	{"[hub]\nlisten = 127.0.0.1:1\ntls_key_file = /b\n",
	 "F:2: hub.tls_cert_file: missing, expected both or neither of tls_cert_file and tls_key_file\n"},
	{"[hub]\nlisten = unix:/run/a\ntls_cert_file = /a\ntls_key_file = /b\n",
	 "F:2: hub.tls_cert_file: listen is a UNIX socket, expected no TLS with it\n"},
	{"[hub]\nlisten = 127.0.0.1:1\nnames = a:1\n",
	 "F:3: hub.names: bad value \"a:1\", expected names of hosts without ports, separated by spaces\n"},
	{"[sampler]\nmode = none\n", "F:2: sampler.mode: none without a hub does nothing, expected listen in [hub]\n"},
	/* Several at once: each is said. */
	{"[sampler]\nmode = x\nfoo = 1\n", "F:2: sampler.mode: bad value \"x\", expected auto, bpf, kmod, perf or none\n"
					   "F:3: sampler.foo: unknown key, expected one of mode, "
					   "frequency_hz, ring_size, sideband_size, stack_bytes, stack_max_bytes, "
					   "stack_rate, kernel_threads, hardware_events, events, cpus\n"},
};

START_TEST(wrong_file_is_refused_in_words)
{
	struct config *c = (void *)1;

	ck_assert_int_eq(parse(wrong[_i].text, &c), -EINVAL);
	ck_assert_str_eq(errors, wrong[_i].errors);
	ck_assert_ptr_eq(c, (void *)1);
}
END_TEST

START_TEST(only_a_program_with_transports_checks_urls)
{
	const char *text = "[exporter a]\nendpoint = http://h:99999\n";
	struct config *c;

	ck_assert_int_eq(parse(text, &c), -EINVAL);
	config_transports = NULL;
	ck_assert_int_eq(parse(text, &c), 0);
	ck_assert_str_eq(c->exporters[0].endpoint, "http://h:99999");
	config_free(c);
	config_check_transports();
}
END_TEST

START_TEST(long_line_is_refused)
{
	char text[6000] = "[resource]\na = ";
	struct config *c;

	memset(text + strlen(text), 'x', 5000);
	ck_assert_int_eq(parse(text, &c), -EINVAL);
	ck_assert_str_eq(errors, "F:2: line too long, expected at most 4093 bytes\n");
}
END_TEST

START_TEST(value_of_a_thousand_bytes_is_taken_whole)
{
	char text[2000] = "[exporter a]\nendpoint = http://h\nheaders = Authorization: ";
	struct config *c;
	size_t n = strlen(text);

	memset(text + n, 'x', 1200);
	c = parse_good(text);
	ck_assert_uint_eq(strlen(c->exporters[0].headers[0]), strlen("Authorization: ") + 1200);
	config_free(c);
}
END_TEST

START_TEST(nul_byte_is_no_end)
{
	static const char text[] = "[sampler]\nmode = bpf\0frequency_hz = 7\n";
	struct config *c;

	errors[0] = '\0';
	ck_assert_int_eq(config_parse("F", text, sizeof(text) - 1, on_error, NULL, &c), -EINVAL);
	ck_assert_str_eq(errors, "F:2: bytes that are no text, expected UTF-8 without control characters\n");
}
END_TEST

START_TEST(errors_end_when_they_are_noise)
{
	char text[4000] = "[sampler]\n";
	struct config *c;
	int lines = 0;

	for (int i = 0; i < 100; i++)
		strcat(text, "nothing\n");
	ck_assert_int_eq(parse(text, &c), -EINVAL);
	for (const char *s = errors; *s; s++)
		lines += *s == '\n';
	ck_assert_int_eq(lines, 20);
}
END_TEST

START_TEST(empty_file_is_the_defaults)
{
	struct config *c = parse_good("");

	ck_assert_int_eq(c->mode, SAMPLER_AUTO);
	ck_assert_uint_eq(c->frequency_hz, 19);
	ck_assert_uint_eq(c->stack_bytes, 131072);
	ck_assert_uint_eq(c->interval_ns, 5 * NSEC_PER_SEC);
	ck_assert(c->kernel_threads);
	ck_assert_uint_eq(c->nr_exporters, 1);
	ck_assert(c->exporter_is_default);
	ck_assert_str_eq(c->exporters[0].endpoint, "http://127.0.0.1:4318");
	ck_assert_ptr_null(c->debuginfod.urls);
	ck_assert_ptr_null(c->hub_listen);
	ck_assert(!c->hub_selection && !c->hub_names && !c->hub_tls_cert);
	ck_assert(c->hub_token && !c->hub_receive);
	ck_assert_str_eq(c->runtime_dir, "/run/otprof");
	config_free(c);
}
END_TEST

static const char all_keys[] = "[sampler]\n"
			       "  mode = bpf\n"
			       "\tfrequency_hz = 97\n"
			       "ring_size = 8M\nsideband_size = 64K\nstack_bytes = 2K\nstack_max_bytes = 64K\n"
			       "stack_rate = 1G\nkernel_threads = no\nhardware_events = on\nevents = page-faults/period=100/, cpu-clock\ncpus = 0-3,8\n"
			       "# a comment\n; another\n"
			       "[profile]\ninterval = 1500ms\nsample_attributes = process.pid thread.name\n"
			       "request_max_size = 1M\n"
			       "[targets]\ninclude = cgroup:/a.slice pid:55\ninclude = cgroup:b\nexclude = pid:7\n"
			       "include = unit:nginx container:0123ab exe:/usr/bin/* user:www-data\nexclude = unit:a@*.service\n"
			       "[exporter one]\nendpoint = https://h:1/p\nprotocol = http/protobuf\n"
			       "compression = none\nprofile = pyroscope\ninterval = 4500ms\nmetrics = yes\nmetrics_endpoint = https://h:2/v1/metrics\n"
			       "headers = Authorization: Basic x;y # z\nheaders = X-B: c\ntls_ca_file = /ca\n"
			       "tls_cert_file = /c\ntls_key_file = /k\ntls_insecure = yes\ntimeout = 2s\n"
			       "retry_initial = 1s\nretry_max = 2s\nretry_max_elapsed = 10s\nqueue_size = 1M\nspool = 1G\nspool_age = 2h\n"
			       "[exporter two]\nendpoint = file:///d\nkeep_files = 12\n"
			       "[exporter three]\nendpoint = collector:4317\nprotocol = grpc\n"
			       "[resource]\ndeployment.environment.name = a test\n"
			       "[metrics]\nlisten = 127.0.0.1:9464\ninterval = 10s\n"
			       "[hub]\nlisten = localhost:4380\ntoken = no\nreceive = yes\nreceive_max_size = 1M\nmax_slots = 3\n"
			       "slot_ttl_seconds = 60\nslot_max_bytes = 1M\ncleanup_interval_seconds = 2\n"
			       "[limits]\ncpu_percent = 0.25\nmemory = 64M\n"
			       "[runtimes]\ncreators = no\n"
			       "[debuginfod]\nurls = https://one, http://two:8002/x\ntimeout = 30s\nmax_file_bytes = 1M\n"
			       "cache_bytes = 2M\nretry_after = 1h\nrequests_per_minute = 7\n"
			       "[daemon]\nruntime_dir = /r\nspool_dir = /s\nengine_user = e\nnet_user = n\nhub_user = h\nprocesses_max = 1000\n"
			       "log_level = debug\n";

START_TEST(every_key_arrives)
{
	struct config *c = parse_good(all_keys);
	const struct export_config *e = &c->exporters[0];

	ck_assert_int_eq(c->mode, SAMPLER_BPF);
	ck_assert_uint_eq(c->frequency_hz, 97);
	ck_assert_uint_eq(c->ring_bytes, 8 << 20);
	ck_assert_uint_eq(c->sideband_bytes, 64 << 10);
	ck_assert_uint_eq(c->stack_rate_bytes, 1ULL << 30);
	ck_assert(!c->kernel_threads && c->hardware);
	ck_assert(!c->events.no_clock && c->events.count == 1 && c->events.event[0].period == 100);
	ck_assert_str_eq(c->cpus, "0-3,8");
	ck_assert_uint_eq(c->interval_ns, 1500 * NSEC_PER_MSEC);
	ck_assert(!c->runtimes_creators);
	ck_assert_uint_eq(c->sample_attributes, 1u << SAMPLE_ATTRIBUTE_PID | 1u << SAMPLE_ATTRIBUTE_THREAD_NAME);
	ck_assert_uint_eq(c->nr_targets, 9);
	ck_assert_int_eq(c->targets[1].kind, TARGET_PID);
	ck_assert_uint_eq(c->targets[1].pid, 55);
	ck_assert_str_eq(c->targets[2].text, "b");
	ck_assert_int_eq(c->targets[4].kind, TARGET_UNIT);
	ck_assert_str_eq(c->targets[4].text, "nginx.service");
	ck_assert_int_eq(c->targets[5].kind, TARGET_CONTAINER);
	ck_assert_int_eq(c->targets[6].kind, TARGET_EXE);
	ck_assert_str_eq(c->targets[7].text, "www-data");
	ck_assert_str_eq(c->targets[8].text, "a@*.service");
	ck_assert(c->targets[3].exclude);
	ck_assert_uint_eq(c->nr_exporters, 3);
	ck_assert_int_eq(e->protocol, EXPORT_PROTOCOL_HTTP);
	ck_assert_int_eq(c->exporters[2].protocol, EXPORT_PROTOCOL_GRPC);
	ck_assert_str_eq(c->exporters[2].endpoint, "https://collector:4317");
	ck_assert(e->compression == EXPORT_CODING_NONE && e->tls_insecure);
	ck_assert_int_eq(e->preset, EXPORT_PRESET_PYROSCOPE);
	ck_assert(e->metrics && !strcmp(e->metrics_endpoint, "https://h:2/v1/metrics"));
	ck_assert_uint_eq(c->metrics_interval_ns, 10 * NSEC_PER_SEC);
	ck_assert_uint_eq(e->interval_ns, 4500 * NSEC_PER_MSEC);
	ck_assert_uint_eq(e->engine_interval_ns, c->interval_ns);
	ck_assert_int_eq(c->exporters[1].preset, EXPORT_PRESET_OTLP);
	ck_assert_uint_eq(c->exporters[1].interval_ns, 0);
	ck_assert_uint_eq(e->nr_headers, 2);
	ck_assert_str_eq(e->headers[0], "Authorization: Basic x;y # z");
	ck_assert_uint_eq(e->retry_elapsed_ns, 10 * NSEC_PER_SEC);
	ck_assert_uint_eq(c->exporters[1].file_keep, 12);
	ck_assert_str_eq(c->resources[0].value, "a test");
	ck_assert_str_eq(c->metrics_listen, "127.0.0.1:9464");
	ck_assert_str_eq(c->hub_listen, "localhost:4380");
	ck_assert(!c->hub_token && c->hub_receive);
	ck_assert_uint_eq(c->hub_receive_bytes, 1 << 20);
	ck_assert_uint_eq(c->hub.max_slots, 3);
	ck_assert_uint_eq(c->hub.slot_ttl_seconds, 60);
	ck_assert_uint_eq(c->hub.slot_max_bytes, 1 << 20);
	ck_assert_uint_eq(c->hub.cleanup_interval_seconds, 2);
	ck_assert_str_eq(c->hub_user, "h");
	ck_assert_uint_eq(c->cpu_percent_milli, 250);
	ck_assert_uint_eq(c->memory_limit_bytes, 64 << 20);
	ck_assert_str_eq(c->debuginfod.urls, "https://one http://two:8002/x");
	ck_assert_uint_eq(c->debuginfod.timeout_ns, 30 * NSEC_PER_SEC);
	ck_assert_uint_eq(c->debuginfod.file_bytes, 1 << 20);
	ck_assert_uint_eq(c->debuginfod.cache_bytes, 2 << 20);
	ck_assert_uint_eq(c->debuginfod.retry_after_ns, 3600 * NSEC_PER_SEC);
	ck_assert_uint_eq(c->debuginfod.requests_per_minute, 7);
	ck_assert_uint_eq(c->log_level, LOG_LEVEL_DEBUG);
	config_free(c);
}
END_TEST

static char *print(const struct config *c)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ck_assert_int_eq(config_print(c, f), 0);
	fclose(f);
	return text;
}

static const char *const good[] = {"", all_keys, "[sampler]\nring_size = auto\n[profile]\nsample_attributes = none\n",
				   "[debuginfod]\nurls = off\n"};

START_TEST(printed_configuration_parses_to_the_same)
{
	struct config *c = parse_good(good[_i]);
	char *one = print(c), *two;

	config_free(c);
	c = parse_good(one);
	two = print(c);
	ck_assert_str_eq(one, two);
	config_free(c);
	free(one);
	free(two);
}
END_TEST

START_TEST(protocol_is_printed_beside_compression)
{
	struct config *c = parse_good(all_keys);
	char *text = print(c);

	ck_assert_ptr_nonnull(strstr(text, "\nprotocol = http\ncompression = none\n"));
	free(text);
	config_free(c);
}
END_TEST

/* Those at offset 0 fill a list and have no field. */
START_TEST(no_two_keys_share_a_field)
{
	for (size_t i = 0; i < config_keys_nr; i++)
		for (size_t j = 0; j < i; j++)
			ck_assert_msg(!config_keys[i].offset || config_keys[i].offset != config_keys[j].offset ||
					      (config_keys[i].section == SECTION_EXPORTER) !=
						      (config_keys[j].section == SECTION_EXPORTER),
				      "%s and %s", config_keys[i].name, config_keys[j].name);
}
END_TEST

Suite *config_suite(void)
{
	Suite *s = suite_create("config");
	TCase *t = tcase_create("file");

	tcase_add_loop_test(t, wrong_file_is_refused_in_words, 0, ARRAY_SIZE(wrong));
	tcase_add_test(t, only_a_program_with_transports_checks_urls);
	tcase_add_test(t, long_line_is_refused);
	tcase_add_test(t, value_of_a_thousand_bytes_is_taken_whole);
	tcase_add_test(t, nul_byte_is_no_end);
	tcase_add_test(t, errors_end_when_they_are_noise);
	tcase_add_test(t, empty_file_is_the_defaults);
	tcase_add_test(t, every_key_arrives);
	tcase_add_loop_test(t, printed_configuration_parses_to_the_same, 0, ARRAY_SIZE(good));
	tcase_add_test(t, protocol_is_printed_beside_compression);
	tcase_add_test(t, no_two_keys_share_a_field);
	suite_add_tcase(s, t);
	return s;
}
