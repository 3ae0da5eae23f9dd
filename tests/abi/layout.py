#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layout.py HEADER: reads the text of the uapi header and prints C statements
that report every struct's size, every field's offset and size, and every
constant's value, as the compiler sees them. It knows no number itself."""

import re
import sys

VERSIONS = ("GPUWATCH_ABI_MAJOR", "GPUWATCH_ABI_MINOR", "GPUWATCH_SCHEMA")


def statements(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = text.replace("\\\n", " ")
    out = []

    def constant(name):
        out.append(f'REPORT("const {name} 0x%llx", (unsigned long long)({name}));')

    macros = re.findall(r"^#define[ \t]+(\w+)[ \t]+(\S.*)$", text, re.M)
    for name, _ in macros:
        if name in VERSIONS:
            constant(name)
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.S | re.M):
        out.append(f'REPORT("struct {name} size %llu", (unsigned long long)sizeof(struct {name}));')
        for field in re.findall(r"(\w+)(?:\[\w+\])?;", body):
            out.append(f'REPORT("field {name}.{field} offset %llu size %llu", '
                       f"(unsigned long long)offsetof(struct {name}, {field}), "
                       f"(unsigned long long)sizeof(((struct {name} *)0)->{field}));")
    for body in re.findall(r"^enum \w+ \{(.*?)^\};", text, re.S | re.M):
        for name in re.findall(r"^\s*(\w+)\s*=", body, re.M):
            constant(name)
    for name, _ in macros:
        if name.startswith("GPUWATCH_") and name not in VERSIONS:
            constant(name)
    return out


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print("\n".join(statements(file.read())))
