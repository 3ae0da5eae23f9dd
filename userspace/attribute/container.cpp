// SPDX-License-Identifier: Apache-2.0
#include "attribute/container.h"

#include "attribute/container_words.h"

namespace gpuwatch::attribute {

namespace {

using namespace words;

struct Prefix {
  std::string_view text;
  std::string_view runtime;
};

// systemd scopes: <prefix>-<64 hex>.scope; the colon form names them likewise.
constexpr Prefix kScopes[] = {{"docker", "docker"},
                              {"cri-containerd", "containerd"},
                              {"containerd", "containerd"},
                              {"nerdctl", "containerd"},
                              {"crio", "cri-o"},
                              {"libpod", "podman"}};

// Without systemd: <prefix>-<64 hex>.
constexpr Prefix kPlain[] = {{"libpod-payload-", "podman"}, {"libpod-", "podman"}, {"crio-", "cri-o"}};

// What follows is a plain 64 hex digits.
constexpr Prefix kParents[] = {{"docker", "docker"}, {"kata_overhead", "kata"}};

struct Pod {
  std::string_view uid;
  std::string_view qos;
};

// [x-]kubepods[-besteffort|-burstable]-pod<uid>.slice
Pod pod_of_slice(std::string_view slice) {
  std::string_view rest = between(slice, "", ".slice");
  const std::size_t at = rest.find("kubepods-");
  if (at == std::string_view::npos || (at != 0 && rest[at - 1] != '-')) return {};
  rest.remove_prefix(at + 9);
  Pod pod{{}, "guaranteed"};
  for (const std::string_view quality : {"besteffort", "burstable"})
    if (rest.starts_with(quality) && rest.substr(quality.size()).starts_with('-')) {
      pod.qos = quality;
      rest.remove_prefix(quality.size() + 1);
    }
  if (!rest.starts_with("pod") || !is_pod_uid(rest.substr(3))) return {};
  pod.uid = rest.substr(3);
  return pod;
}

class Walk {
 public:
  explicit Walk(CgroupFacts& facts) : facts_(facts) {}

  void take(std::string_view part) {
    if (part == "." || part.empty()) return;
    if (part == "..") {
      // Seen from inside a namespace: what lies above is not known.
      above_ = up_ = {};
      outside_ = true;
      above_is_pod_ = false;
      relative_ = true;
      return;
    }
    const std::size_t before = found_;
    const bool is_pod = pod(part);
    machine(part);
    container(part);
    job(part);
    session(part);
    if (is_unit(part)) facts_.unit = part.front() == '_' ? part.substr(1) : part;
    up_ = above_;
    above_ = part;
    outside_ = false;
    above_is_pod_ = is_pod;
    above_found_ = found_ != before;
    ++index_;
  }

 private:
  void found(std::string_view runtime, std::string_view id) {
    if (facts_.depth == kMaxChain)
      facts_.chain_cut = true;
    else
      ++facts_.depth;
    facts_.chain[facts_.depth - 1] = {runtime, id, facts_.pod_uid, facts_.qos, pod_id_};
    pod_id_ = {};
    ++found_;
  }

  void set_pod(const Pod& pod) {
    facts_.pod_uid = pod.uid;
    facts_.qos = pod.qos;
  }

  // True where the part is a pod's directory by name alone, without systemd.
  bool pod(std::string_view part) {
    if (const Pod pod = pod_of_slice(part.substr(0, part.find(':'))); !pod.uid.empty()) set_pod(pod);
    if (part.starts_with("pod") && is_pod_uid(part.substr(3))) {
      const bool qos_group = above_ == "burstable" || above_ == "besteffort";
      if (above_ != "kubepods" && !qos_group && !outside_) return false;
      set_pod({part.substr(3), above_ == "kubepods" ? "guaranteed" : above_});
      return true;
    }
    if (const std::size_t at = part.find("-libpod_pod_"); at != std::string_view::npos) {
      const std::string_view id = between(part.substr(at), "-libpod_pod_", ".slice");
      if (is_id64(id)) pod_id_ = id;
    } else if (is_id64(part) && above_ == "libpod_parent") {
      pod_id_ = part;
    }
    return false;
  }

