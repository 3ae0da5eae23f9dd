#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cri.py IMAGE: makes one pod with one container through containerd's CRI, in
the host's network, and prints the ids of its sandbox and of the container."""

import sys

import cri_pb2 as cri
import grpc

POD = "11111111-2222-3333-4444-555555555555"


def main():
    channel = grpc.insecure_channel("unix:///run/containerd/containerd.sock")

    def call(name, request, answer):
        stub = channel.unary_unary(f"/runtime.v1.RuntimeService/{name}",
                                   request_serializer=type(request).SerializeToString,
                                   response_deserializer=answer.FromString)
        return stub(request, timeout=60)

    host = cri.NamespaceOption(network=2, pid=1)
    kubelet = {"io.kubernetes.pod.name": "job-1", "io.kubernetes.pod.namespace": "ml", "io.kubernetes.pod.uid": POD}
    pod = cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(name="job-1", uid=POD, namespace="ml"),
        labels={"app": "llm", **kubelet},
        log_directory=f"/var/log/pods/ml_job-1_{POD}",
        linux=cri.LinuxPodSandboxConfig(
            cgroup_parent=f"/kubepods/besteffort/pod{POD}",
            security_context=cri.LinuxSandboxSecurityContext(namespace_options=host)))
    sandbox = call("RunPodSandbox", cri.RunPodSandboxRequest(config=pod), cri.RunPodSandboxResponse).pod_sandbox_id
    container = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="cuda"), image=cri.ImageSpec(image=sys.argv[1]),
        command=["/bin/sleep", "600"], envs=[cri.KeyValue(key="NVIDIA_VISIBLE_DEVICES", value="0")],
        labels={"io.kubernetes.container.name": "cuda", **kubelet},
        annotations={"cdi.k8s.io/lab": "nvidia.com/gpu=0"}, log_path="cuda/0.log",
        linux=cri.LinuxContainerConfig(security_context=cri.LinuxContainerSecurityContext(namespace_options=host)))
    made = call("CreateContainer",
                cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=container, sandbox_config=pod),
                cri.CreateContainerResponse).container_id
    call("StartContainer", cri.StartContainerRequest(container_id=made), cri.StartContainerResponse)
    print(sandbox, made)


if __name__ == "__main__":
    main()
