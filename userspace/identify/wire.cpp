// SPDX-License-Identifier: Apache-2.0
#include "identify/wire.h"

namespace gpuwatch::identify {

namespace {

constexpr std::size_t kNameMax = 64 << 10;

Kind kind_from(WireReader& in) {
  const std::uint8_t value = in.byte();
  if (value > static_cast<std::uint8_t>(Kind::kOther)) in.fail();
  return in.ok() ? static_cast<Kind>(value) : Kind::kOther;
}

}  // namespace

void WireWriter::number(std::uint64_t value) {
  while (value >= 0x80) {
    byte(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  byte(static_cast<std::uint8_t>(value));
}

void WireWriter::text(std::string_view text) {
  number(text.size());
  out_ += text;
}

void WireWriter::texts(const std::vector<std::string>& list) {
  number(list.size());
  for (const std::string& item : list) text(item);
}

Bytes WireReader::take(std::size_t size) {
  if (!ok_ || !fits(at_, size, bytes_.size())) {
    ok_ = false;
    return {};
  }
  at_ += size;
  return bytes_.subspan(at_ - size, size);
}

std::uint64_t WireReader::number() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t b = byte();
    if (shift == 63 && b > 1) break;
    value |= static_cast<std::uint64_t>(b & 0x7f) << shift;
    if (b < 0x80) return ok_ ? value : 0;
  }
  ok_ = false;
  return 0;
}

std::uint32_t WireReader::number32() {
  const std::uint64_t value = number();
  if (value > ~std::uint32_t{0}) ok_ = false;
  return ok_ ? static_cast<std::uint32_t>(value) : 0;
}

std::uint8_t WireReader::byte() {
  const Bytes one = take(1);
  return one.empty() ? 0 : one[0];
}

std::string WireReader::text(std::size_t max) {
  const std::uint64_t size = number();
  if (size > max) ok_ = false;
  return std::string(as_text(take(ok_ ? size : 0)));
}

Digest WireReader::digest() {
  Digest out{};
  const Bytes bytes = take(out.size());
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), out.size());
  return out;
}

std::size_t WireReader::count(std::size_t each) {
  const std::uint64_t value = number();
  if (ok_ && value > (bytes_.size() - at_) / each) ok_ = false;
  return ok_ ? value : 0;
}

std::vector<std::string> WireReader::texts(std::size_t max_count) {
  std::vector<std::string> out;
  const std::size_t n = count(1);
  if (n > max_count) ok_ = false;
  for (std::size_t i = 0; ok_ && i < n; ++i) out.push_back(text());
  return out;
}

void write(WireWriter& out, const Image& image) {
  out.byte(static_cast<std::uint8_t>(image.kind));
  out.byte(static_cast<std::uint8_t>(image.compression));
  out.byte(static_cast<std::uint8_t>(image.in_container ? 1 : 0) | static_cast<std::uint8_t>(image.opaque ? 2 : 0));
  out.byte(static_cast<std::uint8_t>(image.sm_suffix));
  out.number(image.entry);
  out.number(image.sm);
  out.number(image.raw_kind);
  out.number(image.version_major);
  out.number(image.version_minor);
  out.number(image.flags);
  out.number(image.container_offset);
  out.number(image.offset);
  out.number(image.stored_bytes);
  out.number(image.compressed_bytes);
  out.number(image.bytes);
  out.text(image.identifier);
  out.text(image.options);
  out.text(image.error);
}

