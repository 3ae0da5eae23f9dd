// SPDX-License-Identifier: Apache-2.0
// Can the code in another process's GPU memory be read from outside, with no
// agent in it? Starts a target with a cubin loaded, as root and as nobody, and
// tries all ways that the driver has, as root and as nobody. Prints every answer
// of the driver as a line of TAP, with the bytes compared; judges nothing. The
// target's memory is only read.
//
// usage: gpu-outside CUBIN      77: no GPU
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "outside/target.h"
#include "outside/worker.h"
#include "probe/images.h"

using namespace gpuwatch;
using namespace gpuwatch::outside;

namespace {

constexpr uid_t kNobody = 65534;
constexpr unsigned kWorkerSeconds = 60;

bool become(uid_t uid) {
  return uid == ::geteuid() || (::setgroups(0, nullptr) == 0 && ::setgid(uid) == 0 && ::setuid(uid) == 0);
}

std::string line_of(int fd) {
  std::string out;
  char one = 0;
  pollfd wait{fd, POLLIN, 0};
  while (::poll(&wait, 1, 60'000) == 1 && ::read(fd, &one, 1) == 1 && one != '\n') out += one;
  return out;
}

void take(Target& target, const std::string& line) {
  std::istringstream words(line);
  std::string what;
  words >> what >> std::hex;
  if (what == "client") {
    Target::Client client{};
    words >> client.fd >> client.handle;
    target.clients.push_back(client);
  } else if (what == "object") {
    Target::Object object{};
    words >> object.client >> object.parent >> object.handle >> object.object_class >> object.flags;
    target.objects.push_back(object);
  } else if (what == "debugger") {
    Target::Debugger debugger{};
    words >> debugger.client >> debugger.handle >> debugger.app_client >> debugger.compute_object;
    target.debuggers.push_back(debugger);
  } else if (what == "map") {
    Target::Map map{};
    words >> map.address >> std::dec >> map.bytes >> std::hex >> map.client >> map.memory;
    target.maps.push_back(map);
  } else if (what == "function") {
    Target::Function function{};
    words >> function.name >> function.address >> std::dec >> function.bytes;
    target.functions.push_back(function);
  } else if (what == "large") {
    words >> target.large;
  }
}

// What /proc says of its descriptors: the files of the driver that it has open.
void look_at_files(Target& target) {
  const std::string folder = "/proc/" + std::to_string(target.pid) + "/fd";
  DIR* const all = ::opendir(folder.c_str());
  if (all == nullptr) return;
  while (const dirent* entry = ::readdir(all)) {
    char path[256];
    const ssize_t length = ::readlink((folder + "/" + entry->d_name).c_str(), path, sizeof path - 1);
    if (length <= 0) continue;
    const std::string name(path, static_cast<std::size_t>(length));
    if (name == "/dev/nvidiactl") target.control_files.push_back(std::atoi(entry->d_name));
    if (name.rfind("/dev/nvidia", 0) == 0 && name.size() > 11 && name[11] >= '0' && name[11] <= '9')
      target.device_path = name;
  }
  ::closedir(all);
}

// Empty: it runs, else what it said.
std::string start(Target& target, const char* cubin, uid_t uid) {
  int to[2], from[2];
  const int image = ::open(cubin, O_RDONLY);
  const int self = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (image < 0 || self < 0 || ::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0)
    return std::strerror(errno);
  target.pid = ::fork();
  if (target.pid == 0) {
    ::dup2(to[0], 0);
    ::dup2(from[1], 1);
    if (!become(uid)) ::_exit(2);
    ::setenv("HOME", "/tmp", 1);
    ::setenv("CUDA_CACHE_DISABLE", "1", 1);
    // By descriptor: the folders on the way may be closed to this user.
    const std::string path = "/proc/self/fd/" + std::to_string(image);
    const char* const words[] = {"gpu-outside", "--target", path.c_str(), nullptr};
    ::fexecve(self, const_cast<char* const*>(words), environ);
    ::_exit(2);
  }
  ::close(image);
  ::close(self);
  ::close(to[0]);
  ::close(from[1]);
  target.to = to[1];
  target.from = from[0];
  for (std::string line; !(line = line_of(target.from)).empty();) {
    Lines::note("target: " + line);
    if (line == "ready") {
      look_at_files(target);
      return "";
    }
    if (line.rfind("skip", 0) == 0 || line.rfind("failed", 0) == 0) return line;
    take(target, line);
  }
  return "it ended without a word";
}

void end(Target& target) {
  ::close(target.to);
  ::close(target.from);
  ::kill(target.pid, SIGKILL);
  ::waitpid(target.pid, nullptr, 0);
}

void show(const char* path, const char* lines_with) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.find(lines_with) != std::string::npos) Lines::note(std::string(path) + ": " + line);
}

const char* name_of(uid_t uid) {
  return uid == 0 ? "root" : uid == kNobody ? "nobody" : "this user";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--target") == 0) return run_target(argv[2]);
  if (argc != 2) {
    std::fprintf(stderr, "usage: gpu-outside CUBIN\n");
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  Lines lines;
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<std::uint8_t> image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  probe::Code code;
  if (const std::string wrong = probe::read_code(image, code); !wrong.empty()) {
    std::fprintf(stderr, "gpu-outside: %s: %s\n", argv[1], wrong.c_str());
    return 2;
  }
  show("/proc/driver/nvidia/version", "");
  show("/proc/sys/kernel/yama/ptrace_scope", "");
  show("/proc/self/status", "CapEff");
  show("/proc/self/status", "Seccomp");
  show("/proc/self/uid_map", "");
  const uid_t me = ::geteuid();
  std::vector<uid_t> users{me};
  if (me == 0) users = {0, kNobody};
  bool started = false;
  for (const uid_t of : users) {
    Target target;
    if (const std::string wrong = start(target, argv[1], of); !wrong.empty()) {
      end(target);
      if (!started && wrong.rfind("skip", 0) == 0 && of == users.front()) {
        std::printf("1..0 # SKIP %s\n", wrong.c_str() + 5);
        return 77;
      }
      lines.answer(std::string("a target of ") + name_of(of), wrong);
      continue;
    }
    started = true;
    for (std::size_t i = 0; i < users.size(); ++i) {
      // The target's own user last: that one ends it.
      const bool last = i + 1 == users.size();
      uid_t as = users[i];
      if (users.size() == 2) as = last ? of : (of == 0 ? kNobody : 0);
      const std::string who = std::string(name_of(as)) + " at " + name_of(of) + "'s";
      const pid_t worker = ::fork();
      if (worker == 0) {
        ::alarm(kWorkerSeconds);
        if (!become(as)) ::_exit(2);
        examine(lines, who, target, code, last);
        ::_exit(0);
      }
      int status = 0;
      ::waitpid(worker, &status, 0);
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        lines.answer(who, "the outside process ended before its end, status " + std::to_string(status));
    }
    end(target);
  }
  std::printf("1..%d\n", lines.count());
  return 0;
}
