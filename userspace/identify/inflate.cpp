// SPDX-License-Identifier: Apache-2.0
#include "identify/inflate.h"

#include <lz4.h>
#include <sys/mman.h>
#include <zstd.h>

#include <climits>
#include <memory>
#include <utility>

namespace gpuwatch::identify {

PageBuffer::PageBuffer(std::size_t size) {
  (void)reserve(size);
}

PageBuffer::PageBuffer(PageBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

PageBuffer& PageBuffer::operator=(PageBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

bool PageBuffer::reserve(std::size_t size) {
  if (size <= size_) return true;
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
  const std::size_t rounded = (size + 4095) & ~std::size_t{4095};
  if (rounded < size) return false;
  void* pages = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return false;
  data_ = static_cast<std::uint8_t*>(pages);
  size_ = rounded;
  return true;
}

std::string inflate(Compression compression, Bytes stored, std::span<std::uint8_t> out) {
  if (compression == Compression::kLz4) {
    if (stored.size() > INT_MAX || out.size() > INT_MAX) return "lz4 error: longer than 2 GiB";
    const int got =
        LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(out.data()),
                            static_cast<int>(stored.size()), static_cast<int>(out.size()));
    if (got == static_cast<int>(out.size())) return {};
    return "lz4 error " + std::to_string(got);
  }
  static thread_local const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                                         ZSTD_freeDCtx);
  if (!context) return "zstd error: out of memory";
  const std::size_t got = ZSTD_decompressDCtx(context.get(), out.data(), out.size(), stored.data(), stored.size());
  return ZSTD_isError(got) != 0 || got != out.size() ? "zstd error" : "";
}

}  // namespace gpuwatch::identify
