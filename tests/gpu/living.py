# SPDX-License-Identifier: Apache-2.0
"""Living processes with code on a GPU, with the agent, the recorder or neither, for tests/gpu/agent, tests/gpu/agentless
and tests/gpu/bench: starting, talking to and asking them. It judges nothing."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPUWATCH = os.path.join(TOP, "build", "bin", "gpuwatch")
AGENT = os.path.join(TOP, "build", "lib", "libgpuwatch-agent.so")
TESTS = os.path.join(TOP, "build", "user", "tests")
RECORDER = os.path.join(TOP, "build", "lib", "libgpuwatch-record.so")
HOST = os.path.join(TESTS, "gpu-agent-host")
CUBIN = os.path.join(TOP, "tests", "data", "fatbin", "rep_a_90.cubin")
TABLES = os.path.join(TOP, "tests", "gpu", "tables_90.cubin")
TRAINING = os.path.join(TOP, "tests", "gpu", "training.py")


def have_torch():
    try:
        return subprocess.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"],
                              capture_output=True, check=False, timeout=120).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def probe(*words, timeout=None):
    """`gpuwatch probe --json WORDS`: exit code, lines, seconds. 124: it was stopped."""
    begin = time.monotonic()
    try:
        done = subprocess.run([GPUWATCH, "probe", "--json", *words], text=True, capture_output=True, check=False,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        return 124, [], time.monotonic() - begin
    lines = []
    for line in done.stdout.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            print("# not JSON: " + line, flush=True)
    if done.stderr:
        print("# " + done.stderr.strip().replace("\n", "\n# "), flush=True)
    return done.returncode, lines, time.monotonic() - begin


class Program:
    """A process that says a line when it is ready, and answers each line by one."""

    started = []

    def __init__(self, words, agent=True):
        environment = dict(os.environ, **({"CUDA_INJECTION64_PATH": AGENT} if agent else {}))
        self.process = subprocess.Popen(words, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.first = None
        self.asked = 0
        Program.started.append(self.process)

    @staticmethod
    def kill_all():
        """Ends what is still running; who waits for an answer gets an empty one."""
        for process in Program.started:
            if process.poll() is None:
                process.kill()

    def ready(self):
        if self.first is None:
            self.first = self.process.stdout.readline().split()
        return bool(self.first) and self.first[0] == "ready"

    def send(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended; its answer is empty

    def answer(self):
        return self.process.stdout.readline().strip()

    def say(self, line):
        self.send(line)
        return self.answer()

    def ask(self, *more, timeout=None):
        self.asked += 1
        return probe("--pid", str(self.process.pid), *more, timeout=timeout)

    def gpu_mib(self):
        text = subprocess.run(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
                              text=True, capture_output=True, check=False).stdout
        found = [row.split(",")[1] for row in text.splitlines() if row.split(",")[0] == str(self.process.pid)]
        return int(found[0]) if found and found[0].strip().isdigit() else None

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
        return 0

    def end(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def plan(directory):
    """The capture plan that `gpuwatch record` hands to what it starts; without one the recorder takes heads of calls only."""
    path = os.path.join(directory, "plan")
    subprocess.run([GPUWATCH, "record", "--output", os.path.join(directory, "none.gwcap"), "--", "sh", "-c",
                    'cp "$GPUWATCH_RECORD_PLAN" "$0"', path], check=False, timeout=60, capture_output=True)
    if not os.path.exists(path):
        print("# no capture plan was had", flush=True)
    return path


class Recorded:
    """A program with the recorder in it and no agent, and where its calls are."""

    plans = plan = None

    def __init__(self, make):
        self.records = tempfile.mkdtemp(prefix="gw-agentless.")
        os.chmod(self.records, 0o777)
        if Recorded.plan is None:
            Recorded.plans = tempfile.mkdtemp(prefix="gw-agentless-plan.")
            os.chmod(Recorded.plans, 0o755)
            atexit.register(shutil.rmtree, Recorded.plans, True)
            Recorded.plan = plan(Recorded.plans)
        os.environ["LD_PRELOAD"], os.environ["GPUWATCH_RECORD_DIR"] = RECORDER, self.records
        os.environ["GPUWATCH_RECORD_PLAN"] = Recorded.plan
        try:
            self.program = make(agent=False)
        finally:
            for name in ("LD_PRELOAD", "GPUWATCH_RECORD_DIR", "GPUWATCH_RECORD_PLAN"):
                del os.environ[name]

    def ask(self, *more, timeout=None):
        return self.program.ask("--records", self.records, *more, timeout=timeout)

    def size(self):
        return sum(os.path.getsize(os.path.join(self.records, name)) for name in os.listdir(self.records))

    def end(self):
        code = self.program.end()
        shutil.rmtree(self.records, ignore_errors=True)
        return code


def torch_program(agent):
    return Program([sys.executable, TRAINING], agent=agent)


def host_program(agent=True):
    return Program([HOST, CUBIN, TABLES], agent=agent)