  // Containers and machines that go by a name.
  void machine(std::string_view part) {
    if (above_ == "lxc" || above_ == "lxc.payload") {
      if (is_name(part)) found("lxc", part);
    } else if (const std::string_view name = between(part, "lxc.payload.", ""); is_name(name)) {
      found("lxc", name);
    } else if (const std::string_view nspawn = between(part, "systemd-nspawn@", ".service"); is_escaped_name(nspawn)) {
      found("systemd-nspawn", nspawn);
      last_is_machine_ = found_;
    } else if (const std::string_view scope = between(part, "machine-", ".scope");
               is_escaped_name(scope) && above_.ends_with(".slice")) {
      found(machine_runtime(scope), scope);
      last_is_machine_ = found_;
    } else if (above_ == "machine") {
      for (const std::string_view kind : {"libvirt-lxc", "libvirt-qemu"})
        if (part.ends_with(kind) && part.size() > kind.size() + 1 && part[part.size() - kind.size() - 1] == '.' &&
            is_name(part.substr(0, part.size() - kind.size() - 1)))
          found(kind, part.substr(0, part.size() - kind.size() - 1));
    } else if (last_is_machine_ == found_ && above_found_ && facts_.depth != 0) {
      // The directory below says who made the scope, and whether this is the
      // machine or its keeper.
      Container& last = facts_.chain[facts_.depth - 1];
      if (part == "payload" && last.runtime == "machine") last.runtime = "systemd-nspawn";
      if (part == "supervisor") {
        last = {};
        --facts_.depth;
      }
    }
  }

  static std::string_view machine_runtime(std::string_view name) {
    for (const std::string_view joint : {"-", "\\x2d"}) {
      if (name.starts_with("qemu") && name.substr(4).starts_with(joint)) return "libvirt-qemu";
      if (name.starts_with("lxc") && name.substr(3).starts_with(joint)) return "libvirt-lxc";
    }
    return "machine";
  }

  void container(std::string_view part) {
    if (part.ends_with(".scope")) return scope(part);
    if (const std::size_t colon = part.find(':'); colon != std::string_view::npos) return colon_form(part, colon);
    for (const Prefix& plain : kPlain)
      if (part.starts_with(plain.text) && is_id64(part.substr(plain.text.size())))
        return found(plain.runtime, part.substr(plain.text.size()));
    if (is_id64(part)) return bare_id(part);
    if (is_buildkit_id(part) && (above_ == "buildkit" || (above_ == "buildx" && up_ == "docker")))
      return found("buildkit", part);
    if ((is_grouped(part, kGardenGuid, false) || is_uuid(part)) &&
        (above_ == "garden" || ((above_ == "good" || above_ == "bad") && up_ == "garden")))
      return found("garden", part);
    if (is_uuid(part) && above_ == "mesos") return found("mesos", part);
    if (const std::string_view task = between(part, "ecstasks-", ".slice");
        all_hex(task, 32) || is_grouped(task, kUuid, true))
      facts_.ecs_task = task;
    // Fargate: the task's id, a dash, a number.
    if (up_ == "ecs" && all_hex(above_, 32) && part.size() > 33 && part.starts_with(above_) && part[32] == '-' &&
        part.size() <= 53 && std::all_of(part.begin() + 33, part.end(), is_digit)) {
      facts_.ecs_task = above_;
      return found("ecs", part);
    }
    if (const std::string_view build = between(part, "buildah-", ""); is_buildah(build)) return found("buildah", build);
    if (above_ == "nomad" || ((above_ == "share" || above_ == "reserve") && up_ == "nomad")) nomad(part);
  }

  void scope(std::string_view part) {
    for (const Prefix& known : kScopes) {
      if (!part.starts_with(known.text) || !part.substr(known.text.size()).starts_with('-')) continue;
      const std::string_view id = part.substr(known.text.size() + 1, part.size() - known.text.size() - 7);
      if (is_id64(id)) return found(known.runtime, id);
      if (known.text == "docker" && is_buildkit_id(id)) return found("buildkit", id);
    }
    if (const std::string_view build = between(part, "buildah-", ".scope"); !build.empty()) {
      const std::string_view id = build.substr(0, build.find('-'));
      if (is_buildah(id) && (id.size() == build.size() || number(build.substr(id.size() + 1))))
        return found("buildah", id);
    }
    if (above_ == "nomad.slice" || ((above_ == "share.slice" || above_ == "reserve.slice") && up_ == "nomad.slice"))
      nomad(part.substr(0, part.size() - 6));
  }

  // slice:prefix:id, where a runtime took a path for systemd as it was.
  void colon_form(std::string_view part, std::size_t colon) {
    const std::string_view rest = part.substr(colon + 1);
    const std::size_t second = rest.find(':');
    if (second == std::string_view::npos || !part.substr(0, colon).ends_with(".slice")) return;
    const std::string_view id = rest.substr(second + 1);
    for (const Prefix& known : kScopes)
      if (rest.substr(0, second) == known.text && is_id64(id)) return found(known.runtime, id);
  }

  void bare_id(std::string_view part) {
    for (const Prefix& parent : kParents)
      if (above_ == parent.text) return found(parent.runtime, part);
    if (above_is_pod_) return found("kubernetes", part);
    // containerd's own form for clients that are not Kubernetes: /namespace/id.
    if (above_ == "default" && index_ == 1 && !relative_) return found("containerd", part);
    if (up_ == "ecs" || ecs_cluster_) {
      if (all_hex(above_, 32) || is_uuid(above_)) {
        facts_.ecs_task = above_;
        return found("ecs", part);
      }
    }
  }

