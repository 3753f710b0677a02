/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How CPU time depends on the number of samples: a line, fixed cost plus cost
 * per sample, fitted by least squares to the looks of the last half minute.
 *
 * Called by the guard's CPU part, one thread. Pure. Units are those of the
 * caller: cost and samples, both per second. Errors: none; where the looks had
 * about the same number of samples, they do not show the fixed cost, and it
 * counts as 0. Costs a dozen floating-point operations a look.
 */
#ifndef OTP_DAEMON_LIMITS_COST_LINE_H
#define OTP_DAEMON_LIMITS_COST_LINE_H

struct cost_line { /* sums over the looks, each weighted by its age; zeroed: no look yet */
	double weight, samples, cost, samples_squared, samples_cost;
};

/* One look, of about a second: older ones lose a tenth of their weight. */
void cost_line_add(struct cost_line *l, double samples, double cost);
/* The part of cost that does not depend on the rate, from 0 to cost. */
double cost_line_fixed(const struct cost_line *l, double cost);

#endif
