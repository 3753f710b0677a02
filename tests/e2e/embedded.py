# SPDX-License-Identifier: Apache-2.0
"""Interpreters inside other programs: libraries of a C++ program, several in one process, a debugger; and, in the full
form (EMBEDDED=all), modules of servers, of this system or of a chroot that has them: uWSGI, Apache, PostgreSQL. What
runs in them knows its own calls, lines and shares."""
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import urllib.request

import known_program
import lib

HZ = lib.rate(199)
ALL = os.environ.get("EMBEDDED") == "all"
SECONDS = 6 if ALL else 4
EMBED = os.path.join(lib.BUILD, "programs", "embed")
CHROOTS = os.environ.get("CHROOTS", "/var/lib/otprof-tests/chroots")
# What leads to the program, where it is no script of its own. Lines are those of the file that leads to it.
LEADS = {
    "wsgi": r"""
function application 8-11 application wsgi\.py
root application
call application 9 main
startup .* <frozen importlib\._bootstrap.*
""",
    "plpython": r"""
function procedure 1-9 __plpython_procedure_.* (<string>)?
function call 1-1 <module> (<string>)?
root call procedure
call call 1 procedure
call procedure 1-9 main
startup .* <frozen importlib\._bootstrap.*
""",
    "handler": r"""
function request 7-13 Handler::handler Handler\.pm
root request
call request 11 main
also main require perl\.pl perl\.pl
""",
    "plperl": r"""
function procedure 1-9 (main|PostgreSQL::InServer(::\w+)*)::__ANON__ .*
root procedure
call procedure 1-9 main
also main require perl\.pl perl\.pl
""",
}


def library(name):
    """The newest of the system's, as the dynamic linker finds it."""
    found = sorted(glob.glob("/usr/lib/*/" + name) + glob.glob("/usr/lib64/" + name))
    return os.path.basename(found[-1]) if found else None


LIBRARIES = {"python": library("libpython3.*.so.1.0"), "perl": library("libperl.so.5.??"),
             "ruby": library("libruby-3.?.so.3.?")}


def truth(language, *leads):
    text = pathlib.Path(known_program.WHERE, language + ".truth").read_text() + "".join(LEADS[lead] for lead in leads)
    path = os.path.join(lib.scratch(), language + ".truth")
    pathlib.Path(path).write_text(text)
    return path


def place(root=""):
    """A copy of the programs that every user may read, and its name within the root."""
    path = root + "/tmp/" + os.path.basename(lib.scratch())
    shutil.copytree(known_program.WHERE, path, dirs_exist_ok=True)
    lib.at_end(shutil.rmtree, path, True)
    os.chmod(path, 0o755)
    return path[len(root):]


def run(argv, **kw):
    p = lib.start(argv, stdout=subprocess.DEVNULL, **kw)
    lib.ok(p.wait(SECONDS * 5) == 0, "%s ends well" % os.path.basename(argv[0]))
    return [p.pid]


# --- here ---

def embed(*languages):
    """Pids of a C++ program that runs these, each in a thread, the last in the main thread."""
    where, arguments = place(), []
    for language in languages:
        arguments += [LIBRARIES[language], where + "/" + known_program.LANGUAGES[language][1], str(SECONDS)]
    return run([EMBED] + arguments)


def nested():
    return run([EMBED, LIBRARIES["python"], place() + "/nested.py", str(SECONDS)],
               env=dict(os.environ, PERL=LIBRARIES["perl"]))


def gdb():
    return run(["gdb", "-nx", "-batch", "-ex", "python import sys; sys.argv = ['python.py', '%d']" % SECONDS,
                "-x", place() + "/python.py"])


