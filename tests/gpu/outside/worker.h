// SPDX-License-Identifier: Apache-2.0
// The outside process of gpu-outside: every way from outside to the bytes of
// another process's GPU memory that the open kernel driver has, tried one after
// the other and told. It reads only, and frees what it makes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "outside/rm_calls.h"
#include "probe/code.h"

namespace gpuwatch::outside {

// What the target printed, and where it listens.
struct Target {
  pid_t pid = -1;
  int to = -1, from = -1;
  struct Client {
    int fd;
    Handle handle;
  };
  struct Object {
    Handle client, parent, handle;
    std::uint32_t object_class, flags;
  };
  struct Debugger {
    Handle client, handle, app_client, compute_object;
  };
  struct Map {
    std::uint64_t address, bytes;
    Handle client, memory;
  };
  struct Function {
    std::string name;
    std::uint64_t address, bytes;
  };
  std::vector<Client> clients;
  std::vector<Object> objects;
  std::vector<Debugger> debuggers;
  std::vector<Map> maps;
  std::vector<Function> functions;
  std::uint64_t large = 0;
  std::vector<int> control_files;  // its descriptors of /dev/nvidiactl, as /proc has them
  std::string device_path;         // the GPU's node that it has open

  const Map* map_at(std::uint64_t address) const;
  const Object* object_of(Handle client, std::uint32_t object_class) const;
  // `run TIMES`; what it says. Empty: it is gone.
  std::string run(int times) const;
};

// Numbers lines of TAP in memory that forked processes share.
class Lines {
 public:
  Lines();
  void answer(const std::string& what, const std::string& text);
  static void note(const std::string& text);
  int count() const { return *count_; }

 private:
  int* count_;
};

// Tries everything as the user it runs as. `ends`: at last the target is ended
// while its memory is held, to see what stays.
void examine(Lines& lines, const std::string& who, const Target& target, const probe::Code& code, bool ends);

}  // namespace gpuwatch::outside
