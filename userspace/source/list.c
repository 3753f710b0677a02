// SPDX-License-Identifier: Apache-2.0
/* What all sources have in common: their list, and how one begins and ends. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "source/cpus.h"
#include "source/source.h"

const struct source_ops *const source_list[] = {&source_bpf, &source_kmod, &source_perf, NULL};

static int config_check(const struct source_config *cfg, char why[SOURCE_WHY])
{
	struct cpus cpus;

	if (cfg->frequency_hz < SOURCE_HZ_MIN || cfg->frequency_hz > SOURCE_HZ_MAX)
		return snprintf(why, SOURCE_WHY, "frequency_hz = %u is not between %d and %d", cfg->frequency_hz,
				SOURCE_HZ_MIN, SOURCE_HZ_MAX),
		       -EINVAL;
	if (cfg->ring_bytes & (cfg->ring_bytes - 1) || cfg->ring_bytes % (uint32_t)sysconf(_SC_PAGESIZE))
		return snprintf(why, SOURCE_WHY, "ring_bytes = %u is no power of two of at least a page", cfg->ring_bytes),
		       -EINVAL;
	if (cfg->cpus && cpus_parse(cfg->cpus, &cpus) < 0)
		return snprintf(why, SOURCE_WHY, "cpus = %.200s is no list of CPUs such as 0-3,8", cfg->cpus), -EINVAL;
	return 0;
}

int source_open(const struct source_ops *ops, const struct source_config *cfg, struct source **ret, char why[SOURCE_WHY])
{
	struct source *s;
	int err = config_check(cfg, why);

	if (err < 0)
		return err;
	s = calloc(1, ops->size);
	if (!s)
		return snprintf(why, SOURCE_WHY, "no memory"), -ENOMEM;
	s->ops = ops;
	err = ops->open(s, cfg, why);
	if (err < 0)
		source_close(s);
	else
		*ret = s;
	return err;
}

struct source *source_close(struct source *s)
{
	if (s) {
		s->ops->close(s);
		free(s);
	}
	return NULL;
}
