#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks decode/tables: form, order, duplicates, provenance, parents.

The generator checks the same on every build; here each rule is also shown to
bite, on a copy with one line broken. TAP on stdout, exit 1 when a check fails.
"""
import os
import shutil
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLES = os.path.join(TOP, "userspace/decode/tables")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "userspace/decode/gen"))
import table_files  # noqa: E402
from table_files import TableError  # noqa: E402

results = []


def report(ok, what, detail=""):
    results.append(ok)
    print(f"{'ok' if ok else 'not ok'} {len(results)} - {what}")
    if detail:
        print(f"# {detail}")


def edit(path, change):
    with open(path, encoding="ascii") as handle:
        lines = handle.read().splitlines()
    change(lines)
    with open(path, "w", encoding="ascii") as handle:
        handle.write("\n".join(lines) + "\n")


def first_data(lines, words=None):
    """Place of the first line that is a fact (with the given start)."""
    for place, line in enumerate(lines):
        if line and not line.startswith(("#", "branch", "parent")) and (words is None or line.startswith(words)):
            return place
    raise AssertionError(f"no line starts with {words}")


def duplicate(lines):
    place = first_data(lines)
    lines.insert(place, lines[place])


def swap(lines):
    place = first_data(lines)
    lines[place], lines[place + 1] = lines[place + 1], lines[place]


def drop_origin(lines):
    lines[:] = [line for line in lines if not line.startswith("#From")]


def replace(old, new):
    """Replaces `old` in the first fact that has it; without `new` drops that line."""
    def change(lines):
        place = next((at for at, line in enumerate(lines) if old in line and not line.startswith("#")), None)
        if place is None:
            raise AssertionError(f"no line has {old}")
        if new is None:
            del lines[place]
        else:
            lines[place] = lines[place].replace(old, new, 1)
    return change


def set_parent(lines):
    lines[lines.index("parent 570")] = "parent 571"


def append(text):
    return lambda lines: lines.append(text)


# what must be refused: (name, file, change, part of the message)
BREAKS = (
    ("a duplicate number", "escapes.in", duplicate, "already at escapes.in:"),
    ("two lines out of order", "status.in", swap, "out of order"),
    ("facts without a source", "classes.in", drop_origin, "no #From"),
    ("facts of a branch without a source", "drivers/570.in", drop_origin, "no #From"),
    ("an unknown parent", "drivers/580.in", set_parent, "unknown parent 571"),
    ("a missing column", "status.in", replace("0x00000000 NV_OK", "0x00000000"), "wants 2 columns"),
    ("a word for a number", "uvm.in", replace("1 UVM", "one UVM"), "not a number"),
    ("a number in capitals", "classes.in", replace("0x000f", "0x000F"), "not a number in lower case"),
    ("a struct nobody knows", "escapes.in", replace("42 NV_ESC_RM_CONTROL NVOS54_PARAMETERS",
                                                    "42 NV_ESC_RM_CONTROL NVOS99_PARAMETERS"), "in no structs table"),
    ("a field behind its struct", "fields.in", replace("NVOS54_PARAMETERS status 28 4", "NVOS54_PARAMETERS status 30 4"),
     "ends behind the struct"),
    ("an addition the parent has", "drivers/595.in", append("+nvkms 63 NVKMS_IOCTL_FRAMEBUFFER_CONSOLE_DISABLED"),
     "the parent has it"),
    ("a removal the parent lacks", "drivers/595.in", append("-nvkms 9999 NVKMS_IOCTL_NONE"),
     "the parent does not have it"),
    ("a change that changes nothing", "drivers/595.in",
     append("=nvkms 62 NVKMS_IOCTL_ACCEL_VBLANK_SEM_CONTROLS"), "nothing changes"),
    ("a field of a layout behind its struct", "layouts.in",
     replace("NVOS54_PARAMETERS status 28 4", "NVOS54_PARAMETERS status 29 4"), "ends behind the struct"),
    ("a field over another", "layouts.in", replace("NVOS54_PARAMETERS flags 12 4", "NVOS54_PARAMETERS flags 10 4"),
     "overlaps cmd"),
    ("a field twice", "layouts.in", duplicate, "already at layouts.in:"),
    ("fields out of order", "layouts.in", swap, "out of order"),
    ("a type nobody knows", "layouts.in", replace("NVOS54_PARAMETERS cmd 8 4 control", "NVOS54_PARAMETERS cmd 8 4 command"),
     "is not one of"),
    ("a set nobody knows", "layouts.in", replace("enum:NVOS32_FUNCTION", "enum:NVOS32_FUNCTIONS"), "has no set"),
    ("an array that does not divide", "layouts.in", replace("offset[8]", "offset[7]"), "are not 7 elements"),
    ("a struct in a struct of another size", "layouts.in",
     replace("struct:UvmGpuMappingAttributes[32]", "struct:UvmGpuMappingAttributes[16]"), "does not have 72 bytes"),
    ("a condition on a field that is not there", "layouts.in", replace("function=2", "functions=2"), "has no field functions"),
    ("two fields of a union under one condition", "layouts.in",
     replace("data.Free.owner 40 4 hex function=3", "data.Free.owner 40 4 hex function=2"), "overlaps"),
    ("a layout that leaves its struct in a later branch", "drivers/590.in",
     replace("=layout UVM_FREE_PARAMS rmStatus 8 4", "=layout UVM_FREE_PARAMS rmStatus 14 4"), "ends behind the struct"),
    ("a value that does not fit its bits", "values.in", replace("NVOS47_FLAGS 0:0 1", "NVOS47_FLAGS 0:0 2"),
     "does not fit into bits"),
    ("bits that cross others", "values.in", replace("NVOS46_FLAGS 1:0 1 READ_ONLY", "NVOS46_FLAGS 2:0 1 READ_ONLY"), "cross"),
    ("a tag for no call", "tags.in", append("Z_NO_SUCH_CALL alloc"), "no table has the name"),
)


def check_break(name, file_name, change, message):
    with tempfile.TemporaryDirectory() as scratch:
        copy = os.path.join(scratch, "tables")
        shutil.copytree(TABLES, copy)
        edit(os.path.join(copy, file_name), change)
        try:
            table_files.load(copy)
        except TableError as error:
            text = str(error)
            place = file_name.split("/")[-1]
            report(message in text and f"{place}:" in text, f"{name} is refused with file and line", text)
            return
    report(False, f"{name} is refused", f"{file_name} was accepted")


def main():
    try:
        branches, tags = table_files.load(TABLES)
    except (TableError, OSError) as error:
        report(False, "tables follow the rules", str(error))
        branches = None
    if branches:
        report(True, "tables follow the rules")
        newest = branches[-1][2]
        counts = ", ".join(f"{len(newest[kind])} {kind}" for kind in newest if kind != "tag")
        print(f"# branches {', '.join(b for b, _, _ in branches)}; newest has {counts}; {len(tags)} tags")
        # A fact without its header of origin cannot be checked by the next reader.
        vague = [line.place for _, _, tables in branches for table in tables.values() for line in table.values()
                 if len(line.origin) < 8]
        report(not vague, "every fact names where it comes from", " ".join(vague[:5]))
        for case in BREAKS:
            check_break(*case)
    failed = results.count(False)
    print(f"1..{len(results)}")
    print(f"# check_tables: {len(results) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
