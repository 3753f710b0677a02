// SPDX-License-Identifier: Apache-2.0
// throws SECONDS: throws through thirty frames, again and again; the C++
// library's own unwinder is at work most of the time.
#include <cstdlib>
#include <ctime>

static volatile unsigned long sink;

struct Guard {
	~Guard() { sink += 1; }
};

__attribute__((noinline)) void thrower(int depth)
{
	Guard g;

	if (!depth)
		throw depth;
	thrower(depth - 1);
	sink += 2;
}

__attribute__((noinline)) void catcher()
{
	try {
		thrower(30);
	} catch (int) {
		sink += 3;
	}
}

int main(int argc, char **argv)
{
	std::time_t end = std::time(nullptr) + (argc > 1 ? std::atoi(argv[1]) : 2);

	while (std::time(nullptr) < end)
		for (int i = 0; i < 1000; i++)
			catcher();
	return 0;
}
