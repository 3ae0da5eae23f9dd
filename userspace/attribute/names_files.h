// SPDX-License-Identifier: Apache-2.0
// Names from what runtimes and the kubelet leave on disk. Regular files only,
// bounded, opened so that neither a link in the last place nor a pipe can lead
// or hold us elsewhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attribute/names_source.h"

namespace gpuwatch::attribute {

// containerd's and cri-o's bundles.
std::unique_ptr<NameSource> make_bundle_source(const std::string& root);
// containers/storage of podman and cri-o, of root.
std::unique_ptr<NameSource> make_podman_store_source(const std::string& root);
std::unique_ptr<NameSource> make_docker_store_source(const std::string& root);
// CDI devices of the container's bundle, of containerd, docker, cri-o or podman.
std::vector<std::string> read_cdi_devices(const std::string& root, const std::string& container_id);
// /var/log/containers and /var/log/pods.
std::unique_ptr<NameSource> make_kubelet_source(const std::string& root);

}  // namespace gpuwatch::attribute
