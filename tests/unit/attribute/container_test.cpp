// SPDX-License-Identifier: Apache-2.0
// Cgroup paths as runtimes write them, each with what made it and where the
// form is documented, and paths that only look like one of these.
#include "attribute/container.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuwatch::attribute {
namespace {

// In paths: {a} {b} ids of containers, {pod} {pod_} a pod's uid in both
// spellings, {static} a static pod's, {uuid}, {task} 32 hex digits, {bk} an id
// of BuildKit, {garden}.
const std::vector<std::pair<std::string, std::string>> kWords = {
    {"{a}", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
    {"{b}", "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"},
    {"{pod}", "11111111-2222-3333-4444-555555555555"},
    {"{pod_}", "11111111_2222_3333_4444_555555555555"},
    {"{static}", "8daa50c3a64c9ff60bb9eab7b44b56fd"},
    {"{uuid}", "84407c34-35e1-b0cb-4a8f-f3b6c9a8cc81"},
    {"{task}", "34dc0b5e626f2c5c4c5170e34b10e765"},
    {"{bk}", "x5h7oizyhrunip3o2urd7of1d"},
    {"{garden}", "70eb4ce5-a065-4401-6990-88ed"},
};

std::string fill(std::string text) {
  for (const auto& [word, value] : kWords)
    for (std::size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, word.size(), value);
  return text;
}

// One line: "runtime=docker id={a} ...", in this order, what is not known left out.
std::string summary(const CgroupFacts& facts) {
  std::string out;
  const auto add = [&out](const char* name, const std::string& value) {
    if (value.empty()) return;
    if (!out.empty()) out += ' ';
    out += name;
    out += '=';
    out += value;
  };
  if (const Container* inner = facts.innermost()) {
    add("runtime", std::string(inner->runtime));
    add("id", unescaped(inner->id));
    add("podman_pod", std::string(inner->pod_id));
  }
  if (facts.depth > 1) {
    std::string chain;
    for (std::size_t i = 0; i < facts.depth; ++i) chain += (i == 0 ? "" : ">") + std::string(facts.chain[i].runtime);
    add("chain", chain);
  }
  add("pod", pod_uid_text(facts.pod_uid));
  add("qos", std::string(facts.qos));
  add("unit", std::string(facts.unit));
  if (facts.user) add("user", std::to_string(*facts.user));
  if (facts.slurm_job) add("job", std::to_string(*facts.slurm_job));
  add("sluid", std::string(facts.slurm_sluid));
  add("step", std::string(facts.slurm_step));
  add("task", std::string(facts.nomad_task));
  add("ecs", std::string(facts.ecs_task));
  if (facts.deleted) add("deleted", "yes");
  return out;
}

struct Row {
  const char* source;  // what makes the form, where it is documented
  const char* path;
  const char* expected;
};

// clang-format off
const Row kForms[] = {
    // Docker
    {"docker, cgroupfs driver; containrrr/watchtower cgroup_id.go", "/docker/{a}", "runtime=docker id={a}"},
    {"docker, systemd driver; aws/amazon-ecs-agent#3127", "/system.slice/docker-{a}.scope",
     "runtime=docker id={a} unit=docker-{a}.scope"},
    {"docker --cgroup-parent; moby/moby#45796", "/mycgroup.slice/docker-{a}.scope",
     "runtime=docker id={a} unit=docker-{a}.scope"},
    {"docker, parent above the driver's; open-telemetry/opentelemetry-go#3633", "/docker-ce/docker/{a}",
     "runtime=docker id={a}"},
    {"docker, a group the container made; earthly/earthly#1533", "/system.slice/docker-{a}.scope/grp.scope",
     "runtime=docker id={a} unit=grp.scope"},
    {"docker, systemd inside; elastic/quark#222", "/docker/{a}/system.slice/nginx.service",
     "runtime=docker id={a} unit=nginx.service"},
    {"docker, rootless; rootlesscontaine.rs cgroup2",
     "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{a}.scope",
     "runtime=docker id={a} unit=docker-{a}.scope user=1000"},
    {"docker in docker, cgroupfs; aquasecurity/tracee#2925", "/docker/{a}/docker/{b}",
     "runtime=docker id={b} chain=docker>docker"},
    {"docker in docker, systemd outside; aquasecurity/tracee#2896", "/system.slice/docker-{a}.scope/docker/{b}",
     "runtime=docker id={b} chain=docker>docker unit=docker-{a}.scope"},
    {"docker in LXC; google/cadvisor#450", "/lxc/x1/docker/{a}", "runtime=docker id={a} chain=lxc>docker"},
    {"docker, v1 under a service; kata-containers/runtime#1021", "/system.slice/docker.service/docker/{a}",
     "runtime=docker id={a} unit=docker.service"},
    // BuildKit
    {"buildkit in dockerd, cgroupfs; cryptnono/cryptnono#93", "/docker/buildkit/{bk}", "runtime=buildkit id={bk}"},
    {"buildkit in dockerd, systemd; docker/buildx#782", "/system.slice/docker-{bk}.scope",
     "runtime=buildkit id={bk} unit=docker-{bk}.scope"},
    {"buildkitd; moby/buildkit#6368", "/buildkit/{bk}", "runtime=buildkit id={bk}"},
    {"buildx, docker-container driver; docker/buildx#782", "/docker/buildx/{bk}", "runtime=buildkit id={bk}"},
    {"buildkitd in a pod with its namespace; moby/buildkit#6368", "/kubepods/burstable/pod{pod}/{a}/buildkit/{bk}",
     "runtime=buildkit id={bk} chain=kubernetes>buildkit pod={pod} qos=burstable"},
    // containerd
    {"containerd CRI, systemd; netdata/netdata#4868",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod_}.slice/cri-containerd-{a}.scope",
     "runtime=containerd id={a} pod={pod} qos=burstable unit=cri-containerd-{a}.scope"},
    {"containerd CRI, guaranteed; kata-containers#11598",
     "/kubepods.slice/kubepods-pod{pod_}.slice/cri-containerd-{a}.scope",
     "runtime=containerd id={a} pod={pod} qos=guaranteed unit=cri-containerd-{a}.scope"},
    {"containerd CRI, static pod; netdata/netdata#4868",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{static}.slice/cri-containerd-{a}.scope",
     "runtime=containerd id={a} pod={static} qos=burstable unit=cri-containerd-{a}.scope"},
    {"containerd, slice:prefix:id below its service; falcosecurity/libs#63",
     "/system.slice/containerd.service/kubepods-burstable-pod{pod_}.slice:cri-containerd:{a}",
     "runtime=containerd id={a} pod={pod} qos=burstable unit=containerd.service"},
    {"containerd, slice:prefix:id at the root; containerd/nri#227",
     "/kubelet-kubepods-besteffort-pod{pod_}.slice:cri-containerd:{a}",
     "runtime=containerd id={a} pod={pod} qos=besteffort"},
    {"nerdctl, systemd; falcosecurity/plugins#1378", "/system.slice/nerdctl-{a}.scope",
     "runtime=containerd id={a} unit=nerdctl-{a}.scope"},
    {"nerdctl, rootless; containerd/nerdctl#5182",
     "/user.slice/user-1001.slice/user@1001.service/user.slice/nerdctl-{a}.scope",
     "runtime=containerd id={a} unit=nerdctl-{a}.scope user=1001"},
    {"containerd client, /namespace/id; containerd oci.WithNamespacedCgroup", "/default/{a}",
     "runtime=containerd id={a}"},
    {"containerd, own scope; elastic/quark#222", "/system.slice/containerd-{a}.scope",
     "runtime=containerd id={a} unit=containerd-{a}.scope"},
    {"kata, hypervisor of a sandbox; kata-containers#11598", "/kata_overhead/{a}", "runtime=kata id={a}"},
    // CRI-O
    {"cri-o, systemd; opencontainers/runc#4620",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod_}.slice/crio-{a}.scope",
     "runtime=cri-o id={a} pod={pod} qos=burstable unit=crio-{a}.scope"},
    {"cri-o with crun, which adds a directory; measured with crun 1.8.1",
     "/kubepods.slice/kubepods-pod{pod_}.slice/crio-{a}.scope/container",
     "runtime=cri-o id={a} pod={pod} qos=guaranteed unit=crio-{a}.scope"},
    {"cri-o, cgroupfs; elastic/quark#222", "/kubepods/besteffort/pod{pod}/crio-{a}",
     "runtime=cri-o id={a} pod={pod} qos=besteffort"},
    {"cri-o in minikube's docker; kubernetes/minikube#11280",
     "/docker/{a}/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{pod_}.slice/crio-{b}.scope",
     "runtime=cri-o id={b} chain=docker>cri-o pod={pod} qos=besteffort unit=crio-{b}.scope"},
    // Kubernetes, cgroupfs: the path does not say which runtime
    {"kubelet cgroupfs, burstable; moby/moby#34584", "/kubepods/burstable/pod{pod}/{a}",
     "runtime=kubernetes id={a} pod={pod} qos=burstable"},
    {"kubelet cgroupfs, guaranteed; Kubernetes node allocatable", "/kubepods/pod{pod}/{a}",
     "runtime=kubernetes id={a} pod={pod} qos=guaranteed"},
    {"kubelet cgroupfs, besteffort; containers/crun#729", "/kubepods/besteffort/pod{pod}/{a}",
     "runtime=kubernetes id={a} pod={pod} qos=besteffort"},
    {"kubelet cgroupfs, static pod; kubelet file source", "/kubepods/burstable/pod{static}/{a}",
     "runtime=kubernetes id={a} pod={static} qos=burstable"},
    {"dockershim, systemd; lxc/lxc#3891",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod_}.slice/docker-{a}.scope",
     "runtime=docker id={a} pod={pod} qos=burstable unit=docker-{a}.scope"},
    {"kind, cgroupfs; kubernetes-sigs/kind", "/docker/{a}/kubelet/kubepods/burstable/pod{pod}/{b}",
     "runtime=kubernetes id={b} chain=docker>kubernetes pod={pod} qos=burstable"},
    {"kind, systemd; containerd/nri#227",
     "/system.slice/docker-{a}.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
     "kubelet-kubepods-besteffort-pod{pod_}.slice/cri-containerd-{b}.scope",
     "runtime=containerd id={b} chain=docker>containerd pod={pod} qos=besteffort unit=cri-containerd-{b}.scope"},
    {"kind in a pod; nested kind in CI",
     "/kubepods/burstable/pod{uuid}/{a}/docker/{b}/kubelet/kubepods/besteffort/pod{pod}/{a}",
     "runtime=kubernetes id={a} chain=kubernetes>docker>kubernetes pod={pod} qos=besteffort"},
    {"k3s below its service; k3s-io/k3s", "/system.slice/k3s.service/kubepods/burstable/pod{pod}/{a}",
     "runtime=kubernetes id={a} pod={pod} qos=burstable unit=k3s.service"},
    {"k3s rootless, cgroupfs in a delegated unit; k3s-io/k3s#3004",
     "/user.slice/user-1000.slice/user@1000.service/app.slice/k3s-rootless.service/kubepods/besteffort/pod{pod}/{a}",
     "runtime=kubernetes id={a} pod={pod} qos=besteffort unit=k3s-rootless.service user=1000"},
    {"k3d, k3s in docker; k3d-io/k3d", "/docker/{a}/kubepods/burstable/pod{pod}/{b}",
     "runtime=kubernetes id={b} chain=docker>kubernetes pod={pod} qos=burstable"},
    {"a process in the pod's own group; kubelet pod cgroups", "/kubepods/burstable/pod{pod}",
     "pod={pod} qos=burstable"},
    {"docker in a pod keeps the pod; coder/envbox#168", "/kubepods/burstable/pod{pod}/{a}/docker/{b}",
     "runtime=docker id={b} chain=kubernetes>docker pod={pod} qos=burstable"},
    // podman
    {"podman, systemd with crun; podman-container-tools/podman#13673", "/machine.slice/libpod-{a}.scope/container",
     "runtime=podman id={a} unit=libpod-{a}.scope"},
    {"podman, cgroupfs; measured with podman 4.3.1", "/libpod_parent/libpod-{a}", "runtime=podman id={a}"},
    {"podman, rootless; podman-container-tools/podman#4639",
     "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{a}.scope/container",
     "runtime=podman id={a} unit=libpod-{a}.scope user=1000"},
    {"podman quadlet, --cgroups=split; podman-container-tools/podman#16589",
     "/system.slice/quadlet-minimal.service/libpod-payload-{a}",
     "runtime=podman id={a} unit=quadlet-minimal.service"},
    {"podman quadlet of a user; coroot/coroot-node-agent#251",
     "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service/libpod-payload-{a}",
     "runtime=podman id={a} unit=web.service user=1000"},
    {"podman pod, systemd; podman-container-tools/podman#13673",
     "/machine.slice/machine-libpod_pod_{b}.slice/libpod-{a}.scope/container",
     "runtime=podman id={a} podman_pod={b} unit=libpod-{a}.scope"},
    {"podman pod, rootless; podman-container-tools/podman#23026",
     "/user.slice/user-1000.slice/user@1000.service/user.slice/user-libpod_pod_{b}.slice/libpod-{a}.scope",
     "runtime=podman id={a} podman_pod={b} unit=libpod-{a}.scope user=1000"},
    {"podman pod, cgroupfs; libpod pod_internal", "/libpod_parent/{b}/libpod-{a}",
     "runtime=podman id={a} podman_pod={b}"},
    {"podman under Nomad; hashicorp/nomad-driver-podman#248", "/nomad.slice/libpod-{a}.scope",
     "runtime=podman id={a} unit=libpod-{a}.scope"},
    {"podman build, systemd; podman-container-tools/buildah#2310",
     "/user.slice/user-1000.slice/user@1000.service/buildah-buildah106535269-1629075.scope",
     "runtime=buildah id=buildah106535269 unit=buildah-buildah106535269-1629075.scope user=1000"},
    {"podman build, cgroupfs; podman-container-tools/buildah#4525", "/buildah-buildah2937778511",
     "runtime=buildah id=buildah2937778511"},
    // LXC, LXD, Incus
    {"LXC before 3.1; netdata/netdata#3199", "/lxc/deloittedigi/system.slice/irqbalance.service",
     "runtime=lxc id=deloittedigi unit=irqbalance.service"},
    {"LXC 3.1; draios/sysdig#1344", "/lxc.payload/web", "runtime=lxc id=web"},
    {"LXC 4, LXD, Incus; elastic/quark#352", "/lxc.payload.c1/init.scope", "runtime=lxc id=c1 unit=init.scope"},
    {"LXD and Incus, instance of a project; canonical/lxd project.Instance", "/lxc.payload.research_gpu-1",
     "runtime=lxc id=research_gpu-1"},
    {"LXC of a user; lxc/lxc#3061", "/user.slice/user-1000.slice/session-2.scope/lxc.payload.box/user.slice/user-0.slice",
     "runtime=lxc id=box unit=session-2.scope user=1000"},
    {"Proxmox; draios/sysdig#801", "/lxc/101/ns/system.slice/snapd.service", "runtime=lxc id=101 unit=snapd.service"},
    {"podman in LXC; containers/crun#678", "/lxc.payload.c1/machine.slice/libpod-{a}.scope",
     "runtime=podman id={a} chain=lxc>podman unit=libpod-{a}.scope"},
    // systemd-nspawn, machines
    {"nspawn as a service; systemd-nspawn@.service", "/machine.slice/systemd-nspawn@debian.service/payload/init.scope",
     "runtime=systemd-nspawn id=debian unit=init.scope"},
    {"nspawn from a shell; systemd/systemd#18104", "/machine.slice/machine-web\\x2d1.scope/payload",
     "runtime=systemd-nspawn id=web-1 unit=machine-web\\x2d1.scope"},
    {"machined, maker not told; systemd/systemd#5490", "/machine.slice/machine-rootfs.scope",
     "runtime=machine id=rootfs unit=machine-rootfs.scope"},
    {"libvirt QEMU; libvirt cgroups page", "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/emulator",
     "runtime=libvirt-qemu id=qemu-1-vm unit=machine-qemu\\x2d1\\x2dvm.scope"},
    {"libvirt LXC; libvirt cgroups page", "/machine.slice/machine-lxc\\x2d2\\x2dct.scope/libvirt",
     "runtime=libvirt-lxc id=lxc-2-ct unit=machine-lxc\\x2d2\\x2dct.scope"},
    {"libvirt LXC without systemd; systemd/systemd#13629", "/machine/lxc-1268-sl.libvirt-lxc",
     "runtime=libvirt-lxc id=lxc-1268-sl"},
    {"nspawn's own process is not in the machine; systemd/systemd#18104",
     "/machine.slice/systemd-nspawn@debian.service/supervisor", "unit=systemd-nspawn@debian.service"},
    // Garden, Mesos
    {"garden; elastic/apm-agent-nodejs#1191", "/system.slice/garden.service/garden/{garden}",
     "runtime=garden id={garden} unit=garden.service"},
    {"garden with CPU entitlement; cloudfoundry/guardian", "/garden/good/{garden}", "runtime=garden id={garden}"},
    {"mesos; d2iq-archive/kubernetes-mesos#565", "/mesos/{uuid}", "runtime=mesos id={uuid}"},
    // Slurm
    {"Slurm v1; slurm cgroup/v1", "/slurm/uid_1000/job_4242/step_0/task_0", "user=1000 job=4242 step=0"},
    {"Slurm v1, batch; slurm cgroup/v1", "/slurm/uid_1000/job_4242/step_batch", "user=1000 job=4242 step=batch"},
    {"Slurm v1, several slurmd; plazonic/cgroup_exporter#5", "/slurm_node7/uid_1000/job_12/step_extern/task_0",
     "user=1000 job=12 step=extern"},
    {"Slurm v2; clemsonciti/jobperf#3", "/system.slice/slurmstepd.scope/job_77/step_0/user/task_0",
     "unit=slurmstepd.scope job=77 step=0"},
    {"Slurm v2, several slurmd; treydock/cgroup_exporter#30",
     "/system.slice/node7_slurmstepd.scope/job_77/step_interactive/user",
     "unit=node7_slurmstepd.scope job=77 step=interactive"},
    {"Slurm 26.05, SLUID; guilbaults/slurm-job-exporter#66",
     "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0",
     "unit=slurmstepd.scope sluid=s5K1KKYAYG5D00 step=0"},
    {"podman in a Slurm job; Slurm cgroup/v2", "/system.slice/slurmstepd.scope/job_5/step_1/user/task_0/libpod-{a}",
     "runtime=podman id={a} unit=slurmstepd.scope job=5 step=1"},
    {"slurmd in a pod; stackhpc/slurm-k8s-cluster#39",
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{pod_}.slice/system.slice/slurmstepd.scope/job_9",
     "pod={pod} qos=besteffort unit=slurmstepd.scope job=9"},
    // Nomad, ECS
    {"Nomad 1.7 exec; hashicorp/nomad#23405", "/nomad.slice/share.slice/{uuid}.web.scope",
     "runtime=nomad id={uuid} unit={uuid}.web.scope task=web"},
    {"Nomad reserved cores; hashicorp/nomad#23405", "/nomad.slice/reserve.slice/{uuid}.train.scope",
     "runtime=nomad id={uuid} unit={uuid}.train.scope task=train"},
    {"Nomad with containerd; Roblox/nomad-driver-containerd#133", "/nomad.slice/{uuid}.sleep3.scope",
     "runtime=nomad id={uuid} unit={uuid}.sleep3.scope task=sleep3"},
    {"Nomad 1.3; hashicorp/nomad#12274", "/nomad.slice/{uuid}-web.scope",
     "runtime=nomad id={uuid} unit={uuid}-web.scope task=web"},
    {"Nomad, cgroup v1; hashicorp/nomad cgroupslib", "/nomad/share/{uuid}.web", "runtime=nomad id={uuid} task=web"},
    {"docker under Nomad; hashicorp/nomad#12274", "/nomad.slice/docker-{a}.scope",
     "runtime=docker id={a} unit=docker-{a}.scope"},
    {"ECS on EC2; nginx-proxy/acme-companion#317", "/ecs/{uuid}/{a}", "runtime=ecs id={a} ecs={uuid}"},
    {"ECS on EC2, new task ids; open-telemetry/opentelemetry-js-contrib#2032", "/ecs/{task}/{a}",
     "runtime=ecs id={a} ecs={task}"},
    {"ECS with the cluster's name; ecs-agent long ARNs", "/ecs/prod/{task}/{a}", "runtime=ecs id={a} ecs={task}"},
    {"Fargate 1.4; DataDog/dd-trace-java#2432", "/ecs/{task}/{task}-1234567890",
     "runtime=ecs id={task}-1234567890 ecs={task}"},
    {"ECS, cgroup v2; aws/amazon-ecs-agent#3127", "/ecstasks.slice/ecstasks-{task}.slice/docker-{a}.scope",
     "runtime=docker id={a} unit=docker-{a}.scope ecs={task}"},
    // systemd and sessions
    {"login session; systemd-logind", "/user.slice/user-1000.slice/session-3.scope", "unit=session-3.scope user=1000"},
    {"user service; systemd --user",
     "/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service", "unit=jupyter.service user=1000"},
    {"system service; systemd", "/system.slice/nvidia-persistenced.service", "unit=nvidia-persistenced.service"},
    {"template with escapes; systemd-escape", "/system.slice/system-run\\x2dgpu.slice/run-gpu@a\\x2db.service",
     "unit=run-gpu@a\\x2db.service"},
    {"name that collides with a controller; systemd cg_escape", "/system.slice/_cpu.service", "unit=cpu.service"},
    {"systemd 229 sessions; lxc/lxc#121", "/user/1000.user/c3.session", "user=1000"},
    {"init; systemd", "/init.scope", "unit=init.scope"},
    // Namespaces, deletion
    {"sibling pod from inside a namespace; inspektor-gadget#3085",
     "/../../../kubepods-burstable.slice/kubepods-burstable-pod{pod_}.slice/cri-containerd-{a}.scope",
     "runtime=containerd id={a} pod={pod} qos=burstable unit=cri-containerd-{a}.scope"},
    {"sibling pod, cgroupfs; cgroup-v2 namespaces", "/../../pod{pod}/{a}", "runtime=kubernetes id={a} pod={pod}"},
    {"sibling container, systemd; cgroup-v2 namespaces", "/../docker-{a}.scope",
     "runtime=docker id={a} unit=docker-{a}.scope"},
    {"removed group; kernel cgroup.c", "/docker/{a} (deleted)", "runtime=docker id={a} deleted=yes"},
    {"removed group of a service; kernel cgroup.c", "/system.slice/a.service (deleted)", "unit=a.service deleted=yes"},
};

