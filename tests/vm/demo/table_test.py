#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that `table` agrees only when all sides agree: each case spoils one
number of a good run."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "table")


class TableTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.write("containers", "docker /system.slice/docker-1.scope\nkubernetes /kubepods.slice/1.scope\n")
        self.write("cgroup_ids", "docker 11\nkubernetes 12\n")
        for name in ("docker", "kubernetes"):
            self.write(f"issued.{name}", json.dumps({"opens": 1, "ioctls": 3, "mmaps": 1, "releases": 1, "mismatches": 0}))
        self.tasks = [{"cgroup_id": 11, "calls": 6}, {"cgroup_id": 12, "calls": 2}, {"cgroup_id": 12, "calls": 4}]
        self.totals = {"calls": 12}
        self.seen = [{"type": kind, "cgroup_id": group} for group in (11, 12)
                     for kind in ("task", "open", "ioctl", "ioctl", "ioctl", "mmap", "release")]
        for log in ("tail.err", "record.log"):
            self.write(log, "gpuwatch: lost 0 of 14 records\n")

    def tearDown(self):
        self.dir.cleanup()

    def write(self, name, text):
        with open(os.path.join(self.dir.name, name), "w", encoding="utf-8") as stream:
            stream.write(text)

    def run_table(self):
        self.write("witness.tasks", "".join(json.dumps(task) + "\n" for task in self.tasks))
        self.write("witness.totals", json.dumps(self.totals) + "\n")
        self.write("seen.json", "".join(json.dumps(call) + "\n" for call in self.seen))
        return subprocess.run([sys.executable, TABLE, self.dir.name, os.path.join(self.dir.name, "containers")],
                              capture_output=True, text=True, check=False)

    def expect(self, status, last_line, words=""):
        done = self.run_table()
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], last_line)
        self.assertIn(words, done.stderr)

    def test_all_agree(self):
        self.expect(0, "demo: issued 12, counted 12, seen 12, lost 0")

    def test_one_not_seen(self):
        self.seen.pop()
        self.expect(1, "demo: issued 12, counted 12, seen 11, lost 1", "1 calls were lost")

    def test_seen_in_the_wrong_container(self):
        self.seen[-1]["cgroup_id"] = 11
        self.expect(1, "demo: issued 12, counted 12, seen 12, lost 0", "docker: the numbers differ")

    def test_driver_missed_one(self):
        self.tasks[0]["calls"] = 5
        self.totals["calls"] = 11
        self.expect(1, "demo: issued 12, counted 11, seen 12, lost -1", "docker: the numbers differ")

    def test_calls_from_elsewhere(self):
        self.tasks.append({"cgroup_id": 1, "calls": 1})
        self.totals["calls"] = 13
        self.expect(1, "demo: issued 12, counted 13, seen 12, lost 1", "elsewhere")

    def test_answers_not_as_recorded(self):
        self.write("issued.docker", json.dumps({"opens": 1, "ioctls": 3, "mmaps": 1, "releases": 1, "mismatches": 2}))
        self.expect(1, "demo: issued 12, counted 12, seen 12, lost 0", "2 answers were not as recorded")

    def test_reader_says_it_lost(self):
        self.write("record.log", "gpuwatch: lost 7 of 14 records\n")
        self.expect(1, "demo: issued 12, counted 12, seen 12, lost 0", "record says it lost 7")


if __name__ == "__main__":
    unittest.main()
