// SPDX-License-Identifier: Apache-2.0
// Which package a file belongs to, from what package managers leave on disk:
// dpkg's file lists, pip's dist-info, and the rpm program where there is one.
// Hints for people: nobody's verdict depends on them.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace gpuwatch::judge {

struct Package {
  std::string manager;  // "dpkg", "pip", "rpm"; empty: none knows the file
  std::string name;
  std::string version;
};

class PackageIndex {
 public:
  // `root` is put before the managers' own paths; "" for this system.
  explicit PackageIndex(std::string root = "");
  ~PackageIndex();

  // `path` is absolute. Reads dpkg's lists once, at the first question.
  Package owner_of(const std::string& path);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gpuwatch::judge
