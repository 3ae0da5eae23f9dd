# SPDX-License-Identifier: Apache-2.0
"""Makes initial RAM disks for the guests of the lab: a base that all kernels
share and is made once, the kernel's own modules, and the payload of one boot.
They are plain newc archives one after the other, uncompressed: under emulation
the host copies faster than the guest unpacks. It must not start a guest."""

import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

LAB = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("GPUWATCH_CACHE") or os.path.expanduser("~/.cache/gpuwatch")
# What init needs to reach the host.
BASE_MODULES = ["virtio_pci", "virtio_console"]
# Debian merges these into /usr; an archive entry "lib" would replace the link.
MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


class LabError(Exception):
    """Something the user has to put right; the text says what."""


class Cpio:
    """Collects files and writes them as one newc archive."""

    def __init__(self):
        self._entries = {}

    def _place(self, path, mode, data):
        path = path.strip("/")
        head, _, rest = path.partition("/")
        if head in MERGED:
            path = f"usr/{head}/{rest}" if rest else f"usr/{head}"
        parent = os.path.dirname(path)
        if parent and parent not in self._entries:
            self._place(parent, stat.S_IFDIR | 0o755, b"")
        self._entries[path] = (mode, data)

    def directory(self, path, mode=0o755):
        self._place(path, stat.S_IFDIR | mode, b"")

    def link(self, path, target):
        path = path.strip("/")
        self._entries[path] = (stat.S_IFLNK | 0o777, target.encode())

    def bytes(self, path, data, mode=0o644):
        self._place(path, stat.S_IFREG | mode, data)

    def file(self, path, source):
        with open(source, "rb") as stream:
            self._place(path, stat.S_IFREG | (os.stat(source).st_mode & 0o7777), stream.read())

    def tree(self, path, source):
        """Adds the content of directory `source` below `path`."""
        for folder, names, files in os.walk(source):
            for name in names + files:
                full = os.path.join(folder, name)
                inside = os.path.join(path, os.path.relpath(full, source))
                if os.path.islink(full):
                    self.link(inside, os.readlink(full))
                elif os.path.isdir(full):
                    self.directory(inside)
                elif os.path.isfile(full):
                    self.file(inside, full)

    def has(self, path):
        path = path.strip("/")
        head, _, rest = path.partition("/")
        return (f"usr/{head}/{rest}" if head in MERGED else path) in self._entries

    def regular(self):
        return [(path, data) for path, (mode, data) in self._entries.items() if stat.S_ISREG(mode)]

    def pack(self):
        out = bytearray()

        def entry(number, path, mode, data):
            name = path.encode() + b"\0"
            out.extend(b"070701" + b"%08X" * 13 % (
                number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0))
            out.extend(name)
            out.extend(b"\0" * (-len(out) % 4))
            out.extend(data)
            out.extend(b"\0" * (-len(out) % 4))

        # Sorted, so that a directory comes before what lies in it.
        for number, path in enumerate(sorted(self._entries), 1):
            entry(number, path, *self._entries[path])
        entry(0, "TRAILER!!!", 0, b"")
        out.extend(b"\0" * (-len(out) % 512))
        return bytes(out)


def is_program(data):
    """True for ELF programs and shared objects, not for kernel modules."""
    return data[:4] == b"\x7fELF" and len(data) > 18 and data[16] in (2, 3)


def add_libraries(cpio, programs):
    """Adds the shared libraries, loader included, of the host files `programs`."""
    if not programs:
        return
    run = subprocess.run(["ldd", *programs], capture_output=True, text=True,
                         env={**os.environ, "LC_ALL": "C"}, check=False)
    for line in run.stdout.splitlines():
        if "=> not found" in line:
            raise LabError(f"a library of the payload is missing here: {line.strip()}")
        found = re.match(r"\s+(?:\S+ => )?(/\S+) \(0x", line)
        if found and not cpio.has(found[1]):
            cpio.file(found[1], os.path.realpath(found[1]))