const Row kLookAlikes[] = {
    {"nothing", "", ""},
    {"root", "/", ""},
    {"only slashes", "////", ""},
    {"root of a private namespace", "/../..", ""},
    {"63 digits", "/docker/0{b}", ""},
    {"letter after f", "/docker/g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", ""},
    {"upper case", "/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", ""},
    {"65 digits", "/docker/{a}0", ""},
    {"scope with 65 digits keeps the unit only", "/system.slice/docker-{a}0.scope", "unit=docker-{a}0.scope"},
    {"scope's ending is missing", "/system.slice/docker-{a}", ""},
    {"other prefix", "/system.slice/xdocker-{a}.scope", "unit=xdocker-{a}.scope"},
    {"empty id", "/system.slice/docker-.scope", "unit=docker-.scope"},
    {"a bare id", "/{a}", ""},
    {"parent is not docker", "/notdocker/{a}", ""},
    {"docker --cgroup-parent=/foo: nobody can tell", "/foo/{a}", ""},
    {"the runtime's keeper: cri-o", "/kubepods.slice/crio-conmon-{a}.scope", "unit=crio-conmon-{a}.scope"},
    {"the runtime's keeper: podman", "/machine.slice/libpod-conmon-{a}.scope", "unit=libpod-conmon-{a}.scope"},
    {"the runtime's keeper: quadlet", "/system.slice/web.service/runtime", "unit=web.service"},
    {"the runtime's keeper: LXC", "/lxc.monitor.c1", ""},
    {"the runtime's keeper: LXC 3.1", "/lxc.monitor/c1", ""},
    {"containerd itself", "/system.slice/containerd.service", "unit=containerd.service"},
    {"pod uid one short", "/kubepods/pod1111111-2222-3333-4444-555555555555/{a}", ""},
    {"pod uid of mixed joints", "/kubepods/pod11111111-2222_3333-4444-555555555555/{a}", ""},
    {"pod outside of kubepods", "/x/pod{pod}/{a}", ""},
    {"kubepods inside a word", "/xkubepods-pod{pod_}.slice/x", ""},
    {"a directory that starts like a pod", "/kubepods/pod{pod}/podman/{a}", "pod={pod} qos=guaranteed"},
    {"QoS that does not exist", "/kubepods.slice/kubepods-gold-pod{pod_}.slice", ""},
    {"buildkit, 24 characters", "/buildkit/x5h7oizyhrunip3o2urd7of1", ""},
    {"buildkit, other parent", "/foo/{bk}", ""},
    {"garden, other parent", "/foo/{garden}", ""},
    {"concourse at the root", "/0d233f08-00c2-43d8-5b57-2c2af4f5bfc0", ""},
    {"LXC without a name", "/lxc", ""},
    {"LXC name with a blank", "/lxc/a b", ""},
    {"LXC name with an escape code", "/lxc/\x1b[31mred", ""},
    {"machine with another escape", "/machine.slice/machine-a\\x2fb.scope", "unit=machine-a\\x2fb.scope"},
    {"machine outside of a slice", "/foo/machine-a.scope", "unit=machine-a.scope"},
    {"nspawn without a name", "/machine.slice/systemd-nspawn@.service", "unit=systemd-nspawn@.service"},
    {"Slurm job that is none", "/slurm/uid_1000/job_x", "user=1000"},
    {"Slurm job over 32 bits", "/slurm/uid_1000/job_4294967296", "user=1000"},
    {"Slurm job with a sign", "/slurm/uid_1000/job_+5", "user=1000"},
    {"Slurm job without its root", "/foo/job_5/step_0", ""},
    {"Slurm step that is none", "/slurm/uid_1/job_5/step_../x", "user=1 job=5"},
    {"SLUID one short", "/system.slice/slurmstepd.scope/s5K1KKYAYG5D0", "unit=slurmstepd.scope"},
    {"Nomad without a task", "/nomad.slice/{uuid}.scope", "unit={uuid}.scope"},
    {"Nomad's form elsewhere", "/system.slice/{uuid}.web.scope", "unit={uuid}.web.scope"},
    {"ECS, another task's id", "/ecs/{task}/{static}-1234567890", ""},
    {"ECS without a task", "/ecs/{a}", ""},
    {"user that is none", "/user.slice/user-abc.slice", ""},
    {"user with a leading zero", "/user.slice/user-01000.slice", ""},
    {"user over 32 bits", "/user.slice/user-4294967296.slice", ""},
    {"user slice elsewhere", "/foo/user-1000.slice", ""},
    {"a container's own user", "/docker/{a}/user.slice/user-1000.slice", "runtime=docker id={a}"},
    {"unit with a control byte", "/system.slice/a\x07.service", ""},
    {"unit without a name", "/system.slice/.service", ""},
    {"default below something", "/foo/default/{a}", ""},
    {"deleted inside", "/docker (deleted)/{a}", ""},
    {"colon form without a slice", "/foo:cri-containerd:{a}", ""},
    {"colon form of another runtime", "/a.slice:foo:{a}", ""},
    {"buildah with letters", "/buildah-buildahx1", ""},
};
// clang-format on