  static bool is_buildah(std::string_view id) {
    const std::string_view digits = between(id, "buildah", "");
    return !digits.empty() && digits.size() <= 20 && std::all_of(digits.begin(), digits.end(), is_digit);
  }

  // <allocation>.<task>, with a dash in Nomad 1.3 to 1.6.
  void nomad(std::string_view part) {
    if (part.size() < 38 || !is_uuid(part.substr(0, 36)) || (part[36] != '.' && part[36] != '-')) return;
    if (!is_name(part.substr(37))) return;
    facts_.nomad_task = part.substr(37);
    found("nomad", part.substr(0, 36));
  }

  // Slurm: <root>/[uid_N/]job_N/step_X, or since 26.05 <root>/<SLUID>.
  void job(std::string_view part) {
    enum : int { kNone, kRoot, kUid, kJob };
    const int before = slurm_;
    slurm_ = kNone;
    if (part == "slurm" || (part.starts_with("slurm_") && is_name(part.substr(6)))) {
      slurm_ = kRoot;
    } else if (part == "slurmstepd.scope" || (part.ends_with("_slurmstepd.scope") && is_unit(part))) {
      slurm_ = kRoot;
    } else if (before == kRoot && part.starts_with("uid_")) {
      if (const auto uid = number(part.substr(4))) {
        slurm_ = kUid;
        if (facts_.depth == 0) facts_.user = *uid;
      }
    } else if ((before == kRoot || before == kUid) && part.starts_with("job_")) {
      // The outermost job is the one the cluster knows.
      if (const auto id = number(part.substr(4)); id && !facts_.slurm_job) {
        slurm_ = kJob;
        facts_.slurm_job = *id;
      }
    } else if (before == kRoot && is_sluid(part) && facts_.slurm_sluid.empty() && !facts_.slurm_job) {
      slurm_ = kJob;
      facts_.slurm_sluid = part;
    } else if (before == kJob && part.starts_with("step_") && is_step(part.substr(5))) {
      facts_.slurm_step = part.substr(5);
    }
  }

  static bool is_sluid(std::string_view part) {
    return part.size() == 14 && part.front() == 's' &&
           std::all_of(part.begin() + 1, part.end(), [](char c) { return is_digit(c) || (c >= 'A' && c <= 'Z'); });
  }

  static bool is_step(std::string_view step) {
    if (step == "batch" || step == "extern" || step == "interactive") return true;
    const std::size_t plus = step.find('+');
    return number(step.substr(0, plus)) && (plus == std::string_view::npos || number(step.substr(plus + 1)));
  }

  // Inside a container these would be the container's own users.
  void session(std::string_view part) {
    ecs_cluster_ = up_ == "ecs";
    if (facts_.depth != 0) return;
    std::optional<std::uint32_t> user;
    if (above_ == "user.slice") user = number(between(part, "user-", ".slice"));
    if (above_ == "user") user = number(between(part, "", ".user"));
    if (above_.starts_with("user-") && above_.ends_with(".slice")) user = number(between(part, "user@", ".service"));
    if (user) facts_.user = user;
  }

  CgroupFacts& facts_;
  std::string_view above_;   // the component before
  std::string_view up_;      // the one before that
  std::string_view pod_id_;  // of podman, for the next container
  std::size_t found_ = 0;    // containers so far, also those over the limit
  std::size_t last_is_machine_ = ~std::size_t{0};
  int slurm_ = 0;
  std::size_t index_ = 0;     // components before this one
  bool relative_ = false;     // began above what is visible
  bool outside_ = false;      // the component before was ".."
  bool above_found_ = false;  // the component before was a container's
  bool above_is_pod_ = false;
  bool ecs_cluster_ = false;
};

}  // namespace

CgroupFacts parse_cgroup(std::string_view path) {
  CgroupFacts facts;
  if (path.ends_with(" (deleted)")) {
    facts.deleted = true;
    path.remove_suffix(10);
  }
  Walk walk(facts);
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    walk.take(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
  }
  return facts;
}

std::string unescaped(std::string_view name) {
  std::string plain;
  for (std::size_t i = 0; i < name.size(); ++i) {
    unsigned value = 0;
    const std::string_view code = name.substr(i, 4);
    if (code.size() == 4 && code.starts_with("\\x") &&
        std::from_chars(code.data() + 2, code.data() + 4, value, 16).ptr == code.data() + 4) {
      plain += static_cast<char>(value);
      i += 3;
    } else {
      plain += name[i];
    }
  }
  return plain;
}

std::string pod_uid_text(std::string_view pod_uid) {
  std::string text(pod_uid);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

}  // namespace gpuwatch::attribute
