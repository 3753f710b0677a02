# SPDX-License-Identifier: Apache-2.0
"""Call chains that are hard to follow: alternate signal stacks, coroutines,
callbacks, two thousand frames, frames larger than any copy, untouched pages,
threads that come and go, assembly without tables, libraries that replace each
other. Every chain has the callers that the program made, and ends at its root.
Some of it with musl too, whose library has no tables at all."""
import os
import shutil
import subprocess

import lib

HZ = 499
# Whole stacks of 400 KiB, 500 times a second, are more than the bound on copied bytes lets through.
DEEP_HZ = 49
SECONDS = 2.5
# The root that glibc gives a thread or a process, or its address where the file has no symbols.
THREAD, PROCESS = ("clone", "__clone", "clone3", "__clone3", "libc.so.6+"), ("_start",)

# mode: (leaf, callers in this order with others between, roots, frames at least)
CHAINS = {
    "altstack": ("burn_altstack", ["on_signal"] + ["interrupted_altstack"] * 6 + ["main"], PROCESS, 9),
    "threadalt": ("burn_altstack", ["on_signal"] + ["interrupted_altstack"] * 6 + ["thread_altstack"], THREAD, 9),
    "coroutine": ("burn_coroutine", ["coroutine_body"], ("__start_context", "libc.so.6+"), 3),
    "qsort": ("burn_qsort", ["mode_qsort", "main"], PROCESS, 5),
    "recursion": ("burn_recursion", ["recurse"] * 2000 + ["mode_recursion", "main"], PROCESS, 2003),
    "hugeframe": ("burn_hugeframe", ["mode_hugeframe", "main"], PROCESS, 4),
    "successors": ("burn_successors", ["successors_room", "mode_successors", "main"], PROCESS, 5),
    "hole": ("burn_hole", ["mode_hole", "main"], PROCESS, 4),
    "threads": ("burn_threads", ["short_thread"], THREAD, 3),
    "vfork": ("burn_vfork", ["mode_vfork", "main"], PROCESS, 4),
    "plugins": (("burn_plugin_a", "burn_plugin_b"), ["mode_plugins", "main"], PROCESS, 4),
    "assembly": ("burn_assembly", ["asm_caller", "mode_assembly", "main"], PROCESS, 5),
}


# The function that hands main's result to exit, and __clone.
MUSL_PROCESS, MUSL_THREAD = ("libc_start_main_stage2", "libc.so+", "ld-musl-x86_64.so.1+"), ("__clone",)
MUSL = {
    "altstack": ([], MUSL_PROCESS),
    "vfork": ([], MUSL_PROCESS),
    "qsort": (["-static"], MUSL_PROCESS),
    "threads": (["-static"], MUSL_THREAD), # of a stripped library, __clone has no name
    "threadalt": (["-static"], MUSL_THREAD),
}


def follows(names, callers):
    """All of the callers, in their order."""
    it = iter(names)
    return all(any(n == c or n.startswith(c + "+") for n in it) for c in callers)


def from_leaf(names, leaf):
    """Without what is inlined into the leaf, and the clock that it asks."""
    at = [i for i, n in enumerate(names[:6]) if n in (leaf if isinstance(leaf, tuple) else (leaf,))]
    return names[at[0]:] if at else []


def is_root(name, roots):
    return any(name == r or (r.endswith("+") and name.startswith(r)) for r in roots)


def check(mode, samples, libc="", roots=None):
    leaf, callers, own_roots, least = CHAINS[mode]
    roots = roots or own_roots
    total = right = 0
    wrong = {}
    for s in samples:
        names, marker = lib.user_part(s)
        names = from_leaf(names, leaf)
        if not names:
            continue
        total += s.count
        if not marker and len(names) >= least and follows(names[1:], callers) and is_root(names[-1], roots):
            right += s.count
        else:
            key = "%s, %d frames, %s" % (marker or "no marker", len(names), " < ".join(names[:3] + ["..."] + names[-3:]))
            wrong[key] = wrong.get(key, 0) + s.count
    lib.ok(total > (20 if mode == "recursion" else 100), "%s%s: %d stacks of its leaf" % (libc, mode, total))
    lib.ok(right >= 0.99 * total, "%s%s: %.2f %% are the chain that was made%s" % (
        libc, mode, 100 * right / max(total, 1), "".join("; %d x %s" % (n, k) for k, n in sorted(wrong.items(), key=lambda i: -i[1])[:3])))