def keep(path, data):
    """Writes a cache file so that a reader never sees half of it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as stream:
        stream.write(data)
    os.replace(stream.name, path)


def busybox():
    program = shutil.which("busybox")
    if not program:
        raise LabError("busybox is missing; remedy: apt-get install busybox-static")
    return program


def base():
    """Path of the base archive: busybox, its links, and init."""
    source = os.path.join(LAB, "init.c")
    key = hashlib.sha256()
    for path in (source, busybox(), __file__):
        with open(path, "rb") as stream:
            key.update(stream.read())
    path = os.path.join(CACHE, "lab", f"base-{key.hexdigest()[:16]}.cpio")
    if os.path.exists(path):
        return path
    cpio = Cpio()
    for name in MERGED:
        cpio.directory(f"usr/{name}")
        cpio.link(name, f"usr/{name}")
    for name in ("dev", "proc", "sys", "tmp", "run", "root", "etc", "out", "lab", "var", "usr/local/bin"):
        cpio.directory(name)
    cpio.bytes("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    cpio.bytes("etc/group", b"root:x:0:\nnogroup:x:65534:\n")
    cpio.file("usr/bin/busybox", busybox())
    applets = subprocess.run([busybox(), "--list"], capture_output=True, text=True, check=True)
    for name in applets.stdout.split():
        if name != "busybox":
            cpio.link(f"usr/bin/{name}", "busybox")
    with tempfile.TemporaryDirectory() as work:
        program = os.path.join(work, "init")
        subprocess.run(["gcc", "-static", "-O2", "-Wall", "-Wextra", "-Werror", "-s",
                        "-o", program, source], check=True)
        cpio.file("init", program)
    keep(path, cpio.pack())
    return path


def kernel_dir(kernel):
    return os.path.join(CACHE, "kernels", kernel)


def module_order(kernel, names):
    """Files of the kernel's modules `names` and of those they need, in loading
    order. What is built in needs no file."""
    root = os.path.join(kernel_dir(kernel), "modules")
    if not os.path.isdir(root):
        return []
    needs, by_name, built_in = {}, {}, set()
    with open(os.path.join(root, "modules.dep"), encoding="ascii") as stream:
        for line in stream:
            file, _, rest = line.partition(":")
            needs[file] = rest.split()
            by_name[os.path.basename(file)[:-3].replace("-", "_")] = file
    with open(os.path.join(root, "modules.builtin"), encoding="ascii") as stream:
        built_in = {os.path.basename(line.strip())[:-3].replace("-", "_") for line in stream}
    order = []

    def visit(file):
        # depmod lists a module's own needs nearest first.
        for other in reversed(needs[file]):
            if other not in order:
                order.append(other)
        if file not in order:
            order.append(file)

    for name in names:
        name = name.replace("-", "_")
        if name in by_name:
            visit(by_name[name])
        elif name not in built_in:
            raise LabError(f"kernel {kernel} has no module {name}")
    return [os.path.join(root, file) for file in order]


def add_payload(cpio, spec, extra):
    """Adds one --payload: a directory (its content goes to /), an archive (.cpio,
    goes in as it is), a module (.ko, goes to /lab) or a program (goes to
    /usr/local/bin). HOST:GUEST names another place. Returns programs found."""
    host, _, guest = spec.partition(":")
    if os.path.isdir(host):
        cpio.tree(guest or "/", host)
        found = [os.path.join(folder, name) for folder, _, names in os.walk(host) for name in names]
    elif host.endswith(".cpio") and os.path.isfile(host):
        with open(host, "rb") as stream:
            extra.append(stream.read())
        return []
    elif os.path.isfile(host):
        place = "/lab" if host.endswith(".ko") else "/usr/local/bin"
        cpio.file(guest or f"{place}/{os.path.basename(host)}", host)
        found = [host]
    else:
        raise LabError(f"payload {host} does not exist")
    programs = []
    for path in found:
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as stream:
                if is_program(stream.read(32)):
                    programs.append(path)
    return programs


def make(path, kernel, argv, payload=(), modules=(), cgroup="v2"):
    """Writes the whole initial RAM disk for one boot to `path`."""
    cpio, extra, programs = Cpio(), [], []
    loading = []
    for file in module_order(kernel, [*BASE_MODULES, *modules]):
        inside = f"/lab/kernel/{os.path.basename(file)}"
        cpio.file(inside, file)
        loading.append(inside)
    cpio.bytes("lab/modules", "".join(f"{name}\n" for name in loading).encode())
    cpio.bytes("lab/cgroup", cgroup.encode())
    cpio.bytes("lab/argv", b"".join(os.fsencode(word) + b"\0" for word in argv))
    for spec in payload:
        programs += add_payload(cpio, spec, extra)
    add_libraries(cpio, programs)
    with open(path, "wb") as out:
        with open(base(), "rb") as stream:
            shutil.copyfileobj(stream, out)
        for part in extra:
            out.write(part)
            out.write(b"\0" * (-len(part) % 4))
        out.write(cpio.pack())


def fetch(kernel):
    """Makes sure that the kernel is in the cache."""
    run = subprocess.run([os.path.join(LAB, "fetch"), kernel], stdout=subprocess.DEVNULL, check=False)
    if run.returncode:
        raise LabError(f"kernel {kernel} is not there")


def complain(error):
    print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
