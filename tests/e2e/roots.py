# SPDX-License-Identifier: Apache-2.0
"""How many of a program's stacks end at a true root, and why the others do not."""
import lib


def no_stack(names, marker):
    """Why there is no native stack to be whole, or None."""
    if marker == "[cut: inside exec]":
        return "inside exec"
    if marker and names and names[-1].startswith("[anon"):
        return "in or above generated code without tables"
    return None


def count(directory, services):
    """Stacks, those that are whole, those without a native stack by what they are, those that are cut by reason."""
    total = whole = 0
    reasons, apart = {}, {}
    for s in lib.samples(directory):
        names, marker = lib.user_part(s)
        if not (names or marker) or lib.service(s) not in services and lib.executable(s) not in services:
            continue
        why = no_stack(names, marker)
        if why:
            apart[why] = apart.get(why, 0) + s.count
            continue
        total += s.count
        whole += 0 if marker else s.count
        if marker:
            reasons[marker] = reasons.get(marker, 0) + s.count
    return total, whole, apart, reasons
