#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of integer_limit.py, on made-up code and on the kernels that are checked in. With a disassembler on the machine
it must call each instruction the same; else that test is skipped."""
import os
import shutil
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import integer_limit  # noqa: E402

SHF, EXIT, NOP = 0x819 | 7 << 12, 0x94D | 7 << 12, 0x918 | 7 << 12


def branch(at, to, predicate=7):
    words = 4 * (to - at - 1)
    return 0x947 | predicate << 12 | (words & 0xFF) << 16 | ((words >> 8) & (1 << 48) - 1) << 34


def checked_in():
    with open(integer_limit.FATBIN, "rb") as file:
        return file.read()


class Limit(unittest.TestCase):
    def test_branch_forwards_and_backwards(self):
        for at, to in ((0, 1), (0, 90), (3000, 165), (5, 6), (700, 0)):
            self.assertEqual(integer_limit.branch_target(at, branch(at, to)), to)

    def test_shortest_way_around_the_largest_block(self):
        # 0: entry; 1..2: header, may skip to 6; 3..5: the long way; 6..10: largest, back to 1; 11: exit
        code = [NOP, NOP, branch(2, 6, 0), NOP, NOP, NOP, SHF, SHF, SHF, SHF, branch(10, 1, 8), EXIT]
        largest, way = integer_limit.round_trip(integer_limit.blocks_of(code))
        self.assertEqual((largest, way), (6, (1,)))

    def test_an_unconditional_branch_has_one_successor(self):
        blocks = integer_limit.blocks_of([NOP, branch(1, 3), NOP, EXIT])
        self.assertEqual(blocks[0], (2, [3]))

    def test_unknown_opcode_is_refused(self):
        with self.assertRaises(integer_limit.Unexpected):
            integer_limit.count([0x1FF], [(0, 1)])

    def test_a_branch_out_of_the_function_is_refused(self):
        with self.assertRaises(integer_limit.Unexpected):
            integer_limit.blocks_of([branch(0, 7), EXIT])

    def test_no_loop_is_refused(self):
        with self.assertRaises(integer_limit.Unexpected):
            integer_limit.round_trip(integer_limit.blocks_of([SHF, EXIT]))

    def test_broken_containers_are_refused(self):
        good = checked_in()
        for bad in (b"", b"text", good[:64], good[:4] + struct.pack("<HHQ", 1, 16, 1 << 40) + good[16:200]):
            with self.assertRaises((integer_limit.Unexpected, struct.error)):
                integer_limit.text_of(integer_limit.cubin_of(bad, 90), integer_limit.KERNEL)

    def test_blocks_that_the_tree_adds(self):
        # 1 MiB: 1,024 chunks, then 32, then 1; of 17 blocks each.
        blocks = 17 * (1024 + 32 + 1)
        self.assertAlmostEqual(blocks / (1024 * 1024 / 64), integer_limit.blocks_per_byte(), delta=0.001)

    def test_the_kernel_that_is_checked_in(self):
        code = integer_limit.text_of(integer_limit.cubin_of(checked_in(), 90), integer_limit.KERNEL)
        out = integer_limit.limit(code, 90)
        # 14 operations in a round, 10 in a step of the schedule, the sums at the end.
        self.assertGreater(out["compress_alu"] + out["compress_fma"], 1300)
        self.assertLess(out["compress_alu"] + out["compress_fma"], 1800)
        self.assertGreater(out["block_alu"], out["compress_alu"])

    def test_an_sm_without_a_table_is_refused(self):
        with self.assertRaises(integer_limit.Unexpected):
            integer_limit.limit([EXIT], 75)

    def test_a_disassembler_calls_it_the_same(self):
        disassembler = shutil.which("nvdisasm") or "/usr/local/cuda/bin/nvdisasm"
        if not os.access(disassembler, os.X_OK):
            self.skipTest("nvdisasm is not here")
        cubin = integer_limit.cubin_of(checked_in(), 90)
        code = integer_limit.text_of(cubin, integer_limit.KERNEL)
        seen, wrong = integer_limit.check(disassembler, cubin, code)
        self.assertEqual((seen, wrong[:5]), (len(code), []))


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    bad, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    for _, reason in result.skipped:
        print("SKIP:", reason)
    print(f"{result.testsRun - bad - skipped} passed, {bad} failed, {skipped} skipped")
    sys.exit(1 if bad else 0)
