// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/cost_line.h"

#include "base/cleanup.h"

#define KEPT	  0.9  /* of an older look's weight */
#define SPREAD	  0.01 /* the least variance that shows a slope, as a part of the squared mean: a tenth of the mean */

void cost_line_add(struct cost_line *l, double samples, double cost)
{
	l->weight = l->weight * KEPT + 1;
	l->samples = l->samples * KEPT + samples;
	l->cost = l->cost * KEPT + cost;
	l->samples_squared = l->samples_squared * KEPT + samples * samples;
	l->samples_cost = l->samples_cost * KEPT + samples * cost;
}

double cost_line_fixed(const struct cost_line *l, double cost)
{
	double mean, variance, slope, fixed;

	if (l->weight <= 0)
		return 0;
	mean = l->samples / l->weight;
	variance = l->samples_squared / l->weight - mean * mean;
	if (variance <= SPREAD * mean * mean)
		return 0;
	slope = (l->samples_cost / l->weight - mean * l->cost / l->weight) / variance;
	/* More samples were cheaper: the cost fell for another reason. */
	if (slope <= 0)
		return 0;
	fixed = l->cost / l->weight - slope * mean;
	return MAX(0.0, MIN(fixed, cost));
}
