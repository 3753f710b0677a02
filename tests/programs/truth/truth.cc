// SPDX-License-Identifier: Apache-2.0
/* The same in C++: templates, methods, a lambda, a virtual call. */
#include "truth.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace truth
{
static volatile uint64_t result;
static double took[3];

template <class T, int N> class Walker
{
public:
	explicit Walker(T start) : x(start) {}
	NOINLINE T walk(unsigned n) // truth: truth::Walker::walk
	{
		for (unsigned i = 0; i < n; i++) // burn
			advance();               // calls truth::Walker::advance
		return x;
	}

private:
	__attribute__((always_inline)) void advance() // truth: truth::Walker::advance
	{
		x = scramble(x + N); // calls scramble
	}
	T x;
};

struct Shape {
	virtual ~Shape() {}
	virtual uint64_t area(uint64_t x) const = 0;
};

namespace
{
struct Square : Shape {
	NOINLINE uint64_t area(uint64_t x) const override // truth: truth::(anonymous namespace)::Square::area
	{
		for (unsigned i = 0; i < ROUNDS; i++) // burn
			x = x * 7 + (x >> 3);         // burn
		return x;
	}
};
}

template <class F> NOINLINE uint64_t apply(F f, uint64_t x) // truth: truth::apply
{
	x = f(x); // calls truth::with_lambda::{lambda}::operator()
	return x + 2;
}

NOINLINE uint64_t with_lambda(uint64_t x) // truth: truth::with_lambda
{
	auto burn = [](uint64_t y) __attribute__((noinline)) { // truth: truth::with_lambda::{lambda}::operator()
		for (unsigned i = 0; i < ROUNDS; i++)          // burn
			y = twice(y);                          // calls twice
		return y;
	};
	x = apply(burn, x); // calls truth::apply
	return x + 1;
}

static double cpu_time() // truth: truth::cpu_time
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); // calls clock_gettime
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void account(unsigned i, double *since) // truth: truth::account
{
	double now = cpu_time(); // calls truth::cpu_time

	took[i] += now - *since;
	*since = now;
}

NOINLINE void once(const Shape *volatile shape, double *since) // truth: truth::once
{
	result = result + Walker<uint64_t, 3>(result).walk(ROUNDS); // calls truth::Walker::walk
	account(0, since); // calls truth::account
	result = result + with_lambda(result); // calls truth::with_lambda
	account(1, since); // calls truth::account
	result = result + shape->area(result); // calls truth::(anonymous namespace)::Square::area
	account(2, since); // calls truth::account
}
}

int main(int argc, char **argv) // truth: main
{
	double end = argc > 1 ? atof(argv[1]) : 1, since = truth::cpu_time(); // calls truth::cpu_time
	truth::Square square;

	while (since < end)
		truth::once(&square, &since); // calls truth::once
	printf("truth::Walker::walk %f\ntruth::with_lambda %f\ntruth::(anonymous namespace)::Square::area %f\n",
	       truth::took[0], truth::took[1], truth::took[2]);
	return 0;
}
