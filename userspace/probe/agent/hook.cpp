// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/hook.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstring>

#include "probe/caller.h"

// Ours has a name that nobody else's can stand in for: "ioctl" may lead to another
// library's even from in here.
extern "C" {
__attribute__((visibility("hidden"))) int gpuwatch_agent_ioctl(int fd, unsigned long request, ...) noexcept;
__attribute__((visibility("default"), alias("gpuwatch_agent_ioctl"))) int ioctl(int fd, unsigned long request,
                                                                                ...) noexcept;
}

namespace gpuwatch::probe::agent {

namespace {

using Node = RangeRecord::Node;
using Ioctl = int (*)(int, unsigned long, ...);

std::atomic<Ioctl> next_ioctl{nullptr};
std::atomic<void (*)()> first_mapping{nullptr};

template <typename F>
F as_function(void* symbol) {
  F function;
  std::memcpy(&function, &symbol, sizeof function);
  return function;
}

void note(Node node, unsigned long request, const void* argument) {
  OwnCall call;
  // Not by trust in what the kernel has read: what a call takes away is noted
  // before the kernel sees it, and both must be seen or none.
  if (take_call(node, request, argument, map_form(), false, call))
    mapped_memory().call(node, request, call.bytes(), call.allocation());
}

int forward(int fd, unsigned long request, void* argument) {
  if (const Ioctl next = next_ioctl.load(std::memory_order_acquire)) return next(fd, request, argument);
  return static_cast<int>(::syscall(SYS_ioctl, fd, request, argument));
}

// Objects come in the order of their loading: what LD_PRELOAD names before libc,
// what was opened later after it.
int look_for_us(dl_phdr_info* info, std::size_t, void* context) {
  const auto self = reinterpret_cast<ElfW(Addr)>(&::gpuwatch_agent_ioctl);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || self - info->dlpi_addr < part.p_vaddr) continue;
    if (self - info->dlpi_addr - part.p_vaddr >= part.p_memsz) continue;
    *static_cast<bool*>(context) = true;
    return 1;
  }
  const char* name = info->dlpi_name != nullptr ? std::strrchr(info->dlpi_name, '/') : nullptr;
  return name != nullptr && std::strncmp(name, "/libc.so", 8) == 0 ? 1 : 0;
}

bool loaded_before_libc() {
  bool found = false;
  ::dl_iterate_phdr(look_for_us, &found);
  return found;
}

// --- libcuda's table of imports ---

