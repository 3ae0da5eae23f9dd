#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/integer_limit.py [--fatbin FILE] [--sm 90] [--sms N --clock-mhz MHZ [--measured GB_PER_S]] [--check DISASSEMBLER]

The integer limit of gpuwatch_hash, from the machine code that is checked in: how many instructions of which pipe one
block of 64 bytes takes, and what a multiprocessor can do of them per clock. Needs no GPU and no CUDA: it reads opcodes
itself. --check has a disassembler (nvdisasm) say the same of every instruction. Prints one line of JSON; exit 2 where the
code is not as it expects (then its table or its idea of the kernel's loop is out of date)."""
import argparse
import collections
import heapq
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FATBIN = os.path.join(TOP, "kernels", "images", "probe.fatbin")
KERNEL = "gpuwatch_hash"

# Opcode: the low 9 bits of an instruction; bits 9..11 say which operands it has.
ALU = {0x002: "MOV", 0x007: "SEL", 0x00C: "ISETP", 0x010: "IADD3", 0x011: "LEA", 0x012: "LOP3", 0x016: "PRMT",
       0x019: "SHF", 0x036: "VIADD"}
FMA = {0x024: "IMAD", 0x025: "IMAD"}
OTHER = {0x005: "CS2R", 0x087: "USEL", 0x08C: "UISETP", 0x092: "ULOP3", 0x096: "UPRMT", 0x099: "USHF", 0x0B9: "ULDC",
         0x118: "NOP", 0x119: "S2R", 0x141: "BSYNC", 0x145: "BSSY", 0x147: "BRA", 0x14D: "EXIT", 0x181: "LDG", 0x182: "LDC",
         0x183: "LDL", 0x186: "STG", 0x187: "STL", 0x1C3: "S2UR"}
BRANCH, EXIT, ALWAYS = 0x147, 0x14D, 7
# Results per clock and multiprocessor (CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions"): 64 of
# 32-bit add, logic, shift, funnel shift and compare, and 64 of multiply-add on a pipe of its own; 4 warps are issued.
# Branches of earlier SMs are encoded otherwise.
PER_CLOCK = {90: (64, 64, 128)}

CHUNK, BLOCK, DIGEST = 1024, 64, 32


class Unexpected(Exception):
    pass


def cubin_of(fatbin, sm):
    """The machine code for exactly that SM, of a container with nothing compressed."""
    if len(fatbin) < 16 or struct.unpack_from("<I", fatbin)[0] != 0xBA55ED50:
        raise Unexpected("this is no fatbin container")
    header, payload = struct.unpack_from("<HQ", fatbin, 6)
    at, end = header, min(len(fatbin), header + payload)
    while at + 32 <= end:
        kind, _, entry_header, size = struct.unpack_from("<HHIQ", fatbin, at)
        arch = struct.unpack_from("<I", fatbin, at + 28)[0]
        if entry_header < 32 or at + entry_header + size > end:
            raise Unexpected("an entry reaches beyond the container")
        if kind == 2 and arch == sm:
            return fatbin[at + entry_header:at + entry_header + size]
        at += entry_header + size
    raise Unexpected(f"no machine code for sm_{sm}")


def text_of(cubin, kernel):
    """Instructions of .text.KERNEL as 128-bit numbers."""
    if cubin[:5] != b"\x7fELF\x02" or len(cubin) < 64:
        raise Unexpected("this is no cubin")
    offset = struct.unpack_from("<Q", cubin, 40)[0]
    count, names = struct.unpack_from("<HH", cubin, 60)
    if offset + 64 * count > len(cubin) or names >= count:
        raise Unexpected("the cubin's section table is cut")
    sections = [struct.unpack_from("<IIQQQQ", cubin, offset + 64 * i) for i in range(count)]
    table = sections[names][4]
    for name, _, _, _, begin, size in sections:
        end = cubin.find(b"\0", table + name)
        if cubin[table + name:end] == b".text." + kernel.encode():
            if size % 16 or begin + size > len(cubin):
                raise Unexpected("the function's code is cut")
            return [int.from_bytes(cubin[at:at + 16], "little") for at in range(begin, begin + size, 16)]
    raise Unexpected(f"no function {kernel}")


def opcode(instruction):
    return instruction & 0x1FF


def branch_target(at, instruction):
    """Relative to the next instruction, in words of 4 bytes: bits 16..23 the low byte, 34..81 the rest, signed."""
    high = instruction >> 34 & (1 << 48) - 1
    if high >> 47:
        high -= 1 << 48
    return at + 1 + (high << 8 | instruction >> 16 & 0xFF) // 4


def blocks_of(code):
    """{first: (end, successors)} of basic blocks."""
    starts = {0}
    for at, instruction in enumerate(code):
        if opcode(instruction) in (BRANCH, EXIT):
            starts.add(at + 1)
        if opcode(instruction) == BRANCH:
            target = branch_target(at, instruction)
            if not 0 <= target < len(code):
                raise Unexpected(f"the branch at {16 * at:#x} leaves the function")
            starts.add(target)
    order = sorted(start for start in starts if start < len(code))
    out = {}
    for start, end in zip(order, order[1:] + [len(code)]):
        last, follow = code[end - 1], []
        conditional = (last >> 12 & 0xF) != ALWAYS
        if opcode(last) == BRANCH:
            follow.append(branch_target(end - 1, last))
        if (opcode(last) not in (BRANCH, EXIT) or conditional) and end < len(code):
            follow.append(end)
        out[start] = (end, follow)
    return out


def round_trip(blocks):
    """The largest basic block and the shortest way, in instructions, from its end to its start again."""
    largest = max(blocks, key=lambda start: blocks[start][0] - start)
    best, queue = {}, [(0, start, (start,)) for start in blocks[largest][1]]
    while queue:
        length, start, way = heapq.heappop(queue)
        if start == largest:
            return largest, way[:-1]
        if best.get(start, 1 << 60) <= length:
            continue
        best[start] = length
        end, follow = blocks[start]
        for after in follow:
            heapq.heappush(queue, (length + end - start, after, way + (after,)))
    raise Unexpected("the largest block is in no loop")


def count(code, ranges):
    names, pipes = collections.Counter(), collections.Counter()
    for begin, end in ranges:
        for at in range(begin, end):
            number = opcode(code[at])
            for pipe, table in (("alu", ALU), ("fma", FMA), ("other", OTHER)):
                if number in table:
                    names[table[number]] += 1
                    pipes[pipe] += 1
                    break
            else:
                raise Unexpected(f"opcode {number:#x} at {16 * at:#x} is not in the table")
    return names, pipes


def blocks_per_byte():
    """Blocks of SHA-256 by 64 hashed bytes. A chunk has 1,024 bytes after a first block that all share, then 24 bytes and
    the padding, one block more; each level has a 32nd of the bytes below."""
    per_chunk = CHUNK // BLOCK + 1
    return per_chunk / (CHUNK // BLOCK) / (1 - DIGEST / CHUNK)


def limit(code, sm):
    if sm not in PER_CLOCK:
        raise Unexpected(f"no throughput table for sm_{sm}")
    blocks = blocks_of(code)
    largest, way = round_trip(blocks)
    compress = [(largest, blocks[largest][0])]
    names, core = count(code, compress)
    _, pipes = count(code, compress + [(start, blocks[start][0]) for start in way])
    # One compression of SHA-256: 6 rotations in each of 64 rounds, 4 and 2 shifts in 48 steps of the schedule.
    if names["SHF"] != 64 * 6 + 48 * 6:
        raise Unexpected(f"the largest block has {names['SHF']} shifts and is not one compression")
    alu, fma, issue = PER_CLOCK[sm]
    clocks = max(core["alu"] / alu, core["fma"] / fma, sum(core.values()) / issue)
    code_clocks = max(pipes["alu"] / alu, pipes["fma"] / fma, sum(pipes.values()) / issue)
    return {"figure": "integer limit", "sm": sm, "compress_alu": core["alu"], "compress_fma": core["fma"],
            "compress_other": core["other"], "block_alu": pipes["alu"], "block_fma": pipes["fma"],
            "block_other": pipes["other"], "clocks_per_block_and_sm": round(clocks, 3),
            "clocks_with_loads": round(code_clocks, 3), "blocks_per_64_bytes": round(blocks_per_byte(), 4),
            "bytes_per_clock_and_sm": round(BLOCK / clocks / blocks_per_byte(), 4),
            "opcodes": dict(sorted(names.items(), key=lambda item: -item[1]))}


def mnemonics(disassembler, cubin, kernel):
    """What a disassembler calls each instruction of the kernel."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([disassembler, file.name], capture_output=True, text=True, check=True).stdout
    body = re.split(rf"^\.text\.{kernel}:", text, flags=re.M)[1].split("\n\t.section", 1)[0]
    found = re.findall(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)", body, re.M)
    return {int(at, 16) // 16: name for at, name in found}


def check(disassembler, cubin, code):
    table, wrong = {**ALU, **FMA, **OTHER}, []
    told = mnemonics(disassembler, cubin, KERNEL)
    for at, instruction in enumerate(code):
        name = table.get(opcode(instruction), hex(opcode(instruction)))
        if told.get(at) != name:
            wrong.append(f"{16 * at:#x}: {name} here, {told.get(at)} there")
    return len(told), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fatbin", default=FATBIN)
    parser.add_argument("--sm", type=int, default=90)
    parser.add_argument("--sms", type=int, help="multiprocessors of the GPU")
    parser.add_argument("--clock-mhz", type=float)
    parser.add_argument("--measured", type=float, help="GB/s, to have its share of the limit said")
    parser.add_argument("--check", metavar="DISASSEMBLER")
    options = parser.parse_args()
    try:
        with open(options.fatbin, "rb") as file:
            cubin = cubin_of(file.read(), options.sm)
        code = text_of(cubin, KERNEL)
        if options.check:
            seen, wrong = check(options.check, cubin, code)
            print(f"# {options.check}: {seen} instructions, {len(wrong)} called otherwise")
            for line in wrong[:20]:
                print("# " + line)
            if wrong or seen != len(code):
                return 2
        out = limit(code, options.sm)
        if options.sms and options.clock_mhz:
            gb = out["bytes_per_clock_and_sm"] * options.sms * options.clock_mhz / 1e3
            out.update(sms=options.sms, clock_mhz=options.clock_mhz, limit_gb_per_s=round(gb, 1))
            if options.measured:
                out.update(measured_gb_per_s=options.measured, share=round(options.measured / gb, 4))
        print(json.dumps(out))
        return 0
    except (Unexpected, OSError, subprocess.SubprocessError, IndexError, struct.error) as error:
        print(f"integer_limit: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
