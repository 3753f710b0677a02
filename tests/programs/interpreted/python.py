# SPDX-License-Identifier: Apache-2.0
# Runs for as many seconds as its argument says, in two threads. Every call in it stands in python.truth, with its lines.
import functools
import sys
import threading
import time


def one(x):
    for i in range(3000):
        x = (x * 31 + i) % 1000003
    return x


def two(x):
    for i in range(6000):
        x = (x * 31 + i) % 1000003
    return x


def three(x):
    for i in range(9000):
        x = (x * 31 + i) % 1000003
    return x


def recurse(depth, x):
    if depth > 0:
        x += 1
        return recurse(depth - 1, x) + 1
    return three(x)


class Base:
    def __init__(self, x):
        self.x = one(x)

    def method(self, x):
        return self.inner(x)

    def inner(self, x):
        return one(x)

    @property
    def value(self):
        return two(self.x)

    @staticmethod
    def static(x):
        return two(x)

    @classmethod
    def late(cls, x):
        return cls.static(x)

    def __getattr__(self, name):
        return one(len(name))

    def __add__(self, other):
        return two(other)

    def __enter__(self):
        return one(1)

    def __exit__(self, *args):
        two(2)


class Derived(Base):
    def __init__(self, x):
        super().__init__(x)

    def inner(self, x):
        two(x)
        return super().inner(x)


def decorated(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x)
    return wrapper


@decorated
def plain(x):
    return one(x)


def closures(x):
    def add(y):
        return one(x + y)

    arrow = lambda y: two(x + y)
    return add(1) + arrow(2)


def numbers(x):
    for i in range(3):
        yield one(x + i)
    yield from more(x)


def more(x):
    yield two(x)
    yield three(x)


async def awaits(x):
    return await awaited(x) + await awaited(x)


async def awaited(x):
    return two(x)


def coroutine(x):
    c = awaits(x)
    try:
        c.send(None)
    except StopIteration as end:
        return end.value


def fail(x):
    one(x)
    raise ValueError("one")


def catches(x):
    try:
        fail(x)
    except ValueError:
        two(x)
    finally:
        one(x)


def compare(x):
    return one(x)


def callbacks(x):
    sorted([3, 1, 2], key=compare)
    list(map(lambda y: two(y), [x, x]))
    functools.reduce(lambda a, b: one(a + b), [1, 2, 3])
    functools.partial(Base.static, x)()


def comprehensions(x):
    sum([one(x) for i in range(2)])
    sum(two(x) for i in range(2))


def strings(x, code=compile("def inner(y):\n    return two(y)\n\ninner(x)\n", "string", "exec")):
    scope = {"two": two, "x": x}
    exec(code, scope)


def classes(x):
    class Body:
        y = one(x)

    return Body.y


def many(x, wide={1: "ä", 2: "—"}):
    return two(
        x +
        len(wide)
    )


def größe(x):
    return one(x)


def work(x):
    recurse(4, x)
    base = Base(x)
    base.method(x)
    base.value
    Derived.late(x)
    base.missing
    base + 1
    with base:
        two(x)
    derived = Derived(x)
    derived.method(x)
    plain(x)
    closures(x)
    for y in numbers(x):
        pass
    coroutine(x)
    catches(x)
    callbacks(x)
    comprehensions(x)
    strings(x)
    classes(x)
    many(x)
    größe(x)


def main(end):
    while time.time() < end:
        work(1)


if __name__ == "__main__":
    END = time.time() + float(sys.argv[1])
    threading.Thread(target=main, args=(END,)).start()
    main(END)
