# SPDX-License-Identifier: Apache-2.0
"""The spool: what a receiver does not take goes to disk and comes back, through
restarts, kills of net, a kill of everything and a full file system. Every
request arrives at least once or is counted by its reason, what may have arrived
twice is counted, the order holds, and the books agree with the receiver's.

An hour's requests are made in less time: there is one every tenth of a second.
OUTAGE=full: an hour's, and a hundred kills of net."""
import os
import random
import signal
import stat
import subprocess
import time

import lib

FULL = os.environ.get("OUTAGE") == "full"
KILLS = 100 if FULL else 10
REQUESTS = 720 if FULL else 120
BUSY = {"status": 503}
random.seed(16)


class Daemon(lib.Otprofd):
    """With one exporter, away, that has a spool in a directory of the test's own."""

    def __init__(self, sink, spool_dir, **more):
        keys = {"endpoint": sink.url, "retry_initial": "100ms", "retry_max": "300ms", "spool": "64M", **more}
        super().__init__(hz=97, interval="100ms", exporters={"away": keys}, spool_dir=spool_dir)

    def away(self, status=None):
        return (status or self.status())["ledger"]["destinations"]["away"]


class Receiver:
    """What a sink has stored, as numbers."""

    def __init__(self, sink):
        self.bodies = sink.requests()
        self.samples, self.begin = {}, {}
        for body in set(self.bodies):
            profiles = lib.profiles(body)
            self.samples[body] = sum(s.values[0] for p in profiles for s in p.samples)
            self.begin[body] = min(p.time_unix_nano for p in profiles)
        self.all = sum(self.samples[b] for b in self.bodies)
        self.unique = sum(self.samples.values())
        # Once for each request, however often it was repeated.
        self.twice = sum(n for body, n in self.samples.items() if self.bodies.count(body) > 1)

    def times(self):
        """When each request begins, in the order of arrival, without repetitions."""
        seen, times = set(), []
        for body in self.bodies:
            if body not in seen:
                seen.add(body)
                times.append(self.begin[body])
        return times


def in_two_lanes(times):
    """Whether new requests and those from disk are each in order: two ascending sequences, however they mix."""
    newest = older = 0
    for t in times:
        if t >= newest:
            newest = t
        elif t >= older:
            older = t
        else:
            return False
    return True


def spool_files(spool_dir):
    found = []
    for place, _, names in os.walk(spool_dir):
        found += [os.path.join(place, n) for n in names if n.endswith(".seg")]
    return found


def plain():
    """Nothing on disk while the receiver works; while it does not, in files of net's alone; afterwards nothing again."""
    spool_dir = os.path.join(lib.scratch(), "spool")
    sink = lib.Sink()
    d = Daemon(sink, spool_dir)
    time.sleep(1.5)
    lib.ok(sink.requests() and not spool_files(spool_dir), "a receiver that works costs no file")
    sink.sink.behave = BUSY
    lib.wait_for(lambda: d.away()["spool"]["requests"] > 5, 20)
    away = d.away()
    lib.ok(away["spooled"] and away["in_flight"] >= away["spooled"], "an outage: requests are on disk (%s)" % away["spool"])
    mode = stat.S_IMODE(os.stat(spool_dir).st_mode)
    lib.ok(not mode & 0o007 and os.stat(spool_dir).st_uid == 0, "the directory is root's, closed to others (%o)" % mode)
    owners = {os.stat(f).st_uid for f in spool_files(spool_dir)}
    with open("/proc/%d/status" % d.worker("net")) as f:
        uid = int([line for line in f if line.startswith("Uid:")][0].split()[1])
    lib.ok(owners == {uid}, "its files are net's own (%s)" % owners)
    text = subprocess.run([lib.OTPROF, "status", "--runtime-dir", d.runtime], capture_output=True, text=True).stdout
    lib.ok("on disk" in text, "status shows what is on disk")
    lib.check_ledger(d.status(), "in an outage")
    sink.sink.behave = {}
    lib.wait_for(lambda: not d.away()["spooled"], 30)
    lib.ok(not spool_files(spool_dir), "delivered: nothing is left on disk")
    last = d.stop()
    lib.check_ledger(last, "after an outage", stopped=True)
    away, got = d.away(last), Receiver(sink)
    lib.ok(got.unique == got.all == away["exported"] == last["ledger"]["taken"],
           "every sample arrived once: %d of %d" % (got.unique, last["ledger"]["taken"]))
    lib.ok(in_two_lanes(got.times()), "in order, those from disk and new ones")
    lib.ok(d.log_text().count("go to disk") == 1, "the log says so once")


def kill_net(d):
    """At a random moment; False where there was none to kill."""
    time.sleep(random.uniform(0.05, 0.6 if FULL else 0.4))
    pid = d.worker("net")
    if not pid:
        return False
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError: # the last kill's, which the monitor has not seen yet
        return False
    return True


def kill_net_often(d, times):
    killed = 0
    until = time.monotonic() + 5 * times
    while killed < times and time.monotonic() < until:
        killed += kill_net(d)
    return killed


def pass_requests(d, n):
    """Waits until the engine has made so many requests; there are as many intervals."""
    first = d.status()["ledger"]["taken"]
    lib.wait_for(lambda: d.status()["ledger"]["taken"] - first > n * 97 * 0.1 * 0.5, 60 + n)


