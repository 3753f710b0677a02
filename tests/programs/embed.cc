// SPDX-License-Identifier: Apache-2.0
// Interpreters as libraries of one program, which loads them when it runs and has no symbol of theirs:
//   embed LIBRARY SCRIPT SECONDS [LIBRARY SCRIPT SECONDS]...
// Each script runs in a thread of its own, the last one in the main thread. A script of Python may run Perl in its own
// thread by embed_perl(LIBRARY, CODE).
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <vector>

extern char **environ;

namespace {

template <typename F> F *symbol(void *library, const char *name)
{
	void *at = dlsym(library, name);

	if (!at) {
		fprintf(stderr, "embed: %s\n", dlerror());
		exit(1);
	}
	return reinterpret_cast<F *>(at);
}

void *open_library(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);

	if (!library) {
		fprintf(stderr, "embed: %s\n", dlerror());
		exit(1);
	}
	return library;
}

using Perl = void;

void (*boot_DynaLoader)(Perl *, void *);
void *(*Perl_newXS)(Perl *, const char *, void (*)(Perl *, void *), const char *);

void perl_extensions(Perl *perl)
{
	Perl_newXS(perl, "DynaLoader::boot_DynaLoader", boot_DynaLoader, __FILE__);
}

Perl *perl_begin(void *library, int argc, char **argv)
{
	symbol<void(int *, char ***, char ***)>(library, "Perl_sys_init3")(&argc, &argv, &environ);
	boot_DynaLoader = symbol<void(Perl *, void *)>(library, "boot_DynaLoader");
	Perl_newXS = symbol<void *(Perl *, const char *, void (*)(Perl *, void *), const char *)>(library, "Perl_newXS");

	Perl *perl = symbol<Perl *()>(library, "perl_alloc")();

	symbol<void(Perl *)>(library, "perl_construct")(perl);
	symbol<int(Perl *, void (*)(Perl *), int, char **, char **)>(library, "perl_parse")(perl, perl_extensions, argc, argv,
											     nullptr);
	return perl;
}

class Script {
public:
	Script(char **arg) : library(open_library(arg[0])), argv{program(), arg[1], arg[2], nullptr} {}

	void run()
	{
		if (dlsym(library, "Py_BytesMain"))
			symbol<int(int, char **)>(library, "Py_BytesMain")(3, argv);
		else if (dlsym(library, "perl_parse"))
			symbol<int(Perl *)>(library, "perl_run")(perl_begin(library, 3, argv));
		else
			run_ruby();
	}

private:
	char *program() { return const_cast<char *>(dlsym(library, "Py_BytesMain") ? "/usr/bin/python3" : "embed"); }

	void run_ruby()
	{
		int argc = 3;
		char **arg = argv;
		volatile unsigned long here = 0;

		symbol<void(int *, char ***)>(library, "ruby_sysinit")(&argc, &arg);
		symbol<void(volatile unsigned long *)>(library, "ruby_init_stack")(&here);
		symbol<void()>(library, "ruby_init")();
		symbol<int(void *)>(library, "ruby_run_node")(symbol<void *(int, char **)>(library, "ruby_options")(argc, arg));
	}

	void *library;
	char *argv[4];
};

} // namespace

extern "C" __attribute__((noinline)) void embed_perl(const char *name, const char *code)
{
	static void *library = open_library(name);
	static char *argv[] = {const_cast<char *>("perl"), const_cast<char *>("-e"), const_cast<char *>("0"), nullptr};
	static Perl *perl = perl_begin(library, 3, argv);
	static auto eval = symbol<void *(Perl *, const char *, int)>(library, "Perl_eval_pv");

	eval(perl, code, 1);
	asm volatile("");
}

int main(int argc, char **argv)
{
	std::vector<std::thread> threads;
	int last = argc - 3;

	if (argc < 4 || argc % 3 != 1) {
		fprintf(stderr, "usage: embed LIBRARY SCRIPT SECONDS [LIBRARY SCRIPT SECONDS]...\n");
		return 2;
	}
	for (int i = 1; i < last; i += 3)
		threads.emplace_back([arg = argv + i] { Script(arg).run(); });
	Script(argv + last).run();
	for (auto &t : threads)
		t.join();
	return 0;
}
