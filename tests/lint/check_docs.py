#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users are told of is all there, and no more: configuration keys, metrics,
kinds of events, words of subscribers, attributes of netlink, entries of the
journal and keys of JSON, each between its table, its code and its manual. Exit
statuses are check_exit.py's. Every check is also shown to bite, on texts from
which one thing was taken, or to which one was added. TAP."""
import os
import re
import shutil
import subprocess
import sys

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STRING = r'"((?:[^"\\]|\\.)*)"'


class Tree:
    """The files of the project; a check may see one of them changed."""

    def __init__(self, changed=None):
        self.changed = changed or {}

    def read(self, path):
        with open(os.path.join(TOP, path), encoding="utf-8", errors="replace") as file:
            text = file.read()
        if path in self.changed:
            before, after = self.changed[path]
            if before not in text:
                sys.exit(f"check_docs: {path} has no {before!r} to change")
            text = text.replace(before, after, 1)
        return text

    def code(self, folder, but=()):
        out = []
        for place, _, names in os.walk(os.path.join(TOP, folder)):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(place, name), TOP)
                if name.endswith((".cpp", ".h")) and path not in but:
                    out.append(re.sub(r"(?m)^\s*//.*$", "", self.read(path)))
        return "\n".join(out)

    def table(self, path, macro):
        found = re.findall(rf"^{macro}\((\w+), {STRING}", self.read(path), re.M)
        if not found or len(found) != len(re.findall(rf"^{macro}\(", self.read(path), re.M)):
            sys.exit(f"check_docs: {path} has rows that do not have the expected form")
        return found

    def section(self, title):
        return dict(part.split("\n", 1) for part in re.split(r"^# ", self.read("userspace/man/gpuwatch-json.5.md"), flags=re.M)[1:])[title]


def both(what, documented, there):
    """Differences of two sets, as sentences."""
    return [f"{what} {name} is not documented" for name in sorted(there - documented)] + \
           [f"{what} {name} is documented, and not there" for name in sorted(documented - there)]


def page_heads(text, begin, end):
    part = text.split(begin, 1)[1].split(end, 1)[0]
    return {re.sub(r"\\(.)", r"\1", name) for name in re.findall(r"^\.TP\n(?:\\fB|\.B )([^ (\n]+?)(?:\\fR)?(?: \(.*)?$", part, re.M)}


def config(tree):
    page = tree.read("userspace/man/gpuwatch.yaml.5")
    rows = tree.table("userspace/daemon/settings.def", "KEY")
    conditions = tree.table("userspace/daemon/rule_keys.def", "FIELD")
    rule = tree.read("userspace/daemon/rule.cpp")
    words = set(re.findall(STRING, re.search(r"kWords = \{(.*?)\};", rule, re.S).group(1)))
    wrong = both("key", page_heads(page, ".SH KEYS", ".SH RULES"), {path for _, path in rows})
    wrong += both("key of rules", page_heads(page, ".SH RULES", ".SS Conditions"), words)
    wrong += both("condition", page_heads(page, ".SS Conditions", ".SH EXAMPLES"), {key for _, key in conditions})
    code = tree.code("userspace/daemon")
    wrong += [f"key {path}: nothing uses it" for name, path in rows if f"Key::{name}" not in code]
    return wrong


def example(tree):
    """The configuration that is installed, with what it has as comments: keys there are."""
    known = {path for _, path in tree.table("userspace/daemon/settings.def", "KEY")} | {"rules"}
    lines = [re.sub(r"^#(?=(?:  )*[a-z_]+:)", "", line) for line in tree.read("userspace/daemon/etc/gpuwatch.yaml").splitlines()]
    found = set()

    def walk(value, path):
        for key, one in value.items():
            if isinstance(one, dict):
                walk(one, path + key + ".")
            else:
                found.add(path + key)
    walk(yaml.safe_load("\n".join(lines)), "")
    wrong = [f"the example has the unknown key {key}" for key in sorted(found - known)]
    return wrong + ([] if len(found) > 5 else ["hardly a key was found in the example"])


def restart_keys(tree):
    """gpuwatchd(8) names the keys that count after a restart only."""
    page = re.search(r"Keys that count after a restart only are named in the log: ([^.]*(?:\.\w[^.]*)*)\.",
                     tree.read("userspace/man/gpuwatchd.8.in")).group(1)
    told = set(re.split(r",\s+", " ".join(page.split())))
    code = re.search(r"for \(const Key key : \{(.*?)\}\)", tree.read("userspace/daemon/service.cpp"), re.S).group(1)
    paths = dict(tree.table("userspace/daemon/settings.def", "KEY"))
    there = {paths[name] for name in re.findall(r"Key::(\w+)", code)}
    return both("restart key", told, {"control" if path.startswith("control.") else path for path in there})


def metrics(tree):
    rows = tree.table("userspace/sink/metrics.def", "METRIC")
    names = {name for _, name in rows}
    page = set(re.findall(r"^\| `(gpuwatch_\w+)`", tree.read("userspace/sink/METRICS.md"), re.M))
    code = tree.code("userspace", but=("userspace/sink/metrics.h",))
    wrong = both("metric", page, names)
    wrong += [f"metric {name}: nothing fills it" for key, name in rows if f"Metric::{key}" not in code]
    for path in ("README.md", "userspace/README.md", "userspace/sink/README.md", "userspace/daemon/README.md", "userspace/man/gpuwatchd.8.in",
                 "userspace/sink/grafana/gpuwatch.json", "userspace/sink/prometheus/gpuwatch.rules.yml"):
        for name in set(re.findall(r"\bgpuwatch_\w+(?:_total|_bytes|_seconds|_items|_info|_success)\b", tree.read(path))) - names:
            wrong.append(f"{path} names the metric {name}, which is not there")
    return wrong


def events(tree):
    kinds = {name for _, name in tree.table("userspace/model/story_kinds.def", "STORY")}
    told = set(re.findall(r"^\*\*([a-z]+\.[a-z_]+)\*\*\n:", tree.section("EVENTS"), re.M))
    manual = tree.read("userspace/man/gpuwatch-json.5.md")
    types = set(re.findall(r"^line (\w+) ", tree.read("userspace/man/json_lines.def"), re.M))
    return both("event", told, kinds) + [f"lines of type {name} are in no manual" for name in sorted(types) if f"**{name}**" not in manual]


def words(tree):
    """What `listen` says, from the tables of its words."""
    section = "".join(map(tree.section, ("SUBSCRIBERS", "IMAGES", "EVENTS", "KEYS OF EVENTS", "ALERTS", "STATUS")))
    told = set(re.findall(r"\*\*([\w-]+)\*\*", section))
    wrong = []
    for function, names in re.findall(r"std::string_view (\w+)\([^)]*\) \{\n  constexpr std::string_view kNames\[\] = \{(.*?)\};",
                                      tree.read("userspace/netlink/words.cpp"), re.S):
        found = re.findall(STRING, names)
        wrong += [f"{function} says {word}, which the manual does not" for word in found
                  if word and word not in told and not (word.startswith("image-") and "**image-**" in section)]
    return wrong


def reasons(tree):
    """Why a record, an event or an item was lost."""
    told = set(re.findall(r"\*\*(\w+)\*\*", tree.section("LOSS")))
    names = set(re.findall(STRING, re.search(r"kNames = \{(.*?)\};", tree.read("userspace/model/loss.h"), re.S).group(1)))
    daemon = tree.read("userspace/daemon/service.cpp") + tree.read("userspace/daemon/engine.cpp")
    names |= set(re.findall(r'totals(?:\.push_back\(|\[\w+\] = )\{"\w+", "(\w+)"', daemon))
    names |= set(re.findall(r'\bloss\.reason = "(\w+)"', tree.code("userspace/daemon")))
    return [f"loss reason {name} is not documented" for name in sorted(names - told)]


def netlink(tree):
    header = tree.read("include/uapi/linux/gpuwatch_genl.h")
    there = set(re.findall(r"^\t(GPUWATCH_\w*A_\w+) = \d+,", header, re.M))
    told = set(re.findall(r"^ \* @(GPUWATCH_\w*A_\w+): \S", header, re.M))
    user = tree.code("userspace/netlink")
    unused = {name for name in there if not name.endswith("_PAD") and name not in user}
    spec = yaml.safe_load(tree.read("include/spec/gpuwatch.yaml"))
    silent = [f"{one['name']} {attribute['name']}" for one in spec["attribute-sets"] for attribute in one["attributes"]
              if not attribute.get("doc") and attribute["name"] != "pad"]
    silent += [f"{one['name']} {entry['name']}" for one in spec["definitions"] for entry in one.get("entries", ()) if not entry.get("doc")]
    silent += [one["name"] for one in spec["operations"]["list"] if not one.get("doc")]
    return both("attribute", told, there) + [f"attribute {name}: user space knows nothing of it" for name in sorted(unused)] + \
        [f"gpuwatch.yaml says nothing on {name}" for name in silent]


def journal(tree):
    ids = tree.table("userspace/sink/message_ids.def", "MESSAGE")
    page = tree.read("userspace/sink/JOURNAL.md")
    code = tree.code("userspace")
    sent = set(re.findall(r'\.add\("([A-Z_]+)"', tree.read("userspace/sink/journal_sink.cpp")))
    wrong = both("field", set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.M)), sent)
    wrong += both("entry", set(re.findall(r"^\| `[0-9a-f]{32}` \| ([\w-]+) \|", page, re.M)), {name for _, name in ids})
    return wrong + [f"entry {name}: nothing sends it" for key, name in ids if f"MessageId::{key}" not in code]


def pages(tree):
    """Manual pages as groff sees them, every warning on; without groff nothing is said."""
    wrong = []
    for name in ("gpuwatch.1", "gpuwatchd.8", "gpuwatch.yaml.5", "gpuwatch-json.5"):
        done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", "-rLL=80n"], input=tree.read("userspace/man/" + name), text=True,
                              capture_output=True, check=False)
        wrong += [f"{name}: {line}" for line in done.stderr.splitlines()]
    return wrong


def written_keys(text):
    """Names of keys in code that writes JSON, by its several ways to do so."""
    keys = set(re.findall(r'\{"([\w-]+)",', text))
    keys |= set(re.findall(r'(?:json|line|object|out|one)\["([\w-]+)"\]', text))
    keys |= set(re.findall(r'(?:put_text|put_count|set_if)\(\w+, "([\w-]+)"', text))
    keys |= set(re.findall(r'json\.(?:text|text_if|number|number_if|signed_number|flag|hex|errno_name|key)\("([\w-]+)"', text))
    return keys | set(re.findall(r'\\"(\w+)\\":', text))


# Words in the same form that are no keys: requests, options, actions, states.
NO_KEYS = {"control": {"daemon", "ring", "request"}, "status": {"open"}, "probe": {"json", "no-ptx", "with-text", "selftest", "kernel", "library", "restored", "timeout", "gave-up-fd", "records", "outside"},
           "baseline": {"build", "learn", "show", "diff", "merge", "export", "import", "sign", "verify", "check", "good", "removed"}}


def outputs(tree):
    """Keys in json_outputs.def, and those that the named files write."""
    table = tree.read("userspace/man/json_outputs.def")
    groups = dict(re.findall(r"^group (\w+) (.*)$", tree.read("userspace/man/json_lines.def") + table, re.M))
    rows = dict(re.findall(r"^(?:line|object) (\w+) (.*)$", table, re.M))
    shared = {path: tree.code("userspace/" + path) for path in ("publish", "report")}

    def keys_of(name):
        out = set()
        for word in rows[name].replace("|", " ").split():
            key, _, kind = word.partition(":")
            out |= {one.partition(":")[0] for one in groups[key].replace("|", " ").split()} if key in groups else {key}
            for inner in re.findall(r"\{(\w+)\}", kind):
                out |= keys_of(inner)
        return out
    wrong = []
    for name, files, lines in re.findall(r'^output (\w+) "[^"]+" ([^:]+) : (.+)$', table, re.M):
        keys = set().union(*(keys_of(line) for line in lines.split()))
        texts = [tree.read("userspace/" + file) for file in files.split()]
        written = set().union(*map(written_keys, texts)) - NO_KEYS.get(name, set())
        # Who a process is, holdings, and in status the daemon's words are written elsewhere.
        texts += [shared["publish"]] * (name == "tree") + [shared["report"]] * (name in ("control", "status")) + \
            [tree.read("userspace/daemon/status.cpp")] * (name == "status")
        literals = set().union(*(re.findall(r'\\?"([\w-]+)\\?"', text) for text in texts))
        wrong += [f"{name}: {key} is written and not in json_outputs.def" for key in sorted(written - keys)]
        wrong += [f"{name}: json_outputs.def has {key}, which nothing writes" for key in sorted(keys - literals)]
    return wrong


CHECKS = (
    ("keys of the configuration are in gpuwatch.yaml(5), and used", config, {
        "userspace/man/gpuwatch.yaml.5": ("queue_bytes\\fR", "queue\\fR"),
        "userspace/daemon/settings.def": ('KEY(kNames, "names"', 'KEY(kNamez, "namez"'),
        "userspace/daemon/rule_keys.def": ('"namespace"', '"name_space"')}),
    ("keys of the example configuration are those there are", example, {"userspace/daemon/etc/gpuwatch.yaml": ("#  webhook:", "#  webhooks:")}),
    ("gpuwatchd(8) names the keys that want a restart", restart_keys, {"userspace/man/gpuwatchd.8.in": ("code.scan,", "")}),
    ("metrics are in METRICS.md, filled, and those that others name", metrics, {
        "userspace/sink/METRICS.md": ("| `gpuwatch_rules`", "| `gpuwatch_rule`"),
        "userspace/sink/metrics.def": ("METRIC(kCpu,", "METRIC(kCpuOther,")}),
    ("events and types of lines are in gpuwatch-json(5)", events, {
        "userspace/man/gpuwatch-json.5.md": ("**mig.used**\n:", "**mig.use**\n:"),
        "userspace/man/json_lines.def": ("line membership ", "line memberships ")}),
    ("words of subscribers are in gpuwatch-json(5)", words, {"userspace/netlink/words.cpp": ('"tampered"', '"tamperd"')}),
    ("reasons of losses are in gpuwatch-json(5)", reasons, {"userspace/daemon/service.cpp": ('"restart"', '"restarts"')}),
    ("attributes of netlink are in header and specification, and known to user space", netlink, {
        "include/spec/gpuwatch.yaml": ('doc: "the last reference to such a file went"', 'doc: ""'),
        "include/uapi/linux/gpuwatch_genl.h": (" * @GPUWATCH_A_RULE:", " * GPUWATCH_A_RULE:")}),
    ("entries of the journal are in JOURNAL.md, and sent", journal, {
        "userspace/sink/JOURNAL.md": ("| `GPUWATCH_LOST`", "| `GPUWATCH_LOSS`"),
        "userspace/daemon/sink_watch.cpp": ("MessageId::kSinkFailing", "MessageId::kSinkFine"),
        "userspace/sink/message_ids.def": ("MESSAGE(kConfigRefused,", "MESSAGE(kConfigNo,")}),
    ("manual pages are without a warning", pages, {"userspace/man/gpuwatchd.8": (".SH OPTIONS", ".SHH OPTIONS")}),
    ("keys of JSON that commands write are in json_outputs.def", outputs, {
        "userspace/man/json_outputs.def": ("kernel_names:uint", "names:uint"),
        "userspace/cli/commands/doctor.cpp": ('"remedy"', '"remedies"'),
        "userspace/probe/checks.cpp": ('"timers_ran"', '"timer_ran"'),
        "userspace/daemon/status.cpp": ('{"resumed",', '{"went_on",')}),
)


def main():
    failed = number = skipped = 0
    for what, check, changes in CHECKS:
        number += 1
        if check is pages and not shutil.which("groff"):
            print(f"ok {number} # SKIP groff is not installed (Debian package groff-base)")
            skipped += 1
            continue
        wrong = check(Tree())
        for path, change in changes.items():
            if not check(Tree({path: change})):
                wrong.append(f"{path}: a change of {change[0]!r} to {change[1]!r} was not seen")
        failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {what}")
        for line in wrong:
            print(f"# {line}")
    print(f"1..{number}\n# check_docs: {number - failed - skipped} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
