#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every exit status is documented: compares userspace/man/exit_codes.def with the
constants and numbers in the sources, both ways, and with the manual. TAP."""
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
USER = os.path.join(TOP, "userspace")
STRING = r'"((?:[^"\\]|\\.)*)"'
# Files beside every main.cpp whose returned numbers are exit statuses.
STATUS_FILES = ("daemon/service.cpp",)
# Where such constants are defined, or handed through.
DEFINITIONS = ("cli/commands.h",)
# The recorder wraps exit(2) of the program it is loaded into.
OTHERS = ("preload/",)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def sources():
    for folder, _, files in os.walk(USER):
        for name in sorted(files):
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, USER)
            if name.endswith((".cpp", ".h")) and not relative.startswith(OTHERS) and relative not in DEFINITIONS:
                yield relative, re.sub(r"//[^\n]*", "", read(path))


def constants():
    """Value of every integer constant, by name; the same name may have several."""
    values = {}
    for folder, _, files in os.walk(USER):
        for name in files:
            if name.endswith((".cpp", ".h")):
                for found, value in re.findall(r"constexpr int (k\w+) = (\d+);", read(os.path.join(folder, name))):
                    values.setdefault(found, set()).add(int(value))
    return values


def value_of(word, known):
    if word.isdigit():
        return {int(word)}
    return known.get(word.split("::")[-1], set())


def codes_in(relative, text, known):
    codes = set()
    for word in re.findall(r"\bkExit(?:Ok|Finding|Trouble)\b", text):
        codes |= known[word]
    for word in re.findall(r"(?:::|\bstd::)_?[eE]xit\(([\w:]+)\)", text):
        codes |= value_of(word, known)
    if "128 + WTERMSIG" in text:
        codes.add(128)
    if relative == "cli/flags.cpp":
        for statement in re.findall(r"\bexit_code = ([^;]*);", text):
            for word in re.findall(r"(?<![=!<>] )\b(\d+)\b(?! [=?])", statement):
                codes.add(int(word))
    if os.path.basename(relative) == "main.cpp" and not relative.startswith("probe/") or relative in STATUS_FILES:
        for statement in re.findall(r"\breturn ([^;]*);", text):
            for word in re.findall(r"(?:^|[?:] )((?:\w+::)*(?:\d+|k[A-Z]\w+))(?= :|$)", statement):
                codes |= value_of(word, known)
    outcome = re.search(r"enum class Outcome \{(.*?)\}", text, re.S)
    if outcome:
        codes |= {int(value) for value in re.findall(r"= (\d+)", outcome.group(1))}
    return codes


def table():
    text = read(os.path.join(USER, "man", "exit_codes.def"))
    rows = re.findall(rf"^EXIT\({STRING}, (\d+), {STRING}, {STRING}\)$", text, re.M)
    if len(rows) != len(re.findall(r"^EXIT\(", text, re.M)) or not rows:
        sys.exit("check_exit: exit_codes.def has lines that do not have the expected form")
    return [(who, int(code), files.split(), when) for who, code, files, when in rows]


def compare(found, rows):
    documented = {}
    for _, code, files, _ in rows:
        for file in files:
            documented.setdefault(file, set()).add(code)
    wrong = []
    for file in sorted(set(found) | set(documented)):
        for code in sorted(found.get(file, set()) - documented.get(file, set())):
            wrong.append(f"userspace/{file}: exit status {code} is not in userspace/man/exit_codes.def")
        for code in sorted(documented.get(file, set()) - found.get(file, set())):
            wrong.append(f"userspace/man/exit_codes.def: {code} of {file} is not in that file")
    return wrong


def commands_without(rows):
    names = {name for who, _, _, _ in rows for name in who.split(", ")}
    commands = re.findall(r"^COMMAND\((\w+),", read(os.path.join(USER, "cli", "flags.def")), re.M)
    return [f"command {name} has no row in exit_codes.def" for name in commands if name not in names]


def manual_without(rows):
    lacking = []
    for page, only in (("gpuwatch.1", None), ("gpuwatchd.8", "gpuwatchd")):
        text = re.sub(r"\\(-)", r"\1", read(os.path.join(USER, "man", page)))
        lacking += [f"{page} lacks: {who} {code}: {when}" for who, code, _, when in rows if only in (None, who)
                    if f"\\fB{code}\\fR\n{when}\n" not in text or who not in text]
    return lacking


def main():
    known = constants()
    found = {relative: codes for relative, text in sources() if (codes := codes_in(relative, text, known))}
    rows = table()
    planted = dict(found)
    planted["cli/commands/hash.cpp"] = found.get("cli/commands/hash.cpp", set()) | {5}
    planted.pop("cli/commands/doctor.cpp", None)
    seen = compare(planted, rows)
    results = [
        ("a status that nobody documents is seen, and a row that is no longer true",
         [] if any("hash.cpp: exit status 5" in line for line in seen) and any("of cli/commands/doctor.cpp" in line for line in seen)
         else ["the planted ones were not seen"]),
        ("every exit status in the sources is in the table, and the other way round", compare(found, rows)),
        ("every command has its exit statuses in the table", commands_without(rows)),
        ("the manual has the table", manual_without(rows)),
    ]
    for number, (what, wrong) in enumerate(results, 1):
        print(f"{'not ok' if wrong else 'ok'} {number} - {what}")
        for line in wrong:
            print(f"# {line}")
    failed = sum(bool(wrong) for _, wrong in results)
    print(f"1..{len(results)}\n# check_exit: {len(results) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
