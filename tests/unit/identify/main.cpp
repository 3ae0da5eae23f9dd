// SPDX-License-Identifier: Apache-2.0
// main() of these tests: as a worker it fails on demand, when an image holds
// one of the words that support.h names.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "identify/identify.h"
#include "identify/worker_name.h"
#include "unit/identify/support.h"

namespace {

using namespace gpuwatch::identify;

// The request's images carry their identifier: the trigger travels in it.
void misbehave(Operation operation, Bytes request) {
  if (operation != Operation::kModules) return;
  const std::string_view text = as_text(request);
  if (text.find(gpuwatch::test::kCrash) != std::string_view::npos) std::abort();
  // Sleeping is not among the calls a worker may make; waiting for more is.
  char byte = 0;
  while (text.find(gpuwatch::test::kHang) != std::string_view::npos)
    if (::read(kWorkerFd, &byte, 1) < 0) break;
  if (text.find(gpuwatch::test::kEatMemory) != std::string_view::npos) {
    std::vector<std::string> hoard;
    for (;;) hoard.emplace_back(64 << 20, 'x');
  }
  if (text.find(gpuwatch::test::kCallHome) != std::string_view::npos) (void)::socket(AF_INET, SOCK_STREAM, 0);
  if (text.find(gpuwatch::test::kMakeCode) != std::string_view::npos)
    (void)::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (is_worker(argc, argv)) return worker_main({misbehave});
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
