# SPDX-License-Identifier: Apache-2.0
"""What the engine holds of the sampler's memory: the ring, read-only for good,
and nothing else. The engine parses hostile input, so it may be taken over. It
could then forge every count that it may write; and kernels without the fix of
6.10 believe any consumer position of a BPF ring, and corrupt their own memory by
a forged one. The monitor moves that position for it, and early enough."""
import glob
import os
import signal

import lib

# Of BPF maps and programs, of the module's views, and of the perf source's memory files.
MARKS = ("anon_inode:bpf", "anon_inode:[otprof-", "/memfd:otprof-")
PAGE = os.sysconf("SC_PAGESIZE")


def descriptors(pid):
    links = []
    for path in glob.glob("/proc/%d/fd/*" % pid):
        try:
            links.append(os.readlink(path))
        except OSError:
            pass
    return [link for link in links if link.startswith(MARKS)]


def mappings(pid):
    """(bytes, flags of smaps) of each mapping of the sampler's memory."""
    found, size = [], 0
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                start, end = (int(part, 16) for part in words[0].split("-"))
                size = end - start if " ".join(words[5:]).startswith(MARKS) else 0
            elif words[0] == "VmFlags:" and size:
                found.append((size, set(words[1:])))
    return found


def is_closed(pid):
    """Whether its sandbox is closed: from then on it reads what others control."""
    try:
        with open("/proc/%d/status" % pid) as f:
            return "\nSeccomp:\t2\n" in f.read()
    except OSError:
        return False


def engine():
    def up():
        pid = d.worker("engine")
        return pid if pid and lib.alive(pid) and is_closed(pid) else 0
    return lib.wait_for(up, 40, 0.1)


def holdings(pid, which):
    held, mapped = descriptors(pid), mappings(pid)
    ring = d.status()["sampler"]["ring_bytes"]
    lib.ok(not held, "%s holds no descriptor of the sampler's memory: %s" % (which, held))
    lib.ok(sum(size for size, _ in mapped) == 2 * PAGE + 2 * ring, "%s maps the ring and nothing else of it (%s)" %
           (which, [size for size, _ in mapped]))
    # mw: mprotect could make it writable.
    lib.ok(mapped and not any(flags & {"wr", "mw"} for _, flags in mapped), "%s cannot write it, and never will: %s" %
           (which, [sorted(flags) for _, flags in mapped]))


def freed_in_time(s):
    """Nothing was lost, unless the engine itself, kept from its CPU, left the ring unread until it was full."""
    lost, unread = s["ledger"]["lost"]["ring_full"], s["sampler"]["ring_peak"]
    lib.note("ring: %d bytes, at most %d unread, %d samples lost" % (s["sampler"]["ring_bytes"], unread, lost))
    lib.ok(not lost or unread > s["sampler"]["ring_bytes"] * 3 // 4, "no sample was lost to a ring that had been read")


def busy(rounds):
    """Writes several times the ring's size, and returns the last status."""
    programs = [lib.program("depth", 40, 60) for _ in range(os.cpu_count())]
    enough = rounds * d.status()["sampler"]["ring_bytes"]
    lib.wait_for(lambda: d.status()["sampler"]["put_bytes"] > enough, 60, 0.5)
    for p in programs:
        lib.end(p)
    return d.status()


d = lib.Otprofd(hz=lib.rate(499), sampler={"ring_size": "1M" if lib.SLOW else "8M"})
first = engine()
holdings(first, "the engine")
net = d.worker("net")
lib.ok(not descriptors(net) and not mappings(net), "net has nothing of it: %s" % descriptors(net))
s = busy(3)
lib.ok(s["sampler"]["put_bytes"] > 3 * s["sampler"]["ring_bytes"], "the ring was written several times over")
freed_in_time(s)
os.kill(first, signal.SIGKILL)
lib.wait_for(lambda: not lib.alive(first))
holdings(engine(), "the engine that is started again")
lib.check_ledger(d.stop(), "views", stopped=True)
lib.finish()
