// SPDX-License-Identifier: Apache-2.0
/* The program of the case x86_64-inline: g++ -O2 -g, functions inlined into each other, names of C++. */
#include <cstdio>
#include <vector>

template <class T> static inline T add(T a, T b)
{
	for (int i = 0; i < 9; i++) {
		a = a * 3 + b;
		asm volatile("" : "+r"(a));
	}
	return a;
}

struct walk {
	std::vector<int> v;

	__attribute__((noinline)) long run(int n) const
	{
		long s = 0;

		for (int k = 0; k < n; k++)
			for (int x : v)
				s = add<long>(s, x);
		return s;
	}
};

namespace outer
{
namespace
{
__attribute__((noinline)) long deep(const walk &w, int n)
{
	long r = n ? deep(w, n - 1) + 1 : w.run(2000);

	asm volatile("" : "+r"(r));
	return r;
}
}
}

int main()
{
	walk w;
	long s = 0;

	for (int i = 0; i < 1000; i++)
		w.v.push_back(i);
	for (;;) {
		s += outer::deep(w, 3);
		if (s == 7)
			puts("");
	}
}
