# SPDX-License-Identifier: Apache-2.0
"""A Python that runs some scripts and nothing else, as a tree for a guest.

  python_root.py DIRECTORY SCRIPT...

Copies the interpreter, the modules that SCRIPTs import, and the libraries of
both; compiled, because under emulation that is slow, and in a form that does
not ask for the source's time. Scripts find their own modules by sys.path."""
import glob
import modulefinder
import os
import py_compile
import shutil
import subprocess
import sys

target, scripts = sys.argv[1], [os.path.abspath(s) for s in sys.argv[2:]]
python = os.path.realpath(sys.executable)


def copy(path):
    to = target + path
    if not os.path.exists(to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(path, to)
    return to


def copy_libraries(path):
    p = subprocess.run(["ldd", path], capture_output=True, text=True)
    for word in p.stdout.split():
        if word.startswith("/"):
            copy(word)


def modules():
    """Files of all that is imported, by scripts and by modules, wherever in the code."""
    files = {os.__file__}
    finder = modulefinder.ModuleFinder(sorted({os.path.dirname(s) for s in scripts}) + sys.path)
    # An encoding that names of hosts need imports more.
    for script in scripts + [os.path.join(os.path.dirname(os.__file__), "encodings", "idna.py")]:
        finder.run_script(script)
    files.update(m.__file__ for m in finder.modules.values() if m.__file__)
    library = os.path.dirname(os.__file__)
    # Found at run time: encodings by name, site by the interpreter.
    files.update(glob.glob(os.path.join(library, "encodings", "*.py")))
    files.update(os.path.join(library, m + ".py") for m in ("site", "sitecustomize", "_sysconfigdata__linux_x86_64-linux-gnu"))
    return sorted(f for f in files if os.path.exists(f) and f.startswith(os.path.dirname(library)))


for path in [python] + modules():
    to = copy(path)
    if path.endswith(".py"):
        py_compile.compile(to, dfile=path, doraise=False, quiet=1,
                           invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    else:
        copy_libraries(path)
os.makedirs(target + "/bin", exist_ok=True)
link = target + "/bin/python3"
if not os.path.lexists(link):
    os.symlink(python, link)
