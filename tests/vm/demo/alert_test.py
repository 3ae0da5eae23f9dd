#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that `alert` is content with a good run only: each case spoils one thing
of it."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

ALERT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "alert")
KNOWN, UNKNOWN = "a1" * 32, "b2" * 32
LOG = "gpuwatchd: warning: ALERT error a00000001 strange [unknown-code T1204] 13:00:00.100 docker:b2b2b2b2b2b2 x/2\n"
HEARD = '13:00:00.350 pid/2     error: unknown rule=unknown-code container={} "ALERT error a00000001"\n'
COUNTER = 'gpuwatch_alerts_total{rule="unknown-code",severity="error"} 1\n'


def load(container, verdict):
    return {"type": "story", "event": "module.load", "container_runtime": "docker", "container_id": container,
            "image_name": "k", "verdict": verdict, "why": "because"}


def alert(container):
    return {"type": "alert", "time_ns": 5_000_000_000, "time_unix_ns": 13 * 3600 * 10**9 + 100_000_000,
            "alert_id": "a00000001", "event": "module.load", "story": load(container, "unknown")}


class AlertTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.files = {
            "loaders": f"known /system.slice/docker-{KNOWN}.scope\nunknown /system.slice/docker-{UNKNOWN}.scope\n",
            "witness.totals": '{"open":1,"calls":12}\n',
            "daemon.json": '{"calls_total":12,"lost":{},"lost_total":0}\n',
            "gpuwatchd.log": "gpuwatchd: running\n" + LOG,
            "listen.txt": "12:59:59.000 -         heartbeat of verdicts, last number 0\n" + HEARD.format(UNKNOWN),
            "webhook.times": "5.41\n",
            "metrics": "# TYPE gpuwatch_alerts_total counter\n" + COUNTER}
        self.told = [load(KNOWN, "known"), load(UNKNOWN, "unknown"), alert(UNKNOWN)]
        self.posted = [alert(UNKNOWN)]

    def tearDown(self):
        self.dir.cleanup()

    def run_alert(self):
        self.files["events.jsonl"] = "".join(json.dumps(line) + "\n" for line in self.told)
        self.files["webhook.jsonl"] = "".join(json.dumps(line) + "\n" for line in self.posted)
        for name, text in self.files.items():
            if text is not None:
                with open(os.path.join(self.dir.name, name), "w", encoding="utf-8") as stream:
                    stream.write(text)
        return subprocess.run([sys.executable, ALERT, self.dir.name, os.path.join(self.dir.name, "loaders")],
                              capture_output=True, text=True, check=False)

    def expect(self, words):
        done = self.run_alert()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(words, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_a_good_run(self):
        done = self.run_alert()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for words in ("12 calls worked off, lost 0", f"docker:{KNOWN[:12]}  k: known: because; no alert",
                      "netlink, 250 ms after the load", "webhook, 410 ms after the load", LOG.split(": ", 2)[2].strip(),
                      HEARD.format(UNKNOWN).strip(), COUNTER.strip()):
            self.assertIn(words, done.stdout)

    def test_midnight_between_load_and_message(self):
        self.posted[0]["time_unix_ns"] = 24 * 3600 * 10**9 - 100_000_000
        self.files["listen.txt"] = "00:00:00.200 " + HEARD.format(UNKNOWN)[13:]
        self.assertIn("netlink, 300 ms after", self.run_alert().stdout)

    def test_not_in_the_log(self):
        self.files["gpuwatchd.log"] = "gpuwatchd: running\n"
        self.expect("log: 0 alerts for the unknown code")

    def test_not_at_the_subscriber(self):
        self.files["listen.txt"] = ""
        self.expect("subscriber: 0 alerts for the unknown code")

    def test_not_at_the_webhook(self):
        self.posted, self.files["webhook.times"] = [], None
        self.expect("webhook: 0 alerts for the unknown code")

    def test_not_in_json(self):
        self.told.pop()
        self.expect("JSON: 0 alerts for the unknown code")

    def test_not_counted(self):
        self.files["metrics"] = COUNTER.replace(" 1", " 0")
        self.expect("Prometheus: ")

    def test_told_twice(self):
        self.files["gpuwatchd.log"] += LOG
        self.expect("log: 2 alerts for the unknown code")

    def test_alert_for_the_known(self):
        self.files["listen.txt"] += HEARD.format(KNOWN)
        self.expect("subscriber: an alert for the known code")

    def test_alert_for_somebody_else(self):
        self.posted.append(alert("c3" * 32))
        self.expect("webhook: an alert for neither")

    def test_known_judged_otherwise(self):
        self.told[0]["verdict"] = "unknown"
        self.expect("the known code was judged: unknown")

    def test_no_load_seen(self):
        self.told = self.told[2:]
        self.expect("the known code was judged: no load at all")

    def test_daemon_missed_a_call(self):
        self.files["daemon.json"] = '{"calls_total":11,"lost_total":0}\n'
        self.expect("gpuwatchd worked off 11 calls and lost 0, the driver counted 12")

    def test_daemon_lost_some(self):
        self.files["daemon.json"] = '{"calls_total":12,"lost_total":3}\n'
        self.expect("lost 3")

    def test_nothing_at_all(self):
        for name in self.files:
            self.files[name] = self.files[name] if name == "loaders" else None
        self.told, self.posted = [], []
        self.expect("the unknown code was judged: no load at all")


if __name__ == "__main__":
    unittest.main()