def judge_nested(samples):
    """Perl's frames stand inside the Python function that called it, and the C++ function between them."""
    count = wrong = python = 0
    want = ["<module>", "outer", "inner", "embed_perl", "main::inner", "main::burn"]
    for s in samples:
        names = [name for name in reversed(s.stack) if name in want or "eval" in name and name.startswith("(")]
        if "main::burn" in names:
            count += s.count
            wrong += s.count * ([n for n in names if n in want] != want or any("do not fit" in n for n in s.stack))
        python += s.count * ("burn" in s.stack)
    lib.ok(count >= SECONDS * HZ / 16 and wrong <= 0.01 * count,
           "Perl in Python: %d stacks have both, in order, %d have not" % (count, wrong))
    lib.ok(python >= SECONDS * HZ / 16, "Perl in Python: %d stacks are in Python's own work" % python)


# --- servers ---

def inside(root, argv):
    return (["chroot", root] if root else []) + argv


def root_with(*paths):
    """A system that has all of these files: "" is this one. None: there is none."""
    for root in [""] + sorted(r.rstrip("/") for r in glob.glob(CHROOTS + "/*/")):
        if all(glob.glob(root + p) for p in paths):
            return root
    return None


def family(pid):
    """The process and all that it has started."""
    children = []
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        children += [int(child) for child in pathlib.Path(path).read_text().split()]
    return [pid] + [p for child in children for p in family(child)]


def ask(port, path):
    return urllib.request.urlopen("http://127.0.0.1:%d/%s" % (port, path), timeout=SECONDS * 5).read()


