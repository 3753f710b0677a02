/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Destinations: queues of encoded requests, sent by HTTP or gRPC, or written as
 * files.
 *
 * Called by the net process, one thread, from its event loop. Each
 * destination has its own bounded queue; a request's bytes are shared by all
 * queues that hold it. Never blocks: HTTP and gRPC run on libcurl's multi interface,
 * files are written in one go.
 * Every request ends, per destination, as exported, unconfirmed or lost by a
 * reason, and is counted so in the ledger before the next call returns:
 *
 * - The status of the answer decides: 2xx, or OK of gRPC, is exported, whatever its body.
 * - A body that refuses all profiles of the request makes it lost (rejected);
 *   one that refuses some makes all of it unconfirmed: the body contains only
 *   their number, so that a split into samples would be invented.
 * - A refusal of the first request in zstd that may be one of its coding (HTTP
 *   400 and 415, UNIMPLEMENTED of gRPC) is none of the request: it is sent again
 *   in gzip, and so is every later one, until the configuration changes.
 * - 429, 502, 503, 504, the codes of gRPC that OTLP lists (grpc.h) and every
 *   failure of the connection are tried again; other refusals are lost
 *   (too_large for 413, else rejected).
 * - A try that failed after the last byte was sent may have been delivered, and
 *   so may one that gRPC ended as DEADLINE_EXCEEDED or CANCELLED, or without a
 *   status. A request that had such a try, and in the end no success, is
 *   unconfirmed.
 * - Requests are sent in order, one at a time. The wait between tries belongs
 *   to the destination; its requests are dropped (retry_expired) by age.
 * - A full queue drops its oldest request that is not being sent: if data must
 *   be lost, recent data is worth more.
 * - With a spool, requests that wait for a destination that fails go to disk,
 *   and so do all that wait where they fill half of the queue. They are sent in
 *   their order when the destination is back, while new ones overtake them.
 */
#ifndef OTP_EXPORT_EXPORT_H
#define OTP_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ledger.h"

#define EXPORT_NAME_MAX    64
#define EXPORT_HEADERS_MAX 16
#define EXPORT_FILE_SCHEME "file://"

/* Where spools are, and the origins that samples have by slot; see spool.h. */
struct export_spool {
	int dir; /* an open directory; -1: none */
	uint8_t origins[OTP_ORIGINS_MAX]; /* enum otp_origin of each slot, SPOOL_NO_ORIGIN of one that is not in use */
};

/* How requests travel to an http:// or https:// endpoint; a file:// endpoint has no protocol. */
enum export_protocol { EXPORT_PROTOCOL_HTTP, EXPORT_PROTOCOL_GRPC };

/*
 * Which attributes of resources and samples a destination gets (preset.h).
 *   X(NAME, "name")
 */
#define EXPORT_PRESETS(X)          \
	X(OTLP, "otlp")            \
	X(PYROSCOPE, "pyroscope")  \
	X(MINIMAL, "minimal")

enum export_preset {
#define X(NAME, name) EXPORT_PRESET_##NAME,
	EXPORT_PRESETS(X)
#undef X
};

/*
 * How a body is compressed.
 *   X(NAME, "name")  name: of the key's value, and of the coding in HTTP and gRPC
 */
#define EXPORT_CODINGS(X) \
	X(NONE, "none")   \
	X(GZIP, "gzip")   \
	X(ZSTD, "zstd")

enum export_coding {
#define X(NAME, name) EXPORT_CODING_##NAME,
	EXPORT_CODINGS(X)
#undef X
	EXPORT_CODING_NR
};

extern const char *const export_coding_names[EXPORT_CODING_NR];

enum export_signal { EXPORT_SIGNAL_PROFILES, EXPORT_SIGNAL_METRICS };

struct export_config {
	char name[EXPORT_NAME_MAX];
	/* http://, https:// (HTTP: path v1development/profiles is appended to a base URL; gRPC: no path) or file:///DIR */
	char *endpoint;
	enum export_protocol protocol;
	enum export_preset preset;
	uint64_t interval_ns; /* of its requests: a multiple of the engine's; 0: the engine's */
	uint64_t engine_interval_ns; /* of the requests that are submitted */
	enum export_coding compression; /* default gzip */
	bool endpoint_is_full; /* HTTP: use the URL as it is */
	char *headers[EXPORT_HEADERS_MAX]; /* "Name: value" */
	uint32_t nr_headers;
	uint32_t nr_headers_file; /* the last of them: from headers_file */
	uint32_t nr_headers_env;  /* those before them: from the environment */
	char *headers_file;
	char *tls_ca, *tls_cert, *tls_key; /* paths, NULL: system's */
	bool tls_insecure;
	uint64_t timeout_ns;       /* 5 s */
	uint64_t retry_initial_ns; /* 5 s */
	uint64_t retry_max_ns;     /* 30 s */
	uint64_t retry_elapsed_ns; /* 300 s */
	uint64_t queue_bytes;      /* 32 MiB: memory a destination may hold */
	uint64_t spool_bytes;      /* 0: nothing is written to disk */
	uint64_t spool_age_ns;     /* 24 h; with a spool, in place of retry_elapsed_ns */
	const struct export_spool *spool; /* borrowed; NULL: there is no directory */
	uint32_t file_keep;        /* file://: newest files kept, 0: all */
	bool metrics; /* false; true: otprof's own metrics go there, too */
	char *metrics_endpoint; /* NULL: the endpoint, with the path of metrics; over HTTP the whole URL */
	enum export_signal signal; /* of a transport: which path it sends to */
	int file_dir; /* file://: the open directory, where the process cannot open it by its path; 0: none */
};

