// SPDX-License-Identifier: Apache-2.0
/*
 * A selection laid over a configuration. The result is a copy whose strings are
 * the base's: only the texts of the additional targets are its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/config/config_keys.h"

static bool config_names_pids(const struct config *c)
{
	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (c->targets[i].kind == TARGET_PID)
			return true;
	return false;
}

static int config_select_target(struct config *c, const char *word, char why[SELECTION_WHY])
{
	char what[CONFIG_WHAT_MAX] = "";
	int err;

	if (c->nr_targets >= CONFIG_TARGETS_ALL)
		return -ENOSPC;
	err = config_target_live(word, &c->targets[c->nr_targets], what);
	if (err)
		snprintf(why, SELECTION_WHY, "%.60s: %.180s", word, what);
	else
		c->nr_targets++;
	return err;
}

static int config_select_targets(struct config *c, const struct selection *s, char why[SELECTION_WHY])
{
	char words[SELECTION_WORDS_MAX], *at = words, *word;
	int err = 0;

	memcpy(words, s->targets, sizeof(words));
	words[sizeof(words) - 1] = '\0';
	while (!err && (word = strsep(&at, " ")))
		if (*word)
			err = config_select_target(c, word, why);
	return err;
}

/* A depth below the configured one holds for processes with a plan as well. */
static int config_select_depth(struct config *c, uint32_t bytes, char why[SELECTION_WHY])
{
	if (!bytes)
		return 0;
	if (bytes < 512 || bytes > c->stack_max_bytes) {
		snprintf(why, SELECTION_WHY, "stack_bytes is a number from 512 to %u, the configured stack_max_bytes",
			 c->stack_max_bytes);
		return -EINVAL;
	}
	if (bytes < c->stack_bytes)
		c->stack_max_bytes = bytes;
	c->stack_bytes = bytes;
	return 0;
}

int config_select(const struct config *base, const struct selection *s, char why[SELECTION_WHY], struct config **ret)
{
	struct config *c;
	int err = 0;

	if (s->nr_targets && config_names_pids(base)) {
		snprintf(why, SELECTION_WHY, "[targets] has processes by number, which a selection cannot narrow");
		return -EINVAL;
	}
	c = malloc(sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = *base;
	if (s->hz)
		c->frequency_hz = s->hz;
	err = config_select_depth(c, s->stack_bytes, why);
	if (!err)
		err = config_select_targets(c, s, why);
	if (err)
		c = config_deselect(c);
	else
		*ret = c;
	return err;
}

struct config *config_deselect(struct config *c)
{
	for (uint32_t i = 0; c && i < c->nr_targets; i++)
		if (c->targets[i].live)
			free(c->targets[i].text);
	free(c);
	return NULL;
}
