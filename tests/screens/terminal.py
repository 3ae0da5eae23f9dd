# SPDX-License-Identifier: Apache-2.0
"""A terminal for tests: a pty, a program in it, and what a person would see.
Waits for what is on the screen, never for a time."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pyte

TIMEOUT_S = 240  # only ends a broken test
QUIET_S = 0.25  # a frame is one write, or few in a row


class Terminal:
    def __init__(self, argv, columns=100, rows=24, env=None):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.master, slave = pty.openpty()
        self._set_size(columns, rows)
        self.before = termios.tcgetattr(slave)
        environment = {"PATH": os.environ["PATH"], "TERM": "linux", "LANG": "C.UTF-8", "TZ": "UTC",
                       "HOME": os.environ.get("HOME", "/"), **(env or {})}
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=environment, close_fds=True,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.slave = slave  # kept open, so that the state after the program can be read

    def _set_size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        self._set_size(columns, rows)

    def take(self, seconds):
        """What comes until nothing came for so long."""
        got = False
        while select.select([self.master], [], [], seconds)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            if not data:
                break
            got = True
            self.raw += data
            self.stream.feed(data)
        return got

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines()).rstrip("\n") + "\n"

    def wait(self, *words, without=()):
        """Until all words are on the screen, those of `without` are not, and it is quiet."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            self.take(QUIET_S)
            text = self.text()
            if all(word in text for word in words) and not any(word in text for word in without):
                return text
            if self.process.poll() is not None and not self.take(QUIET_S):
                break
        raise AssertionError(f"never on the screen: {words}, without {without}; it shows:\n{self.text()}")

    def press(self, keys):
        os.write(self.master, keys if isinstance(keys, bytes) else keys.encode())

    def end(self):
        """The exit status, once the program has ended by itself."""
        end = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None and time.monotonic() < end:
            self.take(0.05)
        self.take(QUIET_S)
        if self.process.poll() is None:
            raise AssertionError(f"it does not end; it shows:\n{self.text()}")
        return self.process.returncode

    def state_is_as_before(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for fd in (self.master, self.slave):
            try:
                os.close(fd)
            except OSError:
                pass
