# SPDX-License-Identifier: Apache-2.0
# Inside embed, for as many seconds as its argument says: Python that calls Perl of the library named by PERL.
import ctypes
import os
import sys
import time

perl = ctypes.CDLL(None).embed_perl
LIBRARY = os.environ["PERL"].encode()


def burn(x):
    for i in range(20000):
        x = (x * 31 + i) % 1000003
    return x


def inner():
    perl(LIBRARY, b"inner()")


def outer():
    burn(1)
    inner()


perl(LIBRARY, b"""
    sub burn { my ($x) = @_; for my $i (1 .. 20000) { $x = ($x * 31 + $i) % 1000003 } return $x }
    sub inner { return burn(1) }
""")
END = time.time() + float(sys.argv[1])
while time.time() < END:
    outer()
