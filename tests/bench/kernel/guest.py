# SPDX-License-Identifier: Apache-2.0
"""What run and profile share: building gw-bench and the payload of its guest,
and the words that boot it. It must not look at results."""

import os
import shutil
import subprocess

ROOM = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(os.path.dirname(ROOM)))
LAB = os.path.join(REPO, "tests/vm/lab")
OUT = os.path.join(REPO, "build/bench")
PROGRAM = os.path.join(OUT, "gw-bench")
SOURCES = ["measure.c", "reader.c", "bench.c"]
# A place of its own: the profiler stops at an address in whatever process.
LINK = ["-static", "-Wl,-Ttext-segment=0x6000000"]


def build_program():
    os.makedirs(OUT, exist_ok=True)
    subprocess.run(["gcc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", *LINK,
                    "-I" + os.path.join(REPO, "include/uapi"), "-o", PROGRAM,
                    *(os.path.join(ROOM, name) for name in SOURCES)], check=True)


def payload(kernel, work):
    """Builds all for `kernel` and makes a directory for boot's --payload."""
    subprocess.run([os.path.join(LAB, "build-all"), kernel], check=True, stdout=subprocess.DEVNULL)
    build_program()
    built = os.path.join(REPO, "build/vm", kernel)
    root = os.path.join(work, f"root-{kernel}")
    for folder in ("lab/sim", "usr/local/bin"):
        os.makedirs(os.path.join(root, folder))
    modules = [("kmod/gpuwatch.ko", "lab")]
    modules += [(f"simdrv/{name}.ko", "lab/sim") for name in ("gwsim", "nvidia", "nvidia-uvm", "nvidia-modeset")]
    for source, folder in modules:
        # Debug information only makes loading slow under emulation.
        subprocess.run(["strip", "-g", "-o", os.path.join(root, folder, os.path.basename(source)),
                        os.path.join(built, source)], check=True)
    for name in ("load-simdrv", "mknodes"):
        shutil.copy(os.path.join(REPO, "tests/vm/guest", name), os.path.join(root, "usr/local/bin"))
    shutil.copy(PROGRAM, os.path.join(root, "usr/local/bin"))
    return root


def boot(kernel, root, options, command):
    """The command line that boots `kernel` and runs `command` there."""
    return [os.path.join(LAB, "boot"), kernel, "--icount", f"--payload={root}", *options, "--",
            "sh", "-c", f"load-simdrv /lab/sim witness=0 >&2 && {command}"]