TEST(Cgroup, KnownForms) {
  static_assert(std::size(kForms) >= 60);
  for (const Row& row : kForms) {
    const std::string path = fill(row.path);
    EXPECT_EQ(summary(parse_cgroup(path)), fill(row.expected)) << row.source << "\n" << path;
  }
}

TEST(Cgroup, WhatOnlyLooksLikeOneIsLeftAlone) {
  for (const Row& row : kLookAlikes) {
    const std::string path = fill(row.path);
    EXPECT_EQ(summary(parse_cgroup(path)), fill(row.expected)) << row.source << "\n" << path;
    EXPECT_EQ(parse_cgroup(path).unknown(), row.expected[0] == '\0') << path;
  }
}

TEST(Cgroup, AnIdWithANulIsNone) {
  std::string path = fill("/docker/{a}");
  path[20] = '\0';
  EXPECT_TRUE(parse_cgroup(path).unknown());
}

// Every prefix, and every form with one byte changed, must be harmless, and an
// id that comes out must still lie in the path.
TEST(Cgroup, DamagedFormsStayInside) {
  for (const Row& row : kForms) {
    const std::string whole = fill(row.path);
    for (std::size_t i = 0; i <= whole.size(); ++i) {
      for (const char c : {'\0', '/', ':', '-', '\\', '\xff'}) {
        std::string path = whole.substr(0, i);
        path += c;
        if (i < whole.size()) path += whole.substr(i + 1);
        const CgroupFacts facts = parse_cgroup(path);
        for (std::size_t k = 0; k < facts.depth; ++k) {
          const std::string_view id = facts.chain[k].id;
          ASSERT_TRUE(id.data() >= path.data() && id.data() + id.size() <= path.data() + path.size());
          ASSERT_FALSE(id.empty());
        }
      }
    }
  }
}

TEST(Cgroup, ADeepChainKeepsTheInnermost) {
  std::string path;
  for (int i = 0; i < 20; ++i) path += fill("/docker/{a}");
  path += fill("/lxc/last");
  const CgroupFacts facts = parse_cgroup(path);
  EXPECT_EQ(facts.depth, kMaxChain);
  EXPECT_TRUE(facts.chain_cut);
  EXPECT_EQ(facts.innermost()->id, "last");
  EXPECT_EQ(facts.chain[0].runtime, "docker");
}

TEST(Cgroup, EachContainerOfAChainHasItsOwnPod) {
  const std::string path = fill("/kubepods/burstable/pod{uuid}/{a}/docker/{b}/kubelet/kubepods/pod{pod}/{a}");
  const CgroupFacts facts = parse_cgroup(path);
  ASSERT_EQ(facts.depth, 3U);
  EXPECT_EQ(facts.chain[0].pod_uid, fill("{uuid}"));
  EXPECT_EQ(facts.chain[1].pod_uid, fill("{uuid}"));
  EXPECT_EQ(facts.chain[2].pod_uid, fill("{pod}"));
  EXPECT_EQ(facts.chain[2].qos, "guaranteed");
}

}  // namespace
}  // namespace gpuwatch::attribute
