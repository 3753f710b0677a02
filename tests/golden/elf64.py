# SPDX-License-Identifier: Apache-2.0
"""As much of an ELF file as make_arm64.py needs: code, names, functions by
their unwind tables, and which pages a reader of all that touches."""
import bisect
import struct

PAGE = 4096
PT_LOAD, PF_X = 1, 1
KEPT = (".dynsym", ".dynstr", ".symtab", ".strtab", ".shstrtab", ".eh_frame_hdr", ".note.gnu.build-id", ".dynamic",
        ".plt", ".rela.plt")


class File:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.phoff, self.shoff = struct.unpack_from("<QQ", self.data, 32)
        self.phnum, _, self.shnum, self.shstrndx = struct.unpack_from("<HHHH", self.data, 56)
        self.sections = self._sections()
        self.fdes = sorted(self._fdes())
        self.symbols = sorted(self._symbols())

    def _sections(self):
        heads = [struct.unpack_from("<IIQQQQIIQQ", self.data, self.shoff + 64 * i) for i in range(self.shnum)]
        strings = heads[self.shstrndx][4]
        return {self._string(strings + h[0]): h for h in heads}

    def _string(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def _loads(self):
        for i in range(self.phnum):
            kind, flags, offset, vaddr, _, filesz, _, _ = struct.unpack_from("<IIQQQQQQ", self.data, self.phoff + 56 * i)
            if kind == PT_LOAD:
                yield flags, offset, vaddr, filesz

    def code(self, base):
        """Offset, start and end of the executable mapping."""
        offset, vaddr, size = next((o, v, s) for f, o, v, s in self._loads() if f & PF_X)
        low = offset & -PAGE
        return low, base + vaddr - (offset - low), base + (vaddr + size + PAGE - 1 & -PAGE)

    def offset(self, vaddr):
        return next((o + vaddr - v for _, o, v, s in self._loads() if v <= vaddr < v + s), None)

    def _fdes(self):
        """(start, end, offset of the FDE, offset of its CIE); addresses are pcrel sdata4, as gcc writes them."""
        _, _, _, addr, at, size, *_ = self.sections[".eh_frame"]
        end = at + size
        delta = addr - at
        while at + 4 <= end:
            length, cie = struct.unpack_from("<II", self.data, at)
            if not length:
                break
            if cie:
                start, span = struct.unpack_from("<iI", self.data, at + 8)
                start += at + 8 + delta
                yield start, start + span, at, at + 4 - cie
            at += 4 + length

    def _symbols(self):
        for table in (".symtab", ".dynsym"):
            if table not in self.sections:
                continue
            _, _, _, _, at, size, link, *_ = self.sections[table]
            strings = list(self.sections.values())[link][4]
            for i in range(at, at + size, 24):
                name, info, _, shndx, value, length = struct.unpack_from("<IBBHQQ", self.data, i)
                if info & 15 in (0, 2, 10) and shndx and name and not self._string(strings + name).startswith("$"):
                    yield value, length, self._string(strings + name)

    def names(self, vaddr):
        """All names of the function at vaddr."""
        return [n for v, s, n in self.symbols if v <= vaddr < v + s]

    def instructions(self, name):
        """Addresses of a function's, or of a section of code."""
        if name in self.sections:
            start, size = self.sections[name][3], self.sections[name][5]
        else:
            start, size = next((v, s) for v, s, n in self.symbols if n == name)
        return list(range(start, start + size, 4))

    def _fde(self, vaddr):
        i = bisect.bisect_right(self.fdes, (vaddr, 1 << 64)) - 1
        return self.fdes[i] if i >= 0 and vaddr < self.fdes[i][1] else None

    def function_start(self, vaddr):
        fde = self._fde(vaddr)
        return fde[0] if fde else vaddr

    def pages(self, points):
        """Offsets of the pages that naming and unwinding these addresses reads."""
        spans = [(0, PAGE), (len(self.data) - PAGE, PAGE), (self.shoff, 64 * self.shnum)]
        spans += [(s[4], s[5]) for n, s in self.sections.items() if n in KEPT]
        if ".eh_frame_hdr" not in self.sections:
            spans.append(self.sections[".eh_frame"][4:6])
        for vaddr in points:
            spans.append((max(self.offset(vaddr) - 64, 0), 128))
            fde = self._fde(vaddr - 1) or self._fde(vaddr)
            # Code without tables is read to its return.
            spans += [(at, 256) for at in fde[2:]] if fde else [(self.offset(vaddr), 2048)]
        return {p for at, size in spans for p in range(max(at, 0) & -PAGE, min(at + size, len(self.data)), PAGE)}
