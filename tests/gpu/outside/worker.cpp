// SPDX-License-Identifier: Apache-2.0
#include "outside/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/fd.h"

namespace gpuwatch::outside {

namespace {

std::string format(const char* form, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

class Clock {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

using Buffer = std::vector<std::uint8_t>;

// Where the file's functions lie in `bytes`, found by content alone, and
// whether that is where the target says.
std::string compare(const Target& target, const Target::Map& map, const probe::Code& code, const Buffer& bytes) {
  std::size_t found = 0, in_place = 0, total = 0;
  for (const probe::Function& function : code.functions) {
    std::size_t unknown = 0;
    const auto mask = probe::mask_of(function, unknown);
    ++total;
    for (std::size_t at = 0; at + function.text.size() <= bytes.size(); at += 128) {
      std::size_t i = 0;
      while (i < function.text.size() && ((function.text[i] ^ bytes[at + i]) & mask[i]) == 0) ++i;
      if (i != function.text.size()) continue;
      ++found;
      for (const Target::Function& told : target.functions)
        in_place += told.name == function.name && told.address == map.address + at ? 1 : 0;
      break;
    }
  }
  const auto zeros = std::count(bytes.begin(), bytes.end(), 0);
  return format("%zu of %zu functions found byte for byte, %zu of them where the target says; %zu bytes read, %zu zero",
                found, total, in_place, bytes.size(), static_cast<std::size_t>(zeros));
}

class Worker {
 public:
  Worker(Lines& lines, std::string who, const Target& target, const probe::Code& code)
      : lines_(lines),
        who_(std::move(who)),
        target_(target),
        code_(code),
        map_(*target.map_at(target.functions.front().address)) {}

  void own_client();
  void by_dup();
  void by_own_debugger();
  void by_naming();
  void by_descriptor();
  void what_stays();

 private:
  void say(const std::string& what, const Answer& answer, const std::string& more = "") {
    lines_.answer(who_ + ": " + what, answer.text() + (more.empty() ? "" : "; " + more));
  }
  // Maps, reads, compares and unmaps; `control` is the file whose client it is.
  bool map_and_read(const std::string& what, int control, Handle client, Handle device, Handle memory);
  void debugger_reads(const std::string& what, int control, Handle client, Handle debugger, Handle memory);
  void with_control(const std::string& what, int control);
  base::Fd fresh_device(int control);

  Lines& lines_;
  std::string who_;
  const Target& target_;
  const probe::Code& code_;
  const Target::Map& map_;
  base::Fd control_, device_file_;
  Handle client_ = 0, device_ = 0, subdevice_ = 0, copy_ = 0, copy_parent_ = 0;
};

base::Fd Worker::fresh_device(int control) {
  base::Fd fd(::open(target_.device_path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0)
    lines_.note(who_ + ": open " + target_.device_path + ": " + std::strerror(errno));
  else if (const Answer answer = register_file(fd.get(), control); !answer.good())
    lines_.note(who_ + ": REGISTER_FD: " + answer.text());
  return fd;
}

void Worker::own_client() {
  control_ = base::Fd(::open("/dev/nvidiactl", O_RDWR | O_CLOEXEC));
  if (control_.get() < 0) {
    lines_.answer(who_ + ": open /dev/nvidiactl", std::strerror(errno));
    return;
  }
  const int fd = control_.get();
  say("a client of its own", allocate(fd, 0, 0, kRootClient, nullptr, 0, client_), format("%x", client_));
  device_file_ = fresh_device(fd);
  GpuIds ids;
  const Answer attached = control(fd, client_, client_, kGetAttachedIds, &ids, sizeof ids);
  GpuIdInfo info;
  info.id = ids.id[0];
  const Answer told = control(fd, client_, client_, kGetIdInfo, &info, sizeof info);
  say("attached GPUs", attached,
      format("first %x; its device instance: %s, %u.%u", ids.id[0], told.text().c_str(), info.device, info.subdevice));
  DeviceParameters parameters;
  parameters.device = told.good() ? info.device : 0;
  parameters.client_share = client_;
  device_ = client_ == 0 ? 0 : 0x6d000001;
  say("a device object", allocate(fd, client_, client_, kDevice, &parameters, sizeof parameters, device_));
  std::uint32_t subdevice = told.good() ? info.subdevice : 0;
  subdevice_ = 0x6d000002;
  say("a subdevice object", allocate(fd, client_, device_, kSubdevice, &subdevice, sizeof subdevice, subdevice_));
}

bool Worker::map_and_read(const std::string& what, int control, Handle client, Handle device, Handle memory) {
  const base::Fd file = fresh_device(control);
  if (file.get() < 0) return false;
  std::uint64_t linear = 0;
  const Answer mapped = map_memory(control, client, device, memory, map_.bytes, file.get(), linear);
  say(what + ": MAP_MEMORY, read-only", mapped);
  if (!mapped.good()) return false;
  bool read = false;
  void* const view = ::mmap(nullptr, map_.bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (view == MAP_FAILED) {
    lines_.answer(who_ + ": " + what + ": mmap", std::strerror(errno));
  } else {
    Buffer bytes(map_.bytes);
    const Clock clock;
    std::memcpy(bytes.data(), view, bytes.size());
    const double ms = clock.ms();
    lines_.answer(who_ + ": " + what + ": read by the CPU",
                  compare(target_, map_, code_, bytes) +
                      format("; %.2f ms, %.0f MB/s", ms, static_cast<double>(bytes.size()) / ms / 1e3));
    lines_.note(who_ + ": the target meanwhile: " + target_.run(50));
    ::munmap(view, map_.bytes);
    read = true;
  }
  say(what + ": UNMAP_MEMORY", unmap_memory(control, client, device, memory, linear));
  return read;
}

void Worker::by_dup() {
  for (const auto& [parent, name] : {std::pair{device_, "device"}, {subdevice_, "subdevice"}}) {
    Handle object = 0x6d000010;
    const Answer answer = duplicate(control_.get(), client_, parent, map_.client, map_.memory, object);
    say(std::string("DUP_OBJECT of the code's memory below its own ") + name, answer);
    if (!answer.good()) continue;
    copy_ = object;
    copy_parent_ = parent;
    break;
  }
  if (copy_ == 0) return;
  map_and_read("by the duplicate", control_.get(), client_, subdevice_, copy_);
}

void Worker::debugger_reads(const std::string& what, int control_file, Handle client, Handle debugger, Handle memory) {
  Buffer bytes(map_.bytes);
  for (const std::uint64_t chunk : {std::uint64_t{4096}, std::uint64_t{65536}, map_.bytes}) {
    std::fill(bytes.begin(), bytes.end(), 0xee);
    Answer answer;
    const Clock clock;
    for (std::uint64_t at = 0; at < map_.bytes && answer.good(); at += chunk) {
      ReadMemory read{memory, static_cast<std::uint32_t>(std::min(chunk, map_.bytes - at)), at,
                      reinterpret_cast<std::uint64_t>(bytes.data() + at)};
      answer = control(control_file, client, debugger, kReadMemory, &read, sizeof read);
    }
    const double ms = clock.ms();
    say(what + ": READ_MEMORY by " + std::to_string(chunk), answer,
        answer.good() ? compare(target_, map_, code_, bytes) + format("; %.2f ms", ms) : "");
    if (answer.error != 0) break;
  }
  std::fill(bytes.begin(), bytes.end(), 0xee);
  ReadSurface surface;
  surface.count = 1;
  surface.part[0] = {map_.address, reinterpret_cast<std::uint64_t>(bytes.data()),
                     static_cast<std::uint32_t>(map_.bytes), 0};
  const Clock clock;
  const Answer by_address = control(control_file, client, debugger, kReadSurface, &surface, sizeof surface);
  say(what + ": READ_SURFACE by address", by_address,
      by_address.good() ? compare(target_, map_, code_, bytes) + format("; %.2f ms", clock.ms()) : "");
  GetMappings mappings;
  mappings.low = map_.address;
  mappings.high = map_.address + map_.bytes - 1;
  const Answer walked = control(control_file, client, debugger, kGetMappings, &mappings, sizeof mappings);
  say(what + ": GET_MAPPINGS of the code's range", walked,
      format("%u, the first %llx with %x bytes", mappings.count,
             static_cast<unsigned long long>(mappings.part[0].address), mappings.part[0].bytes));
  lines_.note(who_ + ": the target meanwhile: " + target_.run(50));
}

void Worker::by_own_debugger() {
  if (target_.debuggers.empty()) {
    lines_.answer(who_ + ": a debugger object", "the target has none to learn its compute object from");
    return;
  }
  const Target::Debugger& theirs = target_.debuggers.front();
  DebuggerParameters parameters{0, theirs.app_client, theirs.compute_object};
  Handle debugger = 0x6d000020;
  const Answer made = allocate(control_.get(), client_, device_, kDebugger, &parameters, sizeof parameters, debugger);
  say("a debugger object of its own on the target's compute object", made);
  if (!made.good()) return;
  // Without a duplicate there is no handle in its own client to name.
  debugger_reads("its own debugger", control_.get(), client_, debugger, copy_ != 0 ? copy_ : map_.memory);
  say("its debugger object freed", release(control_.get(), client_, device_, debugger));
}

void Worker::with_control(const std::string& what, int control_file) {
  GpuIds ids;
  const Answer named = control(control_file, map_.client, map_.client, kGetAttachedIds, &ids, sizeof ids);
  say(what + ": a control call to the target's client", named);
  if (!named.good()) return;
  for (const Target::Debugger& debugger : target_.debuggers)
    if (debugger.client == map_.client)
      debugger_reads(what + ": the debugger object that libcuda made", control_file, map_.client, debugger.handle,
                     map_.memory);
  if (const Target::Object* subdevice = target_.object_of(map_.client, kSubdevice); subdevice != nullptr)
    map_and_read(what, control_file, map_.client, subdevice->handle, map_.memory);
}

void Worker::by_naming() {
  with_control("the target's client by its number", control_.get());
}

void Worker::by_descriptor() {
  const base::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, target_.pid, 0)));
  if (process.get() < 0) {
    lines_.answer(who_ + ": pidfd_open", std::strerror(errno));
    return;
  }
  for (const int number : target_.control_files) {
    const base::Fd theirs(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
    const std::string what = "the target's descriptor " + std::to_string(number);
    if (theirs.get() < 0) {
      lines_.answer(who_ + ": " + what + " by pidfd_getfd", std::strerror(errno));
      continue;
    }
    with_control(what, theirs.get());
  }
}

std::string memory_used() {
  std::string out;
  if (FILE* pipe = ::popen("nvidia-smi --query-gpu=memory.used --format=csv,noheader 2>&1", "r"); pipe != nullptr) {
    char line[128];
    if (std::fgets(line, sizeof line, pipe) != nullptr) out = line;
    ::pclose(pipe);
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

void Worker::what_stays() {
  const Target::Map* large = target_.large != 0 ? target_.map_at(target_.large) : nullptr;
  Handle held = 0x6d000030;
  if (large != nullptr)
    say(format("DUP_OBJECT of the target's large memory, %llu MiB",
               static_cast<unsigned long long>(large->bytes >> 20)),
        duplicate(control_.get(), client_, device_, large->client, large->memory, held));
  lines_.note(who_ + ": GPU memory in use with the target alive: " + memory_used());
  const base::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, target_.pid, 0)));
  if (::kill(target_.pid, SIGKILL) != 0) {
    lines_.note(who_ + ": the target is not this user's to end");
    return;
  }
  pollfd wait{process.get(), POLLIN, 0};
  if (process.get() >= 0) ::poll(&wait, 1, 20'000);
  lines_.answer(who_ + ": the target has ended, duplicates held: GPU memory in use", memory_used());
  if (copy_ != 0) map_and_read("by the duplicate, the target gone", control_.get(), client_, subdevice_, copy_);
  if (client_ != 0) say("its client freed with all in it", release(control_.get(), client_, client_, client_));
  lines_.answer(who_ + ": after that: GPU memory in use", memory_used());
}

}  // namespace

const Target::Map* Target::map_at(std::uint64_t address) const {
  for (const Map& map : maps)
    if (address >= map.address && address < map.address + map.bytes) return &map;
  return nullptr;
}

const Target::Object* Target::object_of(Handle client, std::uint32_t object_class) const {
  for (const Object& object : objects)
    if (object.client == client && object.object_class == object_class) return &object;
  return nullptr;
}

std::string Target::run(int times) const {
  const std::string line = "run " + std::to_string(times) + "\n";
  if (::write(to, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return "";
  std::string out;
  char one = 0;
  pollfd wait{from, POLLIN, 0};
  while (::poll(&wait, 1, 20'000) == 1 && ::read(from, &one, 1) == 1 && one != '\n') out += one;
  return out;
}

Lines::Lines()
    : count_(
          static_cast<int*>(::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}

void Lines::answer(const std::string& what, const std::string& text) {
  std::printf("ok %d - %s: %s\n", ++*count_, what.c_str(), text.c_str());
  std::fflush(stdout);
}

void Lines::note(const std::string& text) {
  std::printf("# %s\n", text.c_str());
  std::fflush(stdout);
}

void examine(Lines& lines, const std::string& who, const Target& target, const probe::Code& code, bool ends) {
  if (target.functions.empty() || target.map_at(target.functions.front().address) == nullptr) {
    lines.answer(who, "the target's code is in no mapping that it noted");
    return;
  }
  Worker worker(lines, who, target, code);
  lines.note(who + ": the target before: " + target.run(200));
  worker.own_client();
  worker.by_dup();
  worker.by_own_debugger();
  worker.by_naming();
  worker.by_descriptor();
  lines.note(who + ": the target after: " + target.run(200));
  if (ends) worker.what_stays();
}

}  // namespace gpuwatch::outside
