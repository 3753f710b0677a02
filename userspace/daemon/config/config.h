/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: parsed, checked, then never changed. A reload makes a
 * new one. config_print writes the effective configuration as a file that
 * parses to the same; workers receive theirs in this form.
 *
 * Called by main and the monitor at start and on reload, by workers once and
 * on reload. It is read from FILE, then FILE.d/NAME.conf in the order of their
 * names, then the environment: a later value wins, lists add up.
 * Errors: one line each, "FILE:LINE: section.key: what is wrong, what was
 * expected", passed to the error function; no configuration with an error is
 * applied. Secrets are never part of a line. Every string is owned by its struct.
 */
#ifndef OTP_DAEMON_CONFIG_CONFIG_H
#define OTP_DAEMON_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "export/export.h"
#include "hub/limits.h"
#include "kmod/uapi/otprof.h"
#include "process/selection.h"
#include "process/target.h"
#include "source/event_list.h"

#define CONFIG_TARGETS_MAX   64 /* of [targets] */
#define CONFIG_TARGETS_ALL   (CONFIG_TARGETS_MAX + SELECTION_TARGETS_MAX)
#define CONFIG_RESOURCES_MAX 12 /* half of a workload's attributes: its own must fit too */

enum sampler_mode { SAMPLER_AUTO, SAMPLER_BPF, SAMPLER_KMOD, SAMPLER_PERF, SAMPLER_NONE };

struct config_target {
	enum target_kind kind;
	bool exclude;
	bool live; /* of a selection for a while: a process has to match one of these as well */
	uint32_t pid;
	char *text; /* of all but pid: path, name or pattern */
};

struct config_resource { char *key, *value; };

struct config_debuginfod {
	char *urls; /* NULL: off; separated by spaces */
	uint64_t timeout_ns;	 /* 90 s: for one file as a whole, of one server */
	uint64_t file_bytes;	 /* 256 MiB: a larger file is rejected */
	uint64_t cache_bytes;	 /* 1 GiB: of all fetched files */
	uint64_t retry_after_ns; /* 24 h: before a file that could not be fetched is requested again */
	uint32_t requests_per_minute; /* 30 */
};

/*
 * The outermost bytes to copy besides so many innermost ones, where these do not reach the end of
 * the stack: half as many. A multiple of OTP_BASE_UNIT, 0: none.
 */
static inline uint32_t config_base(uint32_t stack_bytes)
{
	uint32_t half = stack_bytes / 2 / OTP_BASE_UNIT * OTP_BASE_UNIT;

	return half < OTP_BASE_LIMIT ? half : OTP_BASE_LIMIT;
}

struct config {
	/* [sampler] */
	enum sampler_mode mode;
	uint32_t frequency_hz;   /* SOURCE_HZ_DEFAULT */
	uint32_t ring_bytes;     /* 0: sized by CPUs and rate */
	uint32_t sideband_bytes; /* per CPU */
	uint32_t stack_bytes;    /* 131072: of a program without a plan or hint */
	uint32_t stack_max_bytes; /* 524288 */
	uint64_t stack_rate_bytes; /* all CPUs together, a second, above the default: 64 MiB */
	bool kernel_threads;     /* true */
	bool hardware;           /* false */
	struct event_list events; /* the CPU clock alone */
	char *cpus;              /* NULL: all */
	/* [profile] */
	uint64_t interval_ns;        /* 5 s */
	uint32_t sample_attributes;  /* bit per enum sample_attribute */
	uint64_t request_max_bytes;  /* 4 MiB */
	/* [targets] */
	struct config_target targets[CONFIG_TARGETS_ALL];
	uint32_t nr_targets;
	/* [exporter NAME] */
	struct export_config exporters[LEDGER_DESTINATIONS_MAX];
	uint32_t nr_exporters;
	bool exporter_is_default; /* no configuration named one */
	/* [resource] */
	struct config_resource resources[CONFIG_RESOURCES_MAX];
	uint32_t nr_resources;
	/* [metrics] */
	char *metrics_listen; /* NULL: off; host:port, loopback */
	uint64_t metrics_interval_ns; /* 60 s: of those that exporters send */
	/* [hub] */
	char *hub_listen; /* NULL: off; host:port or unix:/path */
	char *hub_names;  /* NULL: none; host names besides that of hub_listen, separated by spaces */
	char *hub_tls_cert, *hub_tls_key; /* NULL: plain HTTP */
	bool hub_token;	  /* true: requests need the token in hub.token */
	bool hub_receive; /* false; true: it takes OTLP requests of others */
	uint64_t hub_receive_bytes; /* 16 MiB: of one of them */
	bool hub_selection; /* false; true: by page and API, too, it is chosen what is sampled for a while */
	struct hub_limits hub;
	/* [limits] */
	uint32_t cpu_percent_milli; /* thousandths of a percent of all CPUs together: 2000; 0: no limit */
	uint64_t memory_limit_bytes; /* all processes together; 0: the cgroup's limit, or the budget */
	/* [symbols] */
	bool runtimes_walk;  /* false; true: frames of interpreters are copied and named */
	bool runtimes_creators; /* true: who created a goroutine is its stack's outermost frame */
	bool runtimes_loops; /* false: native frames of their loops are left out */
	bool symbols_inline, symbols_lines; /* true */
	bool symbols_show_clones;	    /* false: foo.cold is foo */
	char *symbols_debug_dirs;	    /* separated by spaces: /usr/lib/debug */
	char *symbols_cache_dir;	    /* /var/lib/otprof/symbols */
	uint64_t symbols_cache_bytes;	    /* 256 MiB; 0: only symbol tables resolve addresses */
	struct config_debuginfod debuginfod; /* [debuginfod] */
	/* [daemon] */
	char *runtime_dir;    /* /run/otprof */
	char *engine_user, *net_user, *hub_user; /* otprof-engine, otprof-net, otprof-hub */
	char *spool_dir;      /* /var/lib/otprof/spool */
	uint32_t processes_max; /* process table */
	uint32_t log_level;
};

