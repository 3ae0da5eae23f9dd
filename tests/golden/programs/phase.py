# SPDX-License-Identifier: Apache-2.0
"""What phase.h is for C++: names the parts of a run on standard output."""
import time


def phase(name):
    now = time.monotonic_ns()
    print(f"phase {name} {now}", flush=True)
    return now


def per_round(name, begin_ns, rounds):
    print(f"per {name} {(time.monotonic_ns() - begin_ns) / 1e3 / max(rounds, 1):.3f}", flush=True)
