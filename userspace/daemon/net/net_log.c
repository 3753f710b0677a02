// SPDX-License-Identifier: Apache-2.0
#include "daemon/net/net_log.h"

#include <string.h>

#include "base/clock.h"

void net_log_init(struct net_log *l, const struct config *config)
{
	*l = (struct net_log){.config = config};
}

static uint32_t place_of(const struct config *c, const char *name)
{
	for (uint32_t i = 0; i < c->nr_exporters; i++)
		if (!strcmp(c->exporters[i].name, name))
			return i;
	return 0;
}

/* How long requests of a destination that fails are kept, and where. */
static const char *waits_text(const struct export_config *e, char to[64])
{
	bool spooled = e->spool_bytes && e->spool && e->spool->dir >= 0;

	snprintf(to, 64, "%s and are tried again for %llu s", spooled ? "go to disk" : "wait",
		 (unsigned long long)((spooled ? e->spool_age_ns : e->retry_elapsed_ns) / NSEC_PER_SEC));
	return to;
}

/* For a receiver that refuses all requests, or is down for days, a line for each profile has no new information. */
static bool goes_on(enum export_event event)
{
	return event == EXPORT_REFUSED || event == EXPORT_PARTIAL || event == EXPORT_REMARK || event == EXPORT_DROPPED;
}

static void begin_anew(struct log_rate rates[EXPORT_EVENTS])
{
	for (int event = 0; event < EXPORT_EVENTS; event++)
		rates[event].pause_ns = 0;
}

void net_log_event(void *ctx, const char *destination, enum export_event event, const char *text, uint64_t samples)
{
	struct net_log *l = ctx;
	uint32_t place = place_of(l->config, destination);
	struct log_rate *rate = &l->rates[place][event];
	struct log_tag tag = {.destination = destination};
	unsigned long long n = samples;
	char waits[64];

	rate->grows = goes_on(event);
	switch (event) {
	case EXPORT_FAILING:
		tag.event = LOG_EVENT_DESTINATION_DOWN;
		log_rated_tagged(rate, &tag, LOG_LEVEL_WARN, "exporter %s: %s; its requests %s", destination, text,
			  waits_text(&l->config->exporters[place], waits));
		break;
	case EXPORT_BACK:
		begin_anew(l->rates[place]);
		tag.event = LOG_EVENT_DESTINATION_UP;
		log_rated_tagged(rate, &tag, LOG_LEVEL_NOTICE, "exporter %s: delivers again", destination);
		break;
	case EXPORT_REFUSED:
		log_rated_tagged(rate, &tag, LOG_LEVEL_WARN, "exporter %s: refused: %s; %llu samples lost", destination, text, n);
		break;
	case EXPORT_PARTIAL:
		log_rated_tagged(rate, &tag, LOG_LEVEL_WARN, "exporter %s: profiles of a request with %llu samples refused%s%s",
			  destination, n, *text ? ": " : "", text);
		break;
	case EXPORT_REMARK:
		log_rated_tagged(rate, &tag, LOG_LEVEL_NOTICE, "exporter %s: delivered, with a remark: %s", destination, text);
		break;
	case EXPORT_DROPPED:
		log_rated_tagged(rate, &tag, LOG_LEVEL_WARN, "exporter %s: %llu samples given up: %s", destination, n, text);
		break;
	case EXPORT_METRICS_FAILING:
		log_rated_tagged(rate, &tag, LOG_LEVEL_WARN, "exporter %s: metrics are not delivered: %s", destination,
				 text);
		break;
	case EXPORT_METRICS_BACK:
		log_rated_tagged(rate, &tag, LOG_LEVEL_NOTICE, "exporter %s: metrics are delivered", destination);
		break;
	case EXPORT_CODING_REFUSED:
		log_rated_tagged(rate, &tag, LOG_LEVEL_WARN, "exporter %s: does not take zstd (%s): gzip from now on",
				 destination, text);
		break;
	case EXPORT_REMOVED:
		log_notice("exporter %s: removed: %s", destination, text);
		break;
	case EXPORT_RESTORED:
		log_notice("exporter %s: the spool has %s; its %llu samples will be sent", destination, text, n);
		break;
	case EXPORT_SPOOL_FAILING:
		log_rated_tagged(rate, &tag, LOG_LEVEL_ERROR,
				 "exporter %s: the spool %s/%s cannot be used: %s; requests wait in memory, up to queue_size",
				 destination, l->config->spool_dir, destination, text);
		break;
	case EXPORT_SPOOL_BACK:
		log_rated_tagged(rate, &tag, LOG_LEVEL_NOTICE, "exporter %s: the spool can be used again", destination);
		break;
	case EXPORT_EVENTS:
		break;
	}
}
