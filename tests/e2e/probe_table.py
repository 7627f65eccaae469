"""probe_table.py - for tests of the library alone: makes a probe table (mlprof/probes.h) without the parser, and reads the records.

   Row(symbol, ...) --table()--> bytes --run()--> the session's file "probes" --> program --> dump --> Seen

A program finds the table in its session directory, so a shell that runs under mlprof puts it there and becomes the program.
"""
import collections
import re
import struct

from harness import check, same

GLOB, ENTRY, CALLSTACK, DATA, CAREFUL = 1, 2, 4, 8, 16
ANY = 0xffffffff
FROM = {name: number for number, name in enumerate(("arg", "farg", "stack", "retval", "fretval"))}
TYPES = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64", "string", "strv")
UNWOUND, BAD_STRING = 1, 0xffff
PLACE = 'cp "$0" "$MLPROF_SESSION/probes" && exec "$@"'


class Fetch:
    """Fetch("arg", 2), Fetch("arg", 1, "s64", [16], count=4), Fetch("retval"); at=exit for those that wait for the return"""

    def __init__(self, base, index=1, type="u64", steps=(), count=1, exit=False, counted=False):
        self.base, self.index, self.type, self.steps, self.count = base, index, type, tuple(steps), count
        self.counted = counted                  # the fetch before it says how many there are
        self.exit = exit or base in ("retval", "fretval")

    def bytes(self):
        return struct.pack("<BBBBBB2x4i", FROM[self.base], self.index, TYPES.index(self.type), self.count, len(self.steps),
                           self.counted, *self.steps, *[0] * (4 - len(self.steps)))

    def read(self, data, at):
        """(value, place behind it); None: a string that could not be read"""
        if self.type in ("string", "strv"):
            length, = struct.unpack_from("<H", data, at)
            return (None, at + 2) if length == BAD_STRING else (data[at + 2:at + 2 + length].decode("latin1"), at + 2 + length)
        code = {"f32": "<f4x", "f64": "<d"}.get(self.type, "<q" if self.type[0] == "s" else "<Q")
        values = tuple(struct.unpack_from(code, data, at + 8 * i)[0] for i in range(self.count))
        return values if self.count > 1 else values[0], at + 8 * self.count


class Row:
    def __init__(self, symbol, *fetches, flags=0, stack=16, library=None, min_ns=0):
        self.symbol, self.flags, self.stack, self.library, self.min_ns = symbol, flags, stack, library, min_ns
        self.fetches = sorted(fetches, key=lambda fetch: fetch.exit)
        found = re.search(r"[*?]", symbol)
        self.prefix = found.start() if found else len(symbol)
        self.flags |= GLOB if found else 0


def table(rows):
    text, places, packed, fetches = b"", {}, [], []
    for word in [row.symbol for row in rows] + [row.library for row in rows if row.library]:
        if word not in places:
            places[word] = len(text)
            text += word.encode() + b"\0"
    for row in rows:
        packed.append(struct.pack("<IIIIHHHHQII", places[row.symbol], row.prefix, places[row.library] if row.library else ANY, len(fetches),
                                  len(row.fetches), sum(not fetch.exit for fetch in row.fetches), row.stack, row.flags, row.min_ns, ANY, 0))
        fetches += [fetch.bytes() for fetch in row.fetches]
    head = struct.pack("<IIIIII", 0x4250504d, 2, len(packed), len(fetches), len(text), 0)
    return head + b"".join(packed) + b"".join(fetches) + text


Call = collections.namedtuple("Call", "symbol begin end node left bad values pid")


def chunks(dump):
    """[(pid, lines)]: a chunk that was looked at while it was being filled is there again when it is full"""
    found, lines = {}, []
    for line in dump.splitlines():
        if head := re.match(r"chunk \d+ pid=(\d+) born=(\d+) slot=(\d+) seq=(\d+) .*records=(\d+)", line):
            key, count, lines = tuple(map(int, head.groups()[:4])), int(head[5]), []
            if found.get(key, (0,))[0] <= count:
                found[key] = count, lines
        else:
            lines.append(line)
    return [(key[0], lines) for key, (_, lines) in found.items()]


def unescaped(text):
    return re.sub(r"\\x(..)", lambda found: chr(int(found[1], 16)), text).encode("latin1")


class Seen:
    """What the raw stream says: calls (in order of each stream), sites and losses by process."""

    def __init__(self, dump, rows):
        self.calls, self.sites, self.losses, self.notices = [], {}, collections.Counter(), []
        probes, told, clocks = [], [], []
        for pid, line in ((pid, line) for pid, lines in chunks(dump) for line in lines):
            if found := re.match(r"\s*(\d+)\s+probe begin=(\d+) site=0x([0-9a-f]+) node=#(\d+) \"([^\"]*)\"", line):
                probes.append((pid, int(found[1]), int(found[2]), int(found[3], 16), int(found[4]), unescaped(found[5])))
            elif found := re.search(r"probe_site id=#(\d+) row=(\d+) real=0x([0-9a-f]+) \"(.*)\"", line):
                self.sites[pid, int(found[1])] = int(found[2]), found[4], int(found[3], 16)
                told.append(int(line.split()[0]))
            elif found := re.search(r" clock ticks=(\d+) monotonic=(\d+)ns", line):
                clocks.append((int(found[1]), int(found[2])))
            elif found := re.search(r"loss pid=(\d+) count=(\d+) \"(.*)\"", line):
                self.losses[int(found[1]), found[3]] += int(found[2])
            elif found := re.search(r"notice \"(.*)\"", line):
                self.notices.append(found[1])
        if told and len(clocks) > 1:
            self.bound_ms = (max(told) - min(told)) * (clocks[-1][1] - clocks[0][1]) / (clocks[-1][0] - clocks[0][0]) / 1e6
        for pid, end, begin, word, node, data in probes:
            row, symbol, _ = self.sites[pid, word & 0xffffffff]
            at, values = 0, []
            for fetch in rows[row].fetches if not rows[row].flags & ENTRY else [f for f in rows[row].fetches if not f.exit]:
                value, at = fetch.read(data, at)
                values.append(value)
            same(f"bytes of a record of {symbol}", at, len(data))
            self.calls.append(Call(symbol, begin, end, node, word >> 32 & 0xffff, word >> 48, values, pid))

    def of(self, symbol):
        return [call for call in self.calls if call.symbol == symbol]

    def loss(self, name, pid):
        return self.losses[pid, name]


def run(box, rows, command, *options, **more):
    """(the run, what was seen of it)"""
    place, raw = box.file(f"probes{box.count}"), box.file(f"raw{box.count}")
    with open(place, "wb") as file:
        file.write(table(rows))
    done = box.run(["/bin/sh", "-c", PLACE, place, *command], f"--raw={raw}", *options, **more)
    dump = box.native([box.tools.mlprof, "dump", raw], timeout=300)
    same(f"dump: {dump.stderr}", dump.status, 0)
    return done, Seen(dump.stdout, rows)