def small_disk(size):
    place = os.path.join(lib.scratch(), "disk")
    os.mkdir(place)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%s,mode=755" % size, "spool-test", place]).returncode:
        return None
    lib.at_end(subprocess.run, ["umount", "-l", place])
    return place


def fill(place):
    """Every byte, as another program would."""
    path = os.path.join(place, "filler")
    with open(path, "wb", buffering=0) as f:
        try:
            while f.write(b"x" * 4096):
                pass
        except OSError:
            pass
    return path


def outage(place):
    """Three lives of the daemon: ended by a stop, by a kill of everything while the disk is full, and in peace."""
    spool_dir = os.path.join(place, "spool")
    sink = lib.Sink(**BUSY)
    d = Daemon(sink, spool_dir)
    kills = kill_net_often(d, KILLS // 3)
    pass_requests(d, REQUESTS // 3)
    first = d.stop()
    lib.check_ledger(first, "outage, first stop")
    one = d.away(first)
    lib.ok(one["spooled"] == one["in_flight"] and not one["exported"], "the stop leaves all on disk: %d samples" % one["spooled"])

    d.start()
    two = d.away()
    lib.ok(two["restored"] == one["spooled"], "the second life restores them: %d" % two["restored"])
    filler = fill(place)
    kills += kill_net_often(d, KILLS // 3)
    lib.check_ledger(d.status(), "with a full disk")
    lib.ok(lib.wait_for(lambda: "No space left on device; requests wait in memory" in d.log_text(), 20),
           "a full disk is one clear line")
    os.unlink(filler)
    full = d.away()["spool"]["requests"]
    pass_requests(d, REQUESTS // 3)
    lib.ok(lib.wait_for(lambda: d.away()["spool"]["requests"] > full + 5, 30), "when it has room again, it is used")
    before = d.away()
    lib.check_ledger(d.status(), "before everything is killed")
    os.kill(d.pid, signal.SIGKILL)
    d.process.wait()

    d.start()
    three = d.away()
    lib.ok(three["restored"] >= before["spooled"], "after a kill of everything nothing on disk is lost: %d, at least %d" % (
        three["restored"], before["spooled"]))
    kills += kill_net_often(d, KILLS - kills)
    pass_requests(d, REQUESTS // 3)
    deliver(d, sink, kills)


def deliver(d, sink, kills):
    """The receiver is back: for three requests it says nothing after it has stored them."""
    sink.sink.behave = {"drop": True, "times": 3}
    lib.ok(lib.wait_for(lambda: not d.away()["spooled"], 300 if FULL else 90, 0.3), "all that was on disk is delivered")
    last = d.stop()
    lib.check_ledger(last, "outage, the end", stopped=True)
    away, got = d.away(last), Receiver(sink)
    lib.note("%d kills of net, %d requests, %s" % (kills, len(got.bodies), {k: away[k] for k in (
        "restored", "exported", "unconfirmed", "repeated", "lost", "spool")}))
    lib.ok(kills >= KILLS, "net was killed %d times" % kills)
    # A kill while a request was being sent leaves it unconfirmed, and it may be there.
    lib.ok(away["exported"] <= got.unique <= away["exported"] + away["unconfirmed"],
           "the receiver has what the books say: %d samples, %d exported" % (got.unique, away["exported"]))
    lib.ok(0 < got.twice <= away["repeated"], "what arrived twice is counted: %d of %d" % (got.twice, away["repeated"]))
    lib.ok(in_two_lanes(got.times()), "the order holds through all of it (%d requests)" % len(got.times()))
    lib.ok(away["spool"]["torn"] == 0, "no request was torn")


def killed_while_it_sends():
    """Kills at any moment of the delivery: duplicates are possible, and counted; nothing is missing."""
    spool_dir = os.path.join(lib.scratch(), "spool")
    sink = lib.Sink(**BUSY)
    d = Daemon(sink, spool_dir)
    pass_requests(d, 20 if not FULL else 100)
    sink.sink.behave = {"delay": 0.03}
    kill_net_often(d, 4 if not FULL else 30)
    lib.wait_for(lambda: not d.away()["spooled"], 120, 0.3)
    last = d.stop()
    lib.check_ledger(last, "kills while it sends", stopped=True)
    away, got, lost = d.away(last), Receiver(sink), sum(d.away(last)["lost"].values())
    lib.ok(got.unique + lost + away["unconfirmed"] >= last["ledger"]["taken"],
           "every sample arrived or is counted: %d arrived, %d lost, %d unconfirmed, of %d" % (
               got.unique, lost, away["unconfirmed"], last["ledger"]["taken"]))
    lib.ok(got.twice <= away["repeated"] + away["restored"], "what arrived twice is counted: %d, of %d and %d" % (
        got.twice, away["repeated"], away["restored"]))


running = [lib.program("shares", 3600, stdout=subprocess.DEVNULL)]
plain()
disk = small_disk("48m")
if disk:
    outage(disk)
else:
    lib.skip("an outage with a full file system", "a tmpfs cannot be mounted here")
killed_while_it_sends()
for p in running:
    lib.end(p)
lib.finish()