#if defined(__aarch64__)
constexpr std::uint32_t kSlotTypes[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#else
constexpr std::uint32_t kSlotTypes[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#endif

struct Imports {
  bool found_library = false;
  bool ours = false;  // a slot leads to us
};

void put(void** slot, void* value, const dl_phdr_info& info) {
  bool sealed = false;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    const auto at = reinterpret_cast<ElfW(Addr)>(slot) - info.dlpi_addr;
    if (part.p_type == PT_GNU_RELRO && at >= part.p_vaddr && at - part.p_vaddr < part.p_memsz) sealed = true;
  }
  const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~(page_bytes - 1));
  if (sealed && ::mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  if (sealed) (void)::mprotect(page, page_bytes, PROT_READ);
}

int take_imports(dl_phdr_info* info, std::size_t, void* context) {
  Imports& imports = *static_cast<Imports*>(context);
  const char* name = info->dlpi_name != nullptr ? std::strrchr(info->dlpi_name, '/') : nullptr;
  name = name != nullptr ? name + 1 : info->dlpi_name;
  if (name == nullptr || std::strncmp(name, "libcuda.so", 10) != 0) return 0;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  if (dynamic == nullptr) return 0;
  struct Table {
    ElfW(Addr) at = 0;
    std::size_t bytes = 0;
  } tables[2];
  ElfW(Addr) symbols = 0;
  ElfW(Addr) strings = 0;
  // The loader has made most of these addresses absolute.
  const auto absolute = [&](ElfW(Addr) value) { return value < info->dlpi_addr ? value + info->dlpi_addr : value; };
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    switch (dynamic->d_tag) {
      case DT_JMPREL:
        tables[0].at = absolute(dynamic->d_un.d_ptr);
        break;
      case DT_PLTRELSZ:
        tables[0].bytes = dynamic->d_un.d_val;
        break;
      case DT_RELA:
        tables[1].at = absolute(dynamic->d_un.d_ptr);
        break;
      case DT_RELASZ:
        tables[1].bytes = dynamic->d_un.d_val;
        break;
      case DT_SYMTAB:
        symbols = absolute(dynamic->d_un.d_ptr);
        break;
      case DT_STRTAB:
        strings = absolute(dynamic->d_un.d_ptr);
        break;
      default:
        break;
    }
  }
  if (symbols == 0 || strings == 0) return 0;
  imports.found_library = true;
  const auto ours = as_function<void*>(reinterpret_cast<void*>(&::gpuwatch_agent_ioctl));
  for (const Table& table : tables) {
    if (table.at == 0) continue;
    const auto* relocation = reinterpret_cast<const ElfW(Rela)*>(table.at);
    for (std::size_t i = 0; i < table.bytes / sizeof *relocation; ++i) {
      const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation[i].r_info));
      if (type != kSlotTypes[0] && type != kSlotTypes[1]) continue;
      const auto& symbol = reinterpret_cast<const ElfW(Sym)*>(symbols)[ELF64_R_SYM(relocation[i].r_info)];
      if (std::strcmp(reinterpret_cast<const char*>(strings) + symbol.st_name, "ioctl") != 0) continue;
      auto* slot = reinterpret_cast<void**>(info->dlpi_addr + relocation[i].r_offset);
      if (*slot != ours) put(slot, ours, *info);
      imports.ours = imports.ours || *slot == ours;
    }
  }
  return 0;
}

}  // namespace

MappedMemory& mapped_memory() {
  // Never destroyed, and no guard that a forked child could find taken.
  alignas(MappedMemory) static unsigned char place[sizeof(MappedMemory)];
  static MappedMemory* const memory = new (place) MappedMemory;
  return *memory;
}

void resolve_next() {
  // Never by a name that may lead back here: another interposer before us would
  // hand the call on to us, and we to it, without end.
  void* const found = ::dlsym(loaded_before_libc() ? RTLD_NEXT : RTLD_DEFAULT, "ioctl");
  if (found != reinterpret_cast<void*>(&::gpuwatch_agent_ioctl)) next_ioctl.store(as_function<Ioctl>(found));
  (void)mapped_memory();
}

Sight see_calls() {
  if (loaded_before_libc()) return Sight::kPreloaded;
  Imports imports;
  ::dl_iterate_phdr(take_imports, &imports);
  return imports.ours ? Sight::kImport : Sight::kNone;
}

void on_first_mapping(void (*function)()) {
  first_mapping.store(function);
}

}  // namespace gpuwatch::probe::agent

extern "C" int gpuwatch_agent_ioctl(int fd, unsigned long request, ...) noexcept {
  using namespace gpuwatch::probe::agent;
  using gpuwatch::probe::RangeRecord;
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  RangeRecord::Node node{};
  const int before = errno;
  const bool wanted = argument != nullptr && gpuwatch::probe::of_interest(fd, request, node);
  // From here on it is not proven; and while it is read, this waits.
  const bool takes = wanted && RangeRecord::takes_away(node, request);
  if (takes) note(node, request, argument);
  errno = before;
  const int result = forward(fd, request, argument);
  if (wanted && !takes && result == 0) {
    const int kept = errno;
    note(node, request, argument);
    if (node == RangeRecord::Node::kUvm)
      if (void (*first)() = first_mapping.exchange(nullptr)) first();
    errno = kept;
  }
  return result;
}