def serve(what, argv, port, path):
    """Pids of the server, which has answered one request."""
    # Apache ends its whole process group.
    server = lib.start(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def answered():
        try:
            return ask(port, path) is not None
        except OSError:
            return server.poll() is not None

    lib.ok(lib.wait_for(answered, timeout=SECONDS * 5) and server.poll() is None, "%s answers" % what)
    pids = family(server.pid)
    lib.end(server, signal.SIGTERM)
    return pids


def uwsgi(root):
    where, port = place(root), lib.free_port()
    return serve("uWSGI", inside(root, ["/usr/bin/uwsgi", "--plugin", "python3", "--chdir", where, "--wsgi-file", "wsgi.py",
                               "--master", "--processes", "2", "--http-socket", "127.0.0.1:%d" % port,
                               "--die-on-term"]), port, "?%d" % SECONDS)


def apache(root, lines, path):
    where, port = place(root), lib.free_port()
    config = """
ServerName localhost
ServerRoot %s
Listen 127.0.0.1:%d
PidFile apache.pid
ErrorLog error.log
User www-data
Group www-data
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
DocumentRoot %s
""" % (where, port, where)
    pathlib.Path(root + where, "apache.conf").write_text(config + lines.replace("WHERE", where))
    return serve("Apache", inside(root, ["/usr/sbin/apache2", "-D", "FOREGROUND", "-f", where + "/apache.conf"]), port, path)


def mod_php(root):
    module = glob.glob(root + "/usr/lib/apache2/modules/libphp*.so")[0][len(root):]
    return apache(root, """LoadModule php_module %s
<FilesMatch \\.php$>
SetHandler application/x-httpd-php
</FilesMatch>
""" % module, "php.php")


def mod_perl(root):
    return apache(root, """LoadModule perl_module /usr/lib/apache2/modules/mod_perl.so
PerlSwitches -IWHERE
<Location />
SetHandler modperl
PerlResponseHandler Handler
</Location>
""", "?%d" % SECONDS)


def postgres(root, language, extension, body):
    """The pid of a backend that ran a function of this language."""
    where = place(root)
    data, bin_ = where + "/data", glob.glob(root + "/usr/lib/postgresql/*/bin")[-1][len(root):]
    os.chmod(root + where, 0o777)
    user = inside(root, ["/usr/sbin/runuser", "-u", "postgres", "--"])
    subprocess.run(user + [bin_ + "/initdb", "-D", data, "-A", "trust"], check=True, stdout=subprocess.DEVNULL)
    server = lib.start(user + [bin_ + "/postgres", "-D", data, "-k", where, "-F", "-c", "listen_addresses=",
                               "-c", "dynamic_shared_memory_type=mmap"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    psql = user + [bin_ + "/psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", where, "-d", "postgres",
                   "-f", "-"]

    def query(sql):
        return subprocess.run(psql, input=sql, text=True, capture_output=True)

    lib.need(lib.wait_for(lambda: query("SELECT 1").returncode == 0, 20), language, "PostgreSQL does not begin")
    body = body.replace("WHERE", where).replace("SECONDS", str(SECONDS))
    r = query("CREATE EXTENSION %s; CREATE FUNCTION truth() RETURNS void LANGUAGE %s AS $$%s$$;"
              "SELECT pg_backend_pid(); SELECT truth();" % (extension, extension, body))
    lib.ok(r.returncode == 0, "%s runs its function %s" % (language, r.stderr.strip()[-200:]))
    lib.end(server, signal.SIGINT)
    return [int(r.stdout.split()[0])] if r.returncode == 0 else []


def plpython(root):
    return postgres(root, "PL/Python", "plpython3u",
                    "\nimport sys, time\nsys.path.insert(0, 'WHERE')\n"
                    "import python\npython.main(time.time() + SECONDS)\n")


def plperl(root):
    return postgres(root, "PL/Perl", "plperlu", "\n@main::ARGV = (SECONDS);\n$0 = 'WHERE/perl.pl';\ndo $0;\n")


PHP = ("/usr/sbin/apache2", "/usr/lib/apache2/modules/libphp*.so")
PERL = ("/usr/sbin/apache2", "/usr/lib/apache2/modules/mod_perl.so")
SERVERS = [
    ("uWSGI", "python", uwsgi, ("/usr/bin/uwsgi", "/usr/lib/uwsgi/plugins/python3*_plugin.so"), ["wsgi"]),
    ("mod_php", "php", mod_php, PHP, []),
    ("mod_perl", "perl", mod_perl, PERL, ["handler"]),
    ("PL/Python", "python", plpython, ("/usr/lib/postgresql/*/lib/plpython3.so",), ["plpython"]),
    ("PL/Perl", "perl", plperl, ("/usr/lib/postgresql/*/lib/plperl.so",), ["plperl"]),
]


def main():
    lib.need(lib.SOURCE != "perf", "embedded interpreters by perf", "perf does not walk interpreters")
    d = lib.Otprofd(hz=HZ, profile={"sample_attributes": "process.pid"})
    # label, language, truth, pids
    ran, both = [], None
    for languages in (["python"], ["ruby"], ["perl", "python"]):
        label = " and ".join(languages) + " in C++"
        if not all(LIBRARIES[language] for language in languages):
            lib.skip(label, "there is no library of it")
            continue
        pids = embed(*languages)
        ran += [(label + ": " + language, language, None, pids) for language in languages]
    if LIBRARIES["python"] and LIBRARIES["perl"]:
        both = nested()
    if shutil.which("gdb"):
        ran.append(("gdb", "python", None, gdb()))
    else:
        lib.skip("gdb", "not installed")
    for label, language, begin, files, leads in SERVERS if ALL else []:
        root = root_with(*files)
        if root is None:
            lib.skip(label, "not installed, nor in a chroot")
            continue
        ran.append((label, language, truth(language, *leads), begin(root)))
    last = d.stop()
    by_pid = known_program.samples_by_pid(d)
    for label, language, text, pids in ran:
        own = known_program.LANGUAGES[language][0]
        others = {kind for kind, _, _ in known_program.LANGUAGES.values()} - {own}
        samples = [s for pid in pids for s in by_pid[pid] if not others & set(s.types)]
        known_program.judge(label, language, samples, HZ, text)
    if both:
        judge_nested(by_pid[both[0]])
    lib.check_ledger(last, "the ledger balances", stopped=True)


main()
lib.finish()
