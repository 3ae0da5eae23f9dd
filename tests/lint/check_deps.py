#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who may include whom, over the sources as they are.

One rule per tree, written down once in RULES. TAP on stdout: one line per room,
every breach as file:line with the rule it breaks. Exit 1 when there is one.
"""
import os
import re
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UAPI = "linux/gpuwatch.h"
UAPI_GENL = "linux/gpuwatch_genl.h"
SOURCE = (".c", ".h", ".cpp", ".cu", ".S")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# userspace room: rooms whose headers it may include besides its own, base and
# model. Only the command line and the daemon know more than one stage.
STAGES = {
    "base": None,  # nothing of ours
    "model": (),
    "source": (),
    "decode": (),
    "attribute": (),
    "identify": (),
    "judge": (),
    "scan": (),
    "publish": (),
    "report": ("publish",),  # its words and escapes
    # Reads images and cubins as the first, finds them in a process as the second; the others read records of its calls.
    "probe": ("identify", "scan", "source", "decode", "preload"),
    "preload": (),
    "sink": (),
    "netlink": ("publish",),  # its writers of JSON and words
    "pipeline": ("source", "decode", "attribute", "identify", "judge", "scan", "preload"),  # the stages, joined
    "control": (),
    "cli": ("source", "decode", "attribute", "identify", "judge", "scan", "publish", "report", "preload", "pipeline",
            "netlink", "control", "probe"),  # of probe what its program prints
    "daemon": ("source", "decode", "attribute", "identify", "judge", "scan", "publish", "report", "pipeline", "sink",
               "netlink", "control", "probe"),
}
# Who may name the kernel's header; all others get it through model/raw_record.h.
# The recorder in preload is the second producer of its records.
UAPI_ALLOWED = ("userspace/source/", "userspace/model/raw_record.h", "userspace/netlink/", "userspace/preload/")
# The family's header is for one room; its types are netlink/words.h to others.
UAPI_GENL_ALLOWED = ("userspace/netlink/",)
NVIDIA_HEADER = re.compile(r"(^|/)(nv[-_.]|nvos|nvtypes|nvstatus|nvlimits|cl[0-9a-f]{4}|ctrl[0-9a-f]{4}|uvm_|nvml|cuda)")
# kmod room: rooms it may not include, being earlier on the way of a record.
KMOD_NEVER = {
    "ring": ("hook", "image", "record", "chardev", "netlink"),
    "record": ("hook", "image", "chardev", "netlink"),
    "hook": ("image", "chardev", "netlink"),
    "image": ("hook", "ring", "chardev", "netlink"),
    "netlink": ("chardev",),
    "compat": ("hook", "image", "record", "ring", "chardev", "nl"),
}
# Checks that no header in compat can hide, with the reason.
VERSION_EXCEPTIONS = {
    ("kmod/hook/", "HAS_MMAP_PREPARE"): "a file operation of its own, with its own hook, that older kernels lack",
}


def includes(path):
    with open(path, encoding="utf-8", errors="replace") as handle:
        for number, line in enumerate(handle, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1) == "<", match.group(2)


def sources(top, tree):
    for folder, folders, files in os.walk(os.path.join(top, tree)):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(SOURCE) and not name.endswith(".mod.c"):
                path = os.path.join(folder, name)
                yield path, os.path.relpath(path, top)


def room_of(name):
    """Room that an include like "decode/decoder.h" names, or None."""
    first = name.split("/")[0]
    return first if "/" in name and first in STAGES else None


def check_userspace(top):
    breaches = {}
    for path, name in sources(top, "userspace"):
        room = name.split("/")[1]
        breaches.setdefault(room, [])
        if room not in STAGES:
            breaches[room].append(f"{name}:1: userspace has no room {room}")
            continue
        for line, system, target in includes(path):
            place = f"{name}:{line}"
            other = room_of(target)
            if target == UAPI:
                if not name.startswith(UAPI_ALLOWED):
                    breaches[room].append(f"{place}: takes {UAPI} past model/raw_record.h")
            elif target == UAPI_GENL:
                if not name.startswith(UAPI_GENL_ALLOWED):
                    breaches[room].append(f"{place}: takes {UAPI_GENL} past netlink/words.h")
            elif system and target.startswith("netlink/") and not os.path.exists(os.path.join(top, "userspace", target)):
                pass  # libnl's folder has the name of a room
            elif "kmod/" in target or target.startswith("../"):
                breaches[room].append(f"{place}: leaves the tree by {target}")
            elif other and system:
                breaches[room].append(f"{place}: <{target}> is ours, wants quotes")
            elif other and other != room:
                allowed = STAGES[room]
                if allowed is None or other not in ("base", "model") + allowed or (room == "model" and other != "base"):
                    breaches[room].append(f"{place}: {room} may not know {other}")
    return {f"userspace/{room}": found for room, found in breaches.items()}


def check_kmod(top):
    rooms = {}
    for path, name in sources(top, "kmod"):
        room = name.split("/")[1] if name.count("/") > 1 else "main"
        rooms.setdefault(room, [])
        for line, system, target in includes(path):
            place = f"{name}:{line}"
            if NVIDIA_HEADER.search(target):
                rooms[room].append(f"{place}: {target} looks like a header of the NVIDIA driver")
            if not system and (target.startswith("../") or "userspace" in target):
                rooms[room].append(f"{place}: leaves kmod by {target}")
            if not system and target.split("/")[0] in KMOD_NEVER.get(room, ()):
                rooms[room].append(f"{place}: {room} may not know {target.split('/')[0]}")
        if room not in ("compat", "configure", "main"):
            rooms[room] += version_checks(path, name)
    return {f"kmod/{room}": breaches for room, breaches in sorted(rooms.items())}


def version_checks(path, name):
    breaches = []
    with open(path, encoding="utf-8", errors="replace") as handle:
        for number, line in enumerate(handle, 1):
            match = re.match(r"\s*#\s*(?:el)?if.*?\b(LINUX_VERSION_CODE|KERNEL_VERSION|HAS_[A-Z0-9_]+)\b", line)
            if match and not any(name.startswith(tree) and match.group(1) == probe for tree, probe in VERSION_EXCEPTIONS):
                breaches.append(f"{name}:{number}: version or feature check outside kmod/compat")
    return breaches


def check_include(top):
    found = []
    for path, name in sources(top, "include"):
        for line, _, target in includes(path):
            if target not in ("linux/types.h", "linux/ioctl.h", "linux/gpuwatch.h", UAPI_GENL):
                found.append(f"{name}:{line}: {target}: a uapi header takes linux/types.h and linux/ioctl.h only")
    return {"include": found}


def check_kernels(top):
    found = []
    for path, name in sources(top, "kernels"):
        for line, system, target in includes(path):
            if not system and (room_of(target) or target.startswith("../")) or target == UAPI:
                found.append(f"{name}:{line}: kernels may not know {target}")
    return {"kernels": found} if os.path.isdir(os.path.join(top, "kernels")) else {}


def check_tree(top):
    result = {}
    for check in (check_userspace, check_kmod, check_include, check_kernels):
        result.update(check(top))
    return result


# A breach of every kind, to see that the checks bite.
BREACHES = {
    "userspace/decode/a.cpp": '#include "publish/text.h"\n',
    "userspace/publish/b.cpp": "#include <linux/gpuwatch.h>\n",
    "userspace/cli/m.cpp": "#include <linux/gpuwatch_genl.h>\n",
    "kmod/netlink/n.c": '#include "chardev/chardev.h"\n',
    "userspace/base/c.h": '#include "model/call.h"\n',
    "userspace/model/d.h": '#include "source/source.h"\n',
    "userspace/attribute/e.cpp": "#include <decode/story.h>\n",
    "userspace/source/f.cpp": '#include "../decode/tables.h"\n',
    "userspace/strange/g.cpp": "\n",
    "kmod/record/h.c": '#include "nvos.h"\n',
    "kmod/ring/i.c": '#include "record/record.h"\n',
    "kmod/hook/j.c": "#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0)\n#endif\n",
    "include/uapi/linux/k.h": "#include <stdint.h>\n",
    "kernels/l.cpp": '#include "decode/decoder.h"\n',
}


def breaches_are_seen():
    with tempfile.TemporaryDirectory() as top:
        for name, text in BREACHES.items():
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(os.path.join(top, name), "w", encoding="utf-8") as handle:
                handle.write(text)
        seen = {breach.split(":")[0] for found in check_tree(top).values() for breach in found}
        return sorted(set(BREACHES) - seen)


def main():
    results = []

    def report(ok, what, lines):
        results.append(ok)
        print(f"{'ok' if ok else 'not ok'} {len(results)} - {what}")
        for line in lines:
            print(f"# {line}")

    missed = breaches_are_seen()
    report(not missed, f"{len(BREACHES)} planted breaches are seen", [f"not seen: {name}" for name in missed])
    for room, found in check_tree(TOP).items():
        report(not found, f"{room} includes only what it may", found)
    for (tree, probe), reason in VERSION_EXCEPTIONS.items():
        print(f"# exception: {probe} in {tree}: {reason}")
    failed = results.count(False)
    print(f"1..{len(results)}")
    print(f"# check_deps: {len(results) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
