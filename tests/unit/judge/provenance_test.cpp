// SPDX-License-Identifier: Apache-2.0
#include "judge/provenance.h"

#include <fstream>

#include "make.h"

namespace gpuwatch::judge {
namespace {

TEST_F(WithBaselines, PackagesFromWhatManagersLeave) {
  namespace fs = std::filesystem;
  fs::create_directories(file("var/lib/dpkg/info"));
  std::ofstream(file("var/lib/dpkg/info/libcublas:amd64.list")) << "/.\n/lib/x/libcublas.so.13.0\n/usr/share/doc/x\n";
  std::ofstream(file("var/lib/dpkg/status"))
      << "Package: other\nVersion: 9\n\nPackage: libcublas\nStatus: x\nVersion: 13.0.2-1\n";
  const std::string site = "opt/venv/lib/python3.11/site-packages";
  fs::create_directories(file(site + "/torch/lib"));
  fs::create_directories(file(site + "/torch-2.9.0.dist-info"));
  fs::create_directories(file(site + "/aaa-1.dist-info"));
  std::ofstream(file(site + "/aaa-1.dist-info/RECORD")) << "aaa/torch/lib/libtorch_cuda.so,,\n";
  std::ofstream(file(site + "/torch-2.9.0.dist-info/RECORD"))
      << "torch/x.py,,\ntorch/lib/libtorch_cuda.so,sha256=x,1\n";
  std::ofstream(file(site + "/torch-2.9.0.dist-info/METADATA"))
      << "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.0\n\nName: not this\n";
  PackageIndex index(directory_);
  const Package cublas = index.owner_of("/usr/lib/x/libcublas.so.13.0");
  EXPECT_EQ(cublas.manager, "dpkg");
  EXPECT_EQ(cublas.name, "libcublas");
  EXPECT_EQ(cublas.version, "13.0.2-1");
  const Package torch = index.owner_of("/" + site + "/torch/lib/libtorch_cuda.so");
  EXPECT_EQ(torch.manager, "pip");
  EXPECT_EQ(torch.name, "torch");
  EXPECT_EQ(torch.version, "2.9.0");
  EXPECT_EQ(index.owner_of("/home/me/a.out").manager, "");
}

}  // namespace
}  // namespace gpuwatch::judge