/* Where [hub] listen is. */
enum config_address { ADDRESS_BAD, ADDRESS_LOOPBACK, ADDRESS_NETWORK, ADDRESS_UNIX };
enum config_address config_hub_address(const char *listen);
#define CONFIG_UNIX "unix:"
/* Whether requests need a token: a UNIX socket has rights of its own. */
static inline bool config_hub_has_token(const struct config *c)
{
	return c->hub_token && config_hub_address(c->hub_listen) != ADDRESS_UNIX;
}

/*
 * What the transports say of an exporter: whether an endpoint is a URL to them, and whether the whole can be sent to.
 * They stand on a network library. A program that reads the operator's files calls config_check_transports once, at
 * its start; in one that does not, config_transports is NULL: it is given texts that such a program has checked.
 */
struct config_transports {
	bool (*is_url)(const char *endpoint);
	int (*check)(const struct export_config *e, char why[EXPORT_WHY]);
};
extern const struct config_transports *config_transports;
void config_check_transports(void);

typedef void config_error_fn(void *ctx, const char *line);

#define CONFIG_FILE_MAX (1u << 20)
#define CONFIG_SPOOL_MIN (1u << 20)

/* path NULL: defaults and environment only. -EINVAL after at least one error line; -errno if unreadable. */
int config_load(const char *path, config_error_fn *error, void *ctx, struct config **ret);
/* The same, but the file may be missing. */
int config_load_usual(const char *path, config_error_fn *error, void *ctx, struct config **ret);

/* Parses texts as if they were files, a later value wins; reads no environment and no file (workers; tests). */
struct config_text {
	const char *name, *text; /* borrowed, but in struct config_files */
	size_t len;
	bool open; /* other users may read or write the file: secrets are refused */
};
int config_parse_texts(const struct config_text *texts, size_t n, config_error_fn *error, void *ctx, struct config **ret);
int config_parse(const char *name, const char *text, size_t len, config_error_fn *error, void *ctx, struct config **ret);

struct config *config_free(struct config *c); /* NULL */
int config_print(const struct config *c, FILE *to); /* with secrets */
int config_print_shown(const struct config *c, FILE *to); /* for people, and for workers that need none */
/* The number of an endpoint's bytes that everybody may see: a query, which may contain a key, is not among them. */
int config_endpoint_shown(const char *endpoint);

/*
 * A configuration with a selection over it, which narrows [targets] and sets rate and depth. It borrows all but its
 * additional targets from base, which has to outlive it; freed by config_deselect. -EINVAL and what is wrong with the
 * selection, -ENOMEM.
 */
int config_select(const struct config *base, const struct selection *s, char why[SELECTION_WHY], struct config **ret);
struct config *config_deselect(struct config *c); /* NULL */

/*
 * Calls fn for each difference of two configurations: "section.key", or
 * "exporter NAME". Where only a restart could apply it, to keeps from's value,
 * so that to is the configuration that will be in force. -ENOMEM.
 */
typedef void config_change_fn(void *ctx, const char *title, bool restart);
int config_changes(const struct config *from, struct config *to, config_change_fn *fn, void *ctx);

#endif
