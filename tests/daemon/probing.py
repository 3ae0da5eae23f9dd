# SPDX-License-Identifier: Apache-2.0
"""Cases of tests/daemon/run: gpuwatchd asks agents what lies in GPU memory. The
process that is watched is one of the test's own, by a recording made over to it;
its agent is a socket and the probe a script, or both are the real ones on a GPU
that is memory (tests/unit/probe/fake)."""

import json
import os
import signal
import socket
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTS = os.path.join(TOP, "build", "user", "tests")
PROBE = os.path.join(TOP, "build", "bin", "gpuwatch-probe")
RECORDING = os.path.join(TOP, "tests", "golden", "580.159.04", "churn.gwcap")
CUBIN = os.path.join(TOP, "tests", "data", "fatbin", "rep_a_90.cubin")
RECORDS = 1500  # up to where a context is there
FILE = "  file: {path: FOLDER/out.jsonl}\n"
RULE = "[{name: memory, severity: critical, when: {event: code.differs}, actions: [alert]}]"


def settings(program, timeout="60s", enabled="true"):
    return f"events: all\nprobe: {{enabled: {enabled}, interval: 100ms, timeout: {timeout}, program: {program}}}"


def give_recording_of(daemon, pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stream:
        ticks = int(stream.read().rpartition(")")[2].split()[19])
    mine = daemon.path("mine.gwcap")
    subprocess.run([os.path.join(TESTS, "bench-daemon-repeat"), RECORDING, mine, "1", str(pid),
                    str(ticks * (1_000_000_000 // os.sysconf("SC_CLK_TCK"))), str(RECORDS)], check=True)
    with open(mine, "rb") as stream:
        data = stream.read()
    # Not its end: then the context would be no more.
    daemon.give(data[:-1])


class Script:
    """A gpuwatch-probe that prints what `say` was given, and may hang."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.agent = socket.socket(socket.AF_UNIX)
        self.agent.bind(daemon.path(f"gpuwatch-agent.{os.getpid()}.sock"))
        self.agent.listen(1)
        self.say()
        self.path = daemon.path("probe")
        with open(self.path, "w", encoding="ascii") as stream:
            stream.write(f"#!/bin/sh\ncd {daemon.folder}\n. ./say\n")
        os.chmod(self.path, 0o755)

    def say(self, differ=(), then="exit 0"):
        lines = [{"type": "kernel", "gpu": 0, "image": "x.so", "name": name, "verdict": "differ", "bytes": 128,
                  "first_offset": 36, "different_bytes": 4} for name in differ]
        lines.append({"type": "resident", "gpu": 0, "match": 5, "match-relocated": 0, "differ": len(differ), "not-resident": 0,
                      "not-probed": 0})
        with open(self.daemon.path("say.new"), "w", encoding="ascii") as stream:
            for line in lines:
                stream.write(f"echo '{json.dumps(line)}'\n")
            stream.write(then + "\n")
        os.rename(self.daemon.path("say.new"), self.daemon.path("say"))

    def hang(self):
        self.say(then="echo $$ >.hangs; mv .hangs hanging; exec sleep 100000")

    def hanging(self, other_than=0):
        """The probe that hangs now; 0: none does."""
        try:
            with open(self.daemon.path("hanging"), encoding="ascii") as stream:
                pid = int(stream.read())
        except FileNotFoundError:
            return 0
        return pid if pid != other_than and is_there(pid) else 0


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def cases(check, until):
    def events(daemon, kind):
        return [line for line in daemon.lines() if line.get("event") == kind and line["type"] == "story"]

    def alerts(daemon):
        return [line for line in daemon.lines() if line["type"] == "alert"]

    def runs(daemon, result):
        return daemon.status().get("probe", {}).get("runs", {}).get(result, 0)

    def three_more(daemon, result):
        seen = runs(daemon, result)
        until(f"three more with {result}", lambda: runs(daemon, result) > seen + 2)

    def changed_code_is_an_alert_once(daemon):
        script = Script(daemon)
        script.say(differ=["evil"])
        daemon.write_config(FILE, RULE, settings(script.path))
        daemon.start()
        give_recording_of(daemon, os.getpid())
        until("an alert", lambda: alerts(daemon))
        alert = alerts(daemon)[0]
        story = alert["story"]
        check(alert["rule"] == "memory" and alert["event"] == "code.differs" and alert["severity"] == "critical", str(alert))
        check((story["pid"], story["kernel"], story["first_offset"], story["different_bytes"]) == (os.getpid(), "evil", 36, 4), str(story))
        three_more(daemon, "differ")
        check(len(alerts(daemon)) == len(events(daemon, "code.differs")) == len(events(daemon, "code.probed")) == 1, "told once")
        probe = daemon.status()["probe"]
        check(probe["differ"] == 1 and probe["with_agent"] == 1 and probe["enabled"], str(probe))
        until("metrics", lambda: os.path.exists(daemon.path("metrics.prom"))
              and daemon.metrics().get("gpuwatch_probe_different_functions") == 1)
        check(daemon.metrics()['gpuwatch_probe_processes{agent="yes"}'] == 1, str(daemon.metrics()))
        said = subprocess.run([os.path.join(TOP, "build", "bin", "gpuwatch"), "status", "--socket", daemon.path("control.sock")],
                              capture_output=True, text=True, check=False).stdout
        check("1 functions in GPU memory are not what was loaded" in said and "1 processes with an agent" in said, said)
        script.say()
        until("all is well again", lambda: len(events(daemon, "code.probed")) == 2)
        check(daemon.end() == 0, daemon.log())

    def a_probe_that_is_killed_hangs_or_is_not_wanted(daemon):
        script = Script(daemon)
        script.hang()
        daemon.write_config(FILE, RULE, settings(script.path))
        daemon.start()
        give_recording_of(daemon, os.getpid())
        until("a probe that hangs", script.hanging)
        check(daemon.status()["probe"]["enabled"], "it answers meanwhile")
        hangs = script.hanging()
        os.kill(hangs, signal.SIGKILL)
        until("told", lambda: events(daemon, "code.probed"))
        check("ended by signal 9" in events(daemon, "code.probed")[0]["problem"], str(events(daemon, "code.probed")))
        # A reload in the middle that switches it off ends it.
        hangs = until("another one", lambda: script.hanging(other_than=hangs))
        daemon.write_config(FILE, RULE, settings(script.path, enabled="false"))
        check(daemon.ask("reload").get("ok"), "reloaded")
        until("its end", lambda: not is_there(hangs))
        check(not daemon.status()["probe"]["enabled"], "off")
        # On again, with no time.
        daemon.write_config(FILE, RULE, settings(script.path, timeout="100ms"))
        check(daemon.ask("reload").get("ok"), "reloaded")
        until("told", lambda: len(events(daemon, "code.probed")) > 1)
        check("not ready in time" in events(daemon, "code.probed")[1]["problem"], str(events(daemon, "code.probed")))
        three_more(daemon, "timeout")
        check(len(events(daemon, "code.probed")) == 2 and not alerts(daemon), "no storm")
        check(daemon.end() == 0, daemon.log())

    def no_probe_outlives_the_daemon(daemon):
        script = Script(daemon)
        script.hang()
        daemon.write_config(FILE, RULE, settings(script.path))
        hangs = 0
        for number, code in ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)):
            daemon.start()
            give_recording_of(daemon, os.getpid())
            hangs = until("a probe that hangs", lambda: script.hanging(other_than=hangs))
            check(daemon.end(number) == code, daemon.log())
            until("its end", lambda: not is_there(hangs))

    def a_probe_that_others_may_change(daemon):
        script = Script(daemon)
        daemon.write_config(FILE, RULE, settings(script.path))
        os.chown(script.path, -1, os.getegid())
        group_may = os.getegid() == 0  # root's own
        for mode, good in ((0o757, False), (0o775, group_may)):
            os.chmod(script.path, mode)
            daemon.start()
            if good:
                give_recording_of(daemon, os.getpid())
                until("a result", lambda: events(daemon, "code.probed"))
                check(daemon.end() == 0, daemon.log())
            else:
                check(daemon.wait_end() == 2 and "probe.program" in daemon.log() and "others may change it" in daemon.log(), daemon.log())
        if group_may:
            os.chown(script.path, -1, 65534)
            told = daemon.log().count("others may change it")
            daemon.start()
            check(daemon.wait_end() == 2 and daemon.log().count("others may change it") == told + 1, daemon.log())

    def the_real_agent_and_the_real_probe(daemon):
        fakes, folder = os.path.join(TESTS, "fakes"), daemon.path("agent")
        os.mkdir(folder)
        for node in ("nvidia-uvm", "nvidiactl"):
            with open(os.path.join(folder, node), "w", encoding="ascii"):
                pass
        environment = {"LD_LIBRARY_PATH": fakes, "FAKE_NVIDIA": folder, "LD_PRELOAD": os.path.join(fakes, "libfake-kernel.so"),
                       "GPUWATCH_AGENT_DIR": folder, "CUDA_INJECTION64_PATH": os.path.join(TOP, "build", "lib", "libgpuwatch-agent.so")}
        with subprocess.Popen([os.path.join(fakes, "agent-host"), CUBIN], env=environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as host:
            try:
                check(host.stdout.readline() == "ready\n", "the host is there")
                # A umask may leave what was built to a group.
                os.chmod(PROBE, os.stat(PROBE).st_mode & ~0o022)
                daemon.write_config(FILE, RULE, settings(PROBE))
                daemon.start()
                give_recording_of(daemon, host.pid)
                until("a result", lambda: events(daemon, "code.probed"))
                first = events(daemon, "code.probed")[0]
                check(first["match"] > 0 and first["differ"] == 0 and "problem" not in first, str(first))
                host.stdin.write("flip 36\n")
                host.stdin.flush()
                check(host.stdout.readline() == "ok\n", "a bit was changed")
                until("an alert", lambda: alerts(daemon))
                story = alerts(daemon)[0]["story"]
                check(story["first_offset"] == 36 and story["different_bytes"] == 1 and story["pid"] == host.pid, str(story))
                check(daemon.end() == 0, daemon.log())
            finally:
                host.kill()

    return [changed_code_is_an_alert_once, a_probe_that_is_killed_hangs_or_is_not_wanted, no_probe_outlives_the_daemon,
            a_probe_that_others_may_change, the_real_agent_and_the_real_probe]
