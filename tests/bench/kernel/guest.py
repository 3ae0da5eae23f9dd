# SPDX-License-Identifier: Apache-2.0
"""What run and profile share: building gw-bench and the payload of its guest,
and the words that boot it. It must not look at results."""

import os
import shutil
import subprocess
import sys

ROOM = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(os.path.dirname(ROOM)))
LAB = os.path.join(REPO, "tests/vm/lab")
sys.path.insert(0, LAB)
import initrd  # noqa: E402  pylint: disable=wrong-import-position

OUT = os.path.join(REPO, "build/bench")
PROGRAM = os.path.join(OUT, "gw-bench")
SOURCES = ["measure.c", "reader.c", "peers.c", "bench.c"]
# A place of its own: the profiler stops at an address in whatever process.
LINK = ["-static", "-Wl,-Ttext-segment=0x6000000"]


def build_program():
    os.makedirs(OUT, exist_ok=True)
    uapi = "-I" + os.path.join(REPO, "include/uapi")
    subprocess.run(["gcc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", *LINK, uapi, "-o", PROGRAM,
                    *(os.path.join(ROOM, name) for name in SOURCES), "-lbpf", "-lelf", "-lz"], check=True)
    machine = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["clang", "-target", "bpf", "-D__TARGET_ARCH_x86", "-O2", "-g", "-Wall", "-Werror", uapi,
                    f"-I/usr/include/{machine}", "-c", os.path.join(ROOM, "peer/peer.bpf.c"),
                    "-o", os.path.join(OUT, "peer.bpf.o")], check=True)


def unpack_vmlinux(kernel, to):
    """Writes the ELF image inside the kernel's vmlinuz. It holds the BTF that
    the BTF of a module refers to."""
    with open(os.path.join(initrd.kernel_dir(kernel), "vmlinuz"), "rb") as stream:
        packed = stream.read()
    for magic, tool in ((b"\x02\x21\x4c\x18", "lz4"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x1f\x8b\x08", "gzip")):
        at = packed.find(magic)
        while at >= 0:
            # What follows the image is rubbish to the tool, so its status says nothing.
            plain = subprocess.run([tool, "-dcq"], input=packed[at:], capture_output=True, check=False).stdout
            if plain.startswith(b"\x7fELF"):
                with open(to, "wb") as stream:
                    stream.write(plain)
                return
            at = packed.find(magic, at + 1)
    raise initrd.LabError(f"vmlinuz of {kernel} holds no image in a known form")


def add_btf(kernel, module, work):
    """Gives a module the BTF that fentry asks for; kernels from 5.11 on read it."""
    image = os.path.join(work, f"vmlinux-{kernel}")
    if not os.path.exists(image):
        unpack_vmlinux(kernel, image)
    subprocess.run(["pahole", "-J", "--btf_base", image, module], check=True)


def payload(kernel, work):
    """Builds all for `kernel` and makes a directory for boot's --payload."""
    build = os.path.join(REPO, "build/vm", kernel)
    subprocess.run([os.path.join(LAB, "build-all"), kernel], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([os.path.join(LAB, "build-module"), kernel, os.path.join(ROOM, "peer"),
                    os.path.join(build, "peer")], check=True, stdout=subprocess.DEVNULL)
    build_program()
    root = os.path.join(work, f"root-{kernel}")
    for folder in ("lab/sim", "usr/local/bin"):
        os.makedirs(os.path.join(root, folder))
    modules = [("kmod/gpuwatch.ko", "lab"), ("peer/peer.ko", "lab")]
    modules += [(f"simdrv/{name}.ko", "lab/sim") for name in ("gwsim", "nvidia", "nvidia-uvm", "nvidia-modeset")]
    for source, folder in modules:
        target = os.path.join(root, folder, os.path.basename(source))
        shutil.copy(os.path.join(build, source), target)
        if source == "simdrv/nvidia.ko" and kernel != "5.10":
            add_btf(kernel, target, work)
        # Debug information only makes loading slow under emulation.
        subprocess.run(["strip", "-g", target], check=True)
    for name in ("load-simdrv", "mknodes"):
        shutil.copy(os.path.join(REPO, "tests/vm/guest", name), os.path.join(root, "usr/local/bin"))
    shutil.copy(PROGRAM, os.path.join(root, "usr/local/bin"))
    shutil.copy(os.path.join(OUT, "peer.bpf.o"), os.path.join(root, "lab"))
    return root


def boot(kernel, root, options, command):
    """The command line that boots `kernel` and runs `command` there."""
    return [os.path.join(LAB, "boot"), kernel, "--icount", f"--payload={root}", *options, "--",
            "sh", "-c", f"load-simdrv /lab/sim witness=0 >&2 && {command}"]