/* OTLP: a larger request must not be sent. */
#define EXPORT_REQUEST_MAX (64u << 20)

/*
 * One encoded request, shared by the queues. It exists in up to one form for
 * each coding, each with its own reference count: where every destination
 * compresses, only the compressed bytes stay in memory during an outage.
 */
struct export_form {
	uint32_t refs; /* users of data */
	size_t len;
	void *data; /* NULL: not in this form. Uncompressed: mapped from the engine's memfd, read-only */
};

struct export_request {
	uint64_t id;
	struct ledger_counts samples;
	uint64_t profiles; /* Profile messages in it */
	struct export_form form[EXPORT_CODING_NR];
};
/*
 * Maps len bytes of fd (taken over; its seals are checked). -EBADMSG if it is
 * not a sealed memfd of that size, -EFBIG above EXPORT_REQUEST_MAX.
 */
int export_request_new(int fd, uint64_t id, const struct ledger_counts *samples, size_t len, struct export_request **ret);
struct export_request *export_request_put(struct export_request *r); /* NULL */

/* -EINVAL: why contains what is wrong with the endpoint, a header or a time. For the configuration's checks. */
#define EXPORT_WHY 160
int export_config_check(const struct export_config *c, char why[EXPORT_WHY]);
/* The directory of this host that a destination writes into, borrowed from c; NULL: it is reached over the network. */
const char *export_directory(const struct export_config *c);

/*
 * Events for the operator. Texts are one printable line, borrowed for the call.
 * FAILING and BACK are reported once per change of state.
 */
enum export_event {
	EXPORT_FAILING,  /* tries fail, requests wait; text: the error */
	EXPORT_BACK,     /* requests are delivered again */
	EXPORT_REFUSED,  /* a request was refused for good; text: by what */
	EXPORT_PARTIAL,  /* part of a request was refused; text: the server's message */
	EXPORT_REMARK,   /* delivered, but the answer contains a message or cannot be read */
	EXPORT_DROPPED,  /* dropped: queue full, retries over or stop; text: which */
	EXPORT_METRICS_FAILING, /* otprof's own metrics are not delivered; text: the error */
	EXPORT_METRICS_BACK,    /* they are again */
	EXPORT_CODING_REFUSED, /* it does not take zstd: gzip from now on; text: its answer */
	EXPORT_REMOVED,  /* the destination was removed; text: what became of its samples */
	EXPORT_RESTORED, /* its spool has requests of an earlier process; text: how many, and how many were torn */
	EXPORT_SPOOL_FAILING, /* its spool cannot be used, requests wait in memory; text: the error */
	EXPORT_SPOOL_BACK,    /* its spool can be used again */
	EXPORT_EVENTS,   /* number of events */
};
typedef void export_event_fn(void *ctx, const char *destination, enum export_event event, const char *text,
			     uint64_t samples);

struct exporter;
/* ledger: the net page's private copy, borrowed; changed() is called after every change to it. */
int exporter_new(const struct export_config *cfgs, uint32_t n, struct ledger_net *ledger,
		 void (*changed)(void *ctx), void *ctx, struct exporter **ret);
struct exporter *exporter_free(struct exporter *e); /* NULL */
/*
 * Changes the destinations. A destination whose name stays keeps its queue and
 * its counts; one that is removed has five seconds to deliver its queue, then
 * the rest is lost (shutdown). Until exporter_reloading returns 0, nothing is
 * changed, and both cfgs and the former ones must stay allocated. In the ledger
 * a destination is identified by its name, and its "earlier" counts what net had
 * received before it was added. -errno of exporter_reloading: free the exporter
 * and make a new one.
 */
void exporter_reload(struct exporter *e, const struct export_config *cfgs, uint32_t n);
int exporter_reloading(struct exporter *e); /* 1, 0 or -errno */
/* The caller keeps its reference. Counts received once, and per destination queued or lost. */
void exporter_submit(struct exporter *e, struct export_request *r);
/* Whether any destination gets otprof's own metrics; sends them to those, an encoded request that is copied. */
bool exporter_wants_metrics(const struct exporter *e);
void exporter_send_metrics(struct exporter *e, const void *request, size_t len);
/* The same for a request that could not be mapped: received, and lost for every destination. */
void exporter_refuse(struct exporter *e, uint64_t id, const struct ledger_counts *samples, enum otp_loss_reason reason);

/* Event loop: descriptors to poll, the time to wait, and the work. */
struct pollfd;
int exporter_pollfds(struct exporter *e, struct pollfd *fds, int max);
int exporter_timeout_ms(const struct exporter *e); /* -1: nothing to wait for */
void exporter_run(struct exporter *e);
void exporter_on_event(struct exporter *e, export_event_fn *fn, void *ctx);
bool exporter_idle(const struct exporter *e); /* nothing in flight */
/* Retries at once; requests left at the deadline are lost (shutdown) or unconfirmed. */
void exporter_stop(struct exporter *e, uint64_t deadline_ns);

#endif
