#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns decode/tables into the constexpr arrays that decode/tables.cpp includes.

usage: gen_tables.py TABLES_DIR OUTPUT

Runs at build time with nothing but python3. On a table error it prints
file:line and exits 1, leaving no output behind.
"""
import os
import sys

import table_files
from table_error import TableError

HASH_FACTOR = 0x9E3779B1  # the same in tables.h
NO_STRUCT = 0xFFFF
# kind: (C++ name, key columns, column with the struct)
LOOKUPS = {
    "escape": ("kEscapes", "structs"),
    "uvm": ("kUvm", "structs"),
    "class": ("kClasses", "struct"),
    "control": ("kControls", "struct"),
    "interface": ("kInterfaces", None),
    "status": ("kStatuses", None),
    "nvkms": ("kNvkms", None),
}
PRIVILEGES = ("-", "user", "admin", "kernel", "internal")
# Roles that hold the last byte's offset rather than the length.
PLUS_ONE = {"limit": "length", "limit-bytes": "bytes"}
SOURCES = {"in": 0, "out": 1, "both": 2}


def camel(token):
    return "k" + "".join(part.capitalize() for part in token.split("-"))


def number_key(line):
    if line.kind == "interface":
        return line["class"] << 8 | line["interface"]
    return line["number"]


class Writer:
    def __init__(self, branches, tags, since):
        self.branches, self.tags, self.since, self.out = branches, tags, since, []
        self.struct_id = table_files.struct_ids(branches)
        if len(branches) > 16 or len(self.struct_id) >= NO_STRUCT:
            raise TableError(f"drivers: {len(branches)} branches, {len(self.struct_id)} structs: wider types are needed")

    def emit(self, text):
        self.out.append(text)

    def array(self, head, items):
        self.emit(head + " = {")
        self.out.extend("    " + item + "," for item in items)
        self.emit("};")

    def write_branches(self):
        self.emit(f"inline constexpr unsigned kBranchCount = {len(self.branches)};")
        self.array("inline constexpr Branch kBranches[kBranchCount]",
                   [f'{{{branch}, {self.since[branch]}, "{branch}"}}' for branch, _, _ in self.branches])

    def write_structs(self):
        fields, infos, info_of = [], [], {}
        rows = []
        for _, _, tables in self.branches:
            by_struct = {}
            for line in tables["field"].values():
                by_struct.setdefault(line["struct"], []).append(line)
            row = [0] * len(self.struct_id)
            for line in tables["struct"].values():
                specs = tuple(self.field_spec(f) for f in sorted(by_struct.get(line["name"], []),
                                                                 key=lambda f: (f["direction"] == "out", f["offset"])))
                key = (line["bytes"], specs)
                if key not in info_of:
                    info_of[key] = len(infos)
                    infos.append(f"{{{line['bytes']}, {len(fields)}, {len(specs)}}}")
                    fields.extend(specs)
                row[self.struct_id[line["name"]]] = info_of[key] + 1
            rows.append(row)
        self.array("inline constexpr FieldSpec kFields[]", fields)
        self.array("inline constexpr StructInfo kStructInfos[]", infos)
        self.emit(f"inline constexpr std::uint32_t kStructCount = {len(self.struct_id)};")
        self.emit("inline constexpr std::uint16_t kStructIndex[] = {")
        for row in rows:
            self.emit("    " + ",".join(str(v) for v in row) + ",")
        self.emit("};")

    @staticmethod
    def field_spec(line):
        role = PLUS_ONE.get(line["role"], line["role"])
        plus = int(line["role"] in PLUS_ONE)
        return (f"{{{line['offset']}, model::Field::{camel(role)}, {line['width']}, "
                f"{SOURCES[line['direction']]}, {plus}}}")

    def write_lookup(self, kind):
        cpp, struct_column = LOOKUPS[kind]
        variants = {}  # (key, emitted text) -> branch mask
        for bit, (_, _, tables) in enumerate(self.branches):
            for line in tables[kind].values():
                text = self.entry_tail(line, struct_column)
                variants[(number_key(line), text)] = variants.get((number_key(line), text), 0) | 1 << bit
        rows = sorted(variants.items())
        self.array(f"inline constexpr Entry {cpp}Entries[]",
                   [f"{{{key:#x}, {text[0]}, {mask:#x}, {text[1]}}}" for (key, text), mask in rows])
        first = {}
        for place, ((key, _), _) in enumerate(rows):
            first.setdefault(key, place)
        bits = max(4, (2 * len(first) - 1).bit_length())
        index = [0] * (1 << bits)
        for key, place in first.items():
            slot = (key * HASH_FACTOR & 0xFFFFFFFF) >> (32 - bits)
            while index[slot]:
                slot = (slot + 1) & (len(index) - 1)
            index[slot] = place + 1
        self.emit(f"inline constexpr std::uint16_t {cpp}Index[] = {{" + ",".join(map(str, index)) + "};")
        self.emit(f"inline constexpr Table {cpp}{{{cpp}Entries, {cpp}Index, {len(rows)}, {32 - bits}, "
                  f"{len(index) - 1}}};")

    def entry_tail(self, line, struct_column):
        structs = [NO_STRUCT, NO_STRUCT]
        is_array = 0
        if struct_column and line[struct_column] != "-":
            is_array = int("[]" in line[struct_column])
            for i, name in enumerate(line[struct_column].replace("[]", "").split(",")):
                structs[i] = self.struct_id[name]
        tag = camel(self.tags[line["name"]]["tag"]) if line["name"] in self.tags else "kNone"
        category = camel(line["category"]) if line.kind == "class" else "kNone"
        privilege = 0
        if line.kind == "control":
            if line["privilege"] not in PRIVILEGES:
                raise TableError(f"{line.place}: privilege '{line['privilege']}' is not one of {PRIVILEGES}")
            privilege = PRIVILEGES.index(line["privilege"])
        return (f"{structs[0]}, {structs[1]}",
                f'model::Tag::{tag}, model::Category::{category}, {privilege}, {is_array}, "{line["name"]}"')

    def text(self):
        self.emit("// Generated by decode/gen/gen_tables.py from decode/tables. Do not edit.")
        self.write_branches()
        self.write_structs()
        for kind in LOOKUPS:
            self.write_lookup(kind)
        quoted = ", ".join(f'"{p}"' if p != "-" else '""' for p in PRIVILEGES)
        self.emit(f"inline constexpr std::string_view kPrivileges[] = {{{quoted}}};")
        return "\n".join(self.out) + "\n"


def write_output(usage, argv, make):
    if len(argv) != 3:
        sys.exit(usage.strip())
    try:
        text = make(argv[1])
    except (TableError, OSError, UnicodeDecodeError) as error:
        sys.exit(f"{os.path.basename(argv[0])}: {error}")
    partial = argv[2] + ".partial"
    with open(partial, "w", encoding="ascii") as handle:
        handle.write(text)
    os.replace(partial, argv[2])


def make_text(directory):
    branches, tags = table_files.load(directory)
    since = {branch: table_files.since_of(directory, branch) for branch, _, _ in branches}
    return Writer(branches, tags, since).text()


if __name__ == "__main__":
    write_output(__doc__, sys.argv, make_text)