void read(WireReader& in, Image& image) {
  image.kind = kind_from(in);
  const std::uint8_t compression = in.byte();
  if (compression > static_cast<std::uint8_t>(Compression::kZstd)) in.fail();
  if (in.ok()) image.compression = static_cast<Compression>(compression);
  const std::uint8_t bits = in.byte();
  image.in_container = (bits & 1) != 0;
  image.opaque = (bits & 2) != 0;
  const std::uint8_t suffix = in.byte();
  image.sm_suffix = suffix == 'a' || suffix == 'f' ? static_cast<char>(suffix) : '\0';
  image.entry = in.number32();
  image.sm = in.number32();
  image.raw_kind = static_cast<std::uint16_t>(in.number32());
  image.version_major = static_cast<std::uint16_t>(in.number32());
  image.version_minor = static_cast<std::uint16_t>(in.number32());
  image.flags = in.number();
  image.container_offset = in.number();
  image.offset = in.number();
  image.stored_bytes = in.number();
  image.compressed_bytes = in.number();
  image.bytes = in.number();
  image.identifier = in.text(kNameMax);
  image.options = in.text(kNameMax);
  image.error = in.text(kNameMax);
}

void write(WireWriter& out, const Container& container) {
  out.number(container.offset);
  out.number(container.size);
  out.number(container.images);
  out.number(container.unparsed_offset);
  out.number(container.unparsed_bytes);
  out.text(container.section);
  out.texts(container.errors);
}

void read(WireReader& in, Container& container) {
  container.offset = in.number();
  container.size = in.number();
  container.images = in.number();
  container.unparsed_offset = in.number();
  container.unparsed_bytes = in.number();
  container.section = in.text(kNameMax);
  container.errors = in.texts();
}

void write(WireWriter& out, const Module& module) {
  out.byte(static_cast<std::uint8_t>(module.kind));
  out.byte(static_cast<std::uint8_t>((module.relocatable ? 1 : 0) | (module.has_modules ? 2 : 0) | (module.p ? 4 : 0)));
  out.byte(module.abi);
  out.number(module.sm);
  out.number(module.bytes);
  out.digest(module.r);
  if (module.has_modules) {
    out.digest(module.d);
    out.digest(module.m);
  }
  if (module.p) out.digest(*module.p);
  out.texts(module.errors);
  out.number(module.kernels.size());
  for (const Kernel& kernel : module.kernels) {
    out.text(kernel.name);
    out.byte(kernel.entry ? 1 : 0);
    out.digest(kernel.k);
    out.digest(kernel.t);
    out.number(kernel.code_bytes);
    out.number(kernel.shared_bytes);
    out.number(kernel.registers);
    out.number(kernel.barriers);
  }
}

void read(WireReader& in, Module& module) {
  module.kind = kind_from(in);
  const std::uint8_t bits = in.byte();
  module.relocatable = (bits & 1) != 0;
  module.has_modules = (bits & 2) != 0;
  module.abi = in.byte();
  module.sm = in.number32();
  module.bytes = in.number();
  module.r = in.digest();
  if (module.has_modules) {
    module.d = in.digest();
    module.m = in.digest();
  }
  if ((bits & 4) != 0) module.p = in.digest();
  module.errors = in.texts();
  module.kernels.resize(in.count(70));
  for (Kernel& kernel : module.kernels) {
    if (!in.ok()) return;
    kernel.name = in.text(kNameMax);
    kernel.entry = in.byte() != 0;
    kernel.k = in.digest();
    kernel.t = in.digest();
    kernel.code_bytes = in.number();
    kernel.shared_bytes = in.number();
    kernel.registers = in.number32();
    kernel.barriers = in.number32();
  }
}

void write(WireWriter& out, const Scan& scan) {
  out.texts(scan.errors);
  out.number(scan.containers.size());
  for (const Container& container : scan.containers) write(out, container);
  out.number(scan.images.size());
  for (const Image& image : scan.images) write(out, image);
}

void read(WireReader& in, Scan& scan) {
  scan.errors = in.texts();
  scan.containers.resize(in.count(7));
  for (Container& container : scan.containers) {
    if (!in.ok()) return;
    read(in, container);
  }
  scan.images.resize(in.count(18));
  for (Image& image : scan.images) {
    if (!in.ok()) return;
    read(in, image);
  }
}

}  // namespace gpuwatch::identify