def profile(commands, hz=HZ, sampler=None):
    """{name: argv of seconds} side by side; by name the samples of each one's second run."""
    d = lib.Otprofd(hz=hz, profile={"sample_attributes": "process.pid"}, sampler=sampler or {})
    # The first moments are for learning how deep the programs' stacks are.
    for p in [lib.start(argv(0.7)) for argv in commands.values()]:
        p.wait(timeout=30)
    pids = {name: lib.start(argv(SECONDS)) for name, argv in commands.items()}
    for p in pids.values():
        p.wait(timeout=30)
    d.stop()
    samples = lib.samples(d.files)
    # A child of vfork has a pid of its own.
    return {name: [s for s in samples if s.attributes.get("process.pid") == p.pid or
                   "vfork" in name and lib.service(s) == os.path.basename(p.args[0])] for name, p in pids.items()}


def own(program, mode):
    """Under a name of the mode's own: what is learned of programs is learned by name."""
    path = os.path.join(top, "%s-%s" % (os.path.basename(program), mode))
    shutil.copy(program, path)
    return path


def command(program, mode, *more):
    path = own(program, mode)
    return lambda seconds: [path, mode, str(seconds), *more]


def in_groups(modes, size=4):
    return [modes[i:i + size] for i in range(0, len(modes), size)]


def throws():
    program = os.path.join(lib.PROGRAMS, "throws")
    total = whole = 0
    for s in profile({"throws": lambda seconds: [program, "%d" % max(1, seconds)]})["throws"]:
        names, marker = lib.user_part(s)
        if names and "thrower" in " ".join(names):
            total += s.count
            whole += 0 if marker else s.count
    lib.ok(total > 100 and whole >= 0.99 * total, "exceptions: %d of %d stacks under a throw are whole" % (whole, total))


def with_musl():
    if not shutil.which("musl-gcc"):
        lib.skip("musl", "musl-gcc is not installed")
        return
    commands = {}
    for mode, (options, _) in MUSL.items():
        if lib.SOURCE == "perf" and mode in ONE_PIECE:
            continue
        program = os.path.join(top, "musl" + "".join(options))
        if not os.path.exists(program):
            subprocess.run(["musl-gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-fomit-frame-pointer", *options, "-o", program,
                            os.path.join(lib.TOP, "tests", "programs", "stacks.c")], check=True)
        commands[mode] = command(program, mode)
    for mode, samples in profile(commands).items():
        options, roots = MUSL[mode]
        check(mode, samples, "musl%s " % " ".join(["", *options]), roots)


def with_glibc(modes, hz=HZ, sampler=None):
    commands = {mode: command(os.path.join(lib.PROGRAMS, "stacks"), mode, *plugins) for mode in modes}
    for mode, samples in profile(commands, hz, sampler).items():
        check(mode, samples)


top = lib.scratch()
plugins = [os.path.join(lib.PROGRAMS, "plugin-%s.so" % x) for x in "ab"]
# What perf copies ends at the first page that is missing, and is one piece.
ONE_PIECE = ("altstack", "threadalt", "hugeframe", "successors", "hole", "recursion")
chosen = [mode for mode in CHAINS if lib.SOURCE != "perf" or mode not in ONE_PIECE]
for mode in CHAINS:
    if mode not in chosen:
        lib.skip(mode, "perf copies one piece of at most 64 KiB, up to the first page that is missing")
# With a rate, or a setting, of their own: programs that are not known are given less than
# "successors" needs below its huge frame.
ALONE = {"recursion": (DEEP_HZ, None), "successors": (HZ, {"stack_bytes": "16K"})}
for group in in_groups([mode for mode in chosen if mode not in ALONE]):
    with_glibc(group)
for mode in ALONE:
    if mode in chosen:
        with_glibc([mode], *ALONE[mode])
throws()
with_musl()
lib.finish()
