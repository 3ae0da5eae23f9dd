# SPDX-License-Identifier: Apache-2.0
"""Rules of layouts.in and values.in: what a type, a condition and a set of bits
may be, and that the fields of a struct neither overlap nor leave it. Used by
table_files.py on every branch and by gen_layouts.py; writes nothing.
"""
import re

from table_error import TableError

BITS = re.compile(r"([0-9]{1,2}):([0-9]{1,2})")
LAYOUT_TYPE = re.compile(r"([a-z]+)(?::([A-Za-z0-9_]+))?(?:\[([1-9][0-9]{0,4})\])?")
WHEN = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)=([0-9]{1,9})")
# type: what may follow the colon. Widths of all but raw, text and uuid are 1, 2, 4 or 8.
FD_KINDS = ("ctl", "map", "uvm")
LAYOUT_TYPES = {"number": None, "signed": None, "hex": None, "handle": None, "address": None, "offset": None,
                "bytes": None, "ns": None, "limit": None, "bool": None, "status": None, "class": None,
                "control": None, "nvkms": None, "fd": "fd", "flags": "set", "enum": "set", "struct": "struct",
                "uuid": None, "text": None, "raw": None}


def parse_bits(line):
    """(high, low) of the bits column of a value line."""
    match = BITS.fullmatch(line["bits"])
    high, low = (int(part) for part in match.groups()) if match else (0, 1)
    if not low <= high <= 31:
        raise TableError(f"{line.place}: bits '{line['bits']}' are not HIGH:LOW within 31:0")
    return high, low


def parse_type(line):
    """(type, set or struct or None, count) of a layout line's type column."""
    match = LAYOUT_TYPE.fullmatch(line["type"])
    if not match or match[1] not in LAYOUT_TYPES:
        raise TableError(f"{line.place}: type '{line['type']}' is not one of {' '.join(sorted(LAYOUT_TYPES))}")
    return match[1], match[2], int(match[3] or 1)


def parse_when(line):
    """(field, value) of a layout line's when column, None where it always holds."""
    if line["when"] == "-":
        return None
    match = WHEN.fullmatch(line["when"])
    if not match:
        raise TableError(f"{line.place}: when '{line['when']}' is not field=number or -")
    return match[1], int(match[2])


def check_values(values):
    """{set: [(high, low)]}, refusing ranges of one set that cross."""
    ranges = {}
    for line in values.values():
        high, low = parse_bits(line)
        if line["value"] >> (high - low + 1):
            raise TableError(f"{line.place}: value {line['value']:#x} does not fit into bits {line['bits']}")
        known = ranges.setdefault(line["set"], [])
        for other_high, other_low in known:
            if (high, low) != (other_high, other_low) and low <= other_high and other_low <= high:
                raise TableError(f"{line.place}: bits {line['bits']} cross {other_high}:{other_low} of the same set")
        if (high, low) not in known:
            known.append((high, low))
    return ranges


def check_type(line, sizes, sets):
    kind, name, count = parse_type(line)
    wants = LAYOUT_TYPES[kind]
    if name is not None and wants is None or name is None and wants in ("set", "struct") and kind != "flags":
        raise TableError(f"{line.place}: type '{line['type']}': {kind} takes {'a name' if wants else 'no name'}")
    if wants == "fd" and name is not None and name not in FD_KINDS:
        raise TableError(f"{line.place}: fd:{name} is not one of {' '.join('fd:' + kind for kind in FD_KINDS)}")
    if wants == "set" and name is not None and name not in sets:
        raise TableError(f"{line.place}: values.in has no set {name}")
    width, rest = divmod(line["bytes"], count)
    if rest or not width or line["bytes"] > 0xFFFF:
        raise TableError(f"{line.place}: {line['bytes']} bytes are not {count} elements")
    if wants == "struct":
        if sizes.get(name) != width:
            raise TableError(f"{line.place}: struct {name} does not have {width} bytes")
    elif kind == "uuid":
        if width != 16:
            raise TableError(f"{line.place}: a uuid has 16 bytes, not {width}")
    elif kind in ("raw", "text"):
        if count != 1:
            raise TableError(f"{line.place}: {kind} has no elements")
    elif width not in (1, 2, 4, 8):
        raise TableError(f"{line.place}: width {width} is not 1, 2, 4 or 8")


def check_places(lines):
    """Fields of one struct, none over another unless a third field decides between them."""
    lines = sorted(lines, key=lambda line: line["offset"])
    for line in lines:
        when = parse_when(line)
        if when and not any(other["field"] == when[0] and other["when"] == "-" for other in lines):
            raise TableError(f"{line.place}: struct {line['struct']} has no field {when[0]}")
    for i, line in enumerate(lines):
        when = parse_when(line)
        for other in lines[i + 1:]:
            if other["offset"] >= line["offset"] + line["bytes"]:
                break
            other_when = parse_when(other)
            apart = when and other_when and when[0] == other_when[0] and when[1] != other_when[1]
            if not apart:
                later = max(line, other, key=lambda one: (one["offset"], one.place))
                first = other if later is line else line
                raise TableError(f"{later.place}: overlaps {first['field']} at {first.place}")


def check(branch, tables):
    sizes = {line["name"]: line["bytes"] for line in tables["struct"].values()}
    sets = check_values(tables["value"])
    by_struct = {}
    for line in tables["layout"].values():
        size = sizes.get(line["struct"])
        if size is None:
            raise TableError(f"{line.place}: branch {branch} has no struct {line['struct']}")
        if line["offset"] + line["bytes"] > size:
            raise TableError(f"{line.place}: ends behind the struct's {size} bytes in branch {branch}")
        check_type(line, sizes, sets)
        by_struct.setdefault(line["struct"], []).append(line)
    for lines in by_struct.values():
        check_places(lines)
