#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads decode/tables: checks every line and applies the branch deltas.

Shared by gen_tables.py, which writes code from it, and by the table lint. It
writes nothing; every complaint is a TableError that names file and line.
"""
import os
import re

import layout_rules
from table_error import TableError


# kind: (file, columns, number of key columns, sorted over the whole file)
KINDS = {
    "struct": ("structs.in", ("name", "bytes"), 1, False),
    "field": ("fields.in", ("struct", "role", "offset", "width", "direction"), 2, False),
    "layout": ("layouts.in", ("struct", "field", "offset", "bytes", "type", "when"), 2, False),
    "escape": ("escapes.in", ("number", "name", "structs"), 1, True),
    "uvm": ("uvm.in", ("number", "name", "structs"), 1, True),
    "class": ("classes.in", ("number", "name", "category", "struct"), 1, True),
    "control": ("controls.in", ("number", "name", "struct", "privilege"), 1, True),
    "interface": ("interfaces.in", ("class", "interface", "name"), 2, True),
    "status": ("status.in", ("number", "name"), 1, True),
    "nvkms": ("nvkms.in", ("number", "name"), 1, True),
    "tag": ("tags.in", ("name", "tag"), 1, True),
    "value": ("values.in", ("set", "bits", "value", "name"), 3, True),
}
# Kinds that hold for every branch: no deltas.
EVERYWHERE = ("tag", "value")
NUMERIC = {"number", "class", "interface", "bytes", "offset", "width", "value"}
MAX = {"number": 2**32 - 1, "class": 0xFFFF, "interface": 0xFF, "bytes": 2**32 - 1, "offset": 0xFFFF, "width": 8,
       "value": 2**32 - 1}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
STRUCTS = re.compile(r"-|[A-Za-z_][A-Za-z0-9_]*(\[\])?(,[A-Za-z_][A-Za-z0-9_]*)?")


class Line:
    """One fact: its columns, where it stands and where it comes from."""

    def __init__(self, kind, columns, values, place, origin, section):
        self.kind, self.place, self.origin, self.section = kind, place, origin, section
        self.columns = dict(zip(columns, values))

    def __getitem__(self, column):
        return self.columns[column]

    @property
    def key(self):
        columns = KINDS[self.kind][1][: KINDS[self.kind][2]]
        return tuple(self.columns[c] for c in columns)

    @property
    def order(self):
        """What the lines of a section are sorted by: structs read as in C, sets by bit."""
        if self.kind == "layout":
            return (self["struct"], self["offset"], self["field"])
        if self.kind == "value":
            return (self["set"], layout_rules.parse_bits(self)[1], self["value"])
        return self.key

    def same(self, other):
        return self.columns == other.columns


def parse_columns(kind, words, place):
    columns = KINDS[kind][1]
    if len(words) != len(columns):
        raise TableError(f"{place}: {kind} wants {len(columns)} columns ({' '.join(columns)}), got {len(words)}")
    values = []
    for column, word in zip(columns, words):
        if column in NUMERIC:
            if not re.fullmatch(r"0x[0-9a-f]+|[0-9]+", word):
                raise TableError(f"{place}: {column} '{word}' is not a number in lower case")
            value = int(word, 0)
            if value > MAX[column]:
                raise TableError(f"{place}: {column} {word} is over {MAX[column]:#x}")
            values.append(value)
        elif column in ("struct", "structs"):
            if not STRUCTS.fullmatch(word):
                raise TableError(f"{place}: '{word}' is not a struct name or -")
            values.append(word)
        elif column in ("field", "bits", "type", "when"):
            if column == "field" and not DOTTED.fullmatch(word):
                raise TableError(f"{place}: '{word}' is not a field name")
            values.append(word)
        elif column == "name" and kind not in ("interface", "value"):
            if not NAME.fullmatch(word):
                raise TableError(f"{place}: '{word}' is not a name")
            values.append(word)
        else:
            if not re.fullmatch(r"[A-Za-z0-9_-]+", word):
                raise TableError(f"{place}: '{word}' has characters that do not belong in {column}")
            values.append(word)
    return values


def read_lines(path, name):
    with open(path, encoding="ascii") as handle:
        for number, text in enumerate(handle, 1):
            text = text.rstrip("\n")
            if text != text.strip() or "\t" in text:
                raise TableError(f"{name}:{number}: blanks at the ends or a tab")
            yield f"{name}:{number}", text


def read_base(directory, kind):
    """Lines of one base table, in file order."""
    file_name, columns, _, whole = KINDS[kind]
    lines, origin, section, sorted_seen, previous = [], None, 0, None, None
    seen = {}
    for place, text in read_lines(os.path.join(directory, file_name), file_name):
        if text in ("#sorted", "#sorted-by-section"):
            sorted_seen = text
        elif text.startswith("#From "):
            origin, section = text[6:].strip(), section + 1
            if not whole:
                previous = None
        elif text.startswith("#") or not text:
            continue
        else:
            if not origin:
                raise TableError(f"{place}: no #From line above: where does this come from?")
            line = Line(kind, columns, parse_columns(kind, text.split(" "), place), place, origin, section)
            if line.key in seen:
                raise TableError(f"{place}: {kind} {text.split(' ')[0]} is already at {seen[line.key]}")
            if previous is not None and line.order < previous:
                raise TableError(f"{place}: out of order: comes after a greater key")
            seen[line.key] = place
            previous = line.order
            lines.append(line)
    wanted = "#sorted" if whole else "#sorted-by-section"
    if sorted_seen != wanted:
        raise TableError(f"{file_name}:1: wants a {wanted} line")
    return lines


def read_driver(directory, name):
    """(branch, parent, since, [(sign, Line)]) of one drivers/<branch>.in."""
    path = os.path.join(directory, "drivers", name)
    branch = parent = origin = previous = None
    section, since, deltas = 0, 0, []
    for place, text in read_lines(path, "drivers/" + name):
        words = text.split(" ")
        if words[0] == "branch" and len(words) == 2:
            branch = words[1]
        elif words[0] == "parent" and len(words) == 2:
            parent = words[1]
        elif words[0] == "since" and len(words) == 2 and words[1].isdigit():
            since = int(words[1])
        elif text.startswith("#From "):
            origin, section = text[6:].strip(), section + 1
        elif text.startswith("#") or not text:
            continue
        else:
            sign, kind = text[0], words[0][1:]
            if sign not in "+-=" or kind not in KINDS or kind in EVERYWHERE:
                raise TableError(f"{place}: wants +, - or = and a kind of line, got '{words[0]}'")
            if not origin:
                raise TableError(f"{place}: no #From line above: where does this come from?")
            line = Line(kind, KINDS[kind][1], parse_columns(kind, words[1:], place), place, origin, section)
            order = (list(KINDS).index(kind), section if not KINDS[kind][3] else 0, line.order)
            if previous is not None and order <= previous:
                raise TableError(f"{place}: out of order or twice: comes after a greater key")
            previous = order
            deltas.append((sign, line))
    if branch is None or parent is None:
        raise TableError(f"drivers/{name}:1: wants a branch and a parent line")
    if branch + ".in" != name or not branch.isdigit():
        raise TableError(f"drivers/{name}:1: branch {branch} does not fit the file's name")
    return branch, parent, since, deltas


def since_of(directory, branch):
    """First minor version that the tables of a branch hold for."""
    return read_driver(directory, branch + ".in")[2]


def struct_ids(branches):
    """{struct name: place}, the same for every generator."""
    names = sorted({line["name"] for _, _, tables in branches for line in tables["struct"].values()})
    return {name: i for i, name in enumerate(names)}


def apply_deltas(base, deltas):
    tables = {kind: dict(lines) for kind, lines in base.items()}
    for sign, line in deltas:
        table = tables[line.kind]
        old = table.get(line.key)
        if sign == "+":
            if old:
                raise TableError(f"{line.place}: + but the parent has it at {old.place}; use =")
            table[line.key] = line
        elif old is None:
            raise TableError(f"{line.place}: {sign} but the parent does not have it")
        elif sign == "-":
            if not old.same(line):
                raise TableError(f"{line.place}: - but the parent says otherwise at {old.place}")
            del table[line.key]
        else:
            if old.same(line):
                raise TableError(f"{line.place}: = but nothing changes against {old.place}")
            table[line.key] = line
    return tables


def check_references(branch, tables, struct_names):
    """Structs that are named somewhere must be known in some branch."""
    for kind, column in (("escape", "structs"), ("uvm", "structs"), ("class", "struct"), ("control", "struct"),
                         ("field", "struct"), ("layout", "struct")):
        for line in tables[kind].values():
            for name in line[column].replace("[]", "").split(","):
                if name != "-" and name not in struct_names:
                    raise TableError(f"{line.place}: struct {name} is in no structs table")
    sizes = {line["name"]: line["bytes"] for line in tables["struct"].values()}
    for line in tables["field"].values():
        size = sizes.get(line["struct"])
        if size is None:
            raise TableError(f"{line.place}: branch {branch} has no struct {line['struct']}")
        if line["width"] not in (1, 2, 4, 8):
            raise TableError(f"{line.place}: width {line['width']} is not 1, 2, 4 or 8")
        if line["offset"] + line["width"] > size:
            raise TableError(f"{line.place}: ends behind the struct's {size} bytes in branch {branch}")
        if line["direction"] not in ("in", "out", "both"):
            raise TableError(f"{line.place}: direction '{line['direction']}' is not in, out or both")


def load(directory):
    """All tables: ([(branch, parent, {kind: {key: Line}})] oldest first, tags)."""
    base = {}
    for kind in KINDS:
        base[kind] = {line.key: line for line in read_base(directory, kind)}
    drivers = {}
    for name in sorted(os.listdir(os.path.join(directory, "drivers"))):
        if not name.endswith(".in"):
            raise TableError(f"drivers/{name}:1: not a .in file")
        branch, parent, _, deltas = read_driver(directory, name)
        drivers[branch] = (parent, deltas)
    roots = [branch for branch, (parent, _) in drivers.items() if parent == "none"]
    if len(roots) != 1:
        raise TableError(f"drivers: wants one root with 'parent none', got {len(roots)}")
    done = {roots[0]: apply_deltas(base, drivers[roots[0]][1])}
    waiting = [branch for branch in drivers if branch not in done]
    while waiting:
        ready = [branch for branch in waiting if drivers[branch][0] in done]
        if not ready:
            branch = waiting[0]
            raise TableError(f"drivers/{branch}.in:1: unknown parent {drivers[branch][0]}")
        for branch in ready:
            done[branch] = apply_deltas(done[drivers[branch][0]], drivers[branch][1])
            waiting.remove(branch)
    branches = [(b, drivers[b][0], done[b]) for b in sorted(done, key=int)]
    struct_names = {line["name"] for _, _, tables in branches for line in tables["struct"].values()}
    for branch, _, tables in branches:
        check_references(branch, tables, struct_names)
        layout_rules.check(branch, tables)
    names = {line["name"] for _, _, tables in branches for kind in ("escape", "uvm", "class", "control", "status")
             for line in tables[kind].values()}
    tags = {}
    for line in base["tag"].values():
        if line["name"] not in names:
            raise TableError(f"{line.place}: no table has the name {line['name']}")
        tags[line["name"]] = line
    return branches, tags
