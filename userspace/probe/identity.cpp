// SPDX-License-Identifier: Apache-2.0
#include "probe/identity.h"

#include <algorithm>
#include <tuple>

#include "identify/cubin.h"
#include "identify/ptx.h"
#include "identify/sha256.h"

namespace gpuwatch::probe {

namespace {

// What a relocation refers to, in words that do not depend on the order of symbols.
std::string symbol_text(const Code& code, std::uint32_t index) {
  if (index >= code.symbols.size()) return "?" + std::to_string(index);
  const CodeSymbol& symbol = code.symbols[index];
  if (!symbol.name.empty()) return symbol.name;
  for (const Function& function : code.functions)
    if (function.section == symbol.section) return ".text." + function.name + "+" + std::to_string(symbol.value);
  return "section " + std::to_string(symbol.section) + "+" + std::to_string(symbol.value);
}

}  // namespace

ImageIdentity::ImageIdentity(bool ptx, std::vector<std::uint8_t> image, std::vector<std::uint8_t> cubin)
    : ptx_(ptx), image_(std::move(image)), cubin_(std::move(cubin)) {}

const identify::Digest& ImageIdentity::r() const {
  if (!r_) {
    // Of PTX the text alone, as identify has it: NULs behind it are the container's or ours.
    r_ = identify::sha256(ptx_ ? identify::ptx_text(image_) : identify::Bytes(image_));
  }
  return *r_;
}

const FunctionHashes* ImageIdentity::of(const std::string& function) const {
  if (!functions_) {
    functions_.emplace();
    const identify::Bytes bytes(cubin_.empty() ? image_ : cubin_);
    if (!ptx_ || !cubin_.empty()) {
      identify::HashBatch batch;
      identify::Module module;
      identify::CubinPlan plan;
      plan.plan(bytes, {}, batch, module);
      batch.run();
      plan.finish(batch, module);
      // What was half read vouches for nothing.
      if (module.errors.empty())
        for (const identify::Kernel& kernel : module.kernels)
          functions_->emplace(kernel.name, FunctionHashes{kernel.k, kernel.t});
    }
  }
  const auto at = functions_->find(function);
  return at == functions_->end() ? nullptr : &at->second;
}

identify::Digest form_of(const Code& code, const Function& function, identify::Bytes confirmed) {
  if (function.relocations.empty()) return identify::sha256(confirmed);
  std::size_t unknown = 0;
  const std::vector<std::uint8_t> mask = mask_of(function, unknown);
  std::vector<std::uint8_t> bytes(confirmed.begin(), confirmed.end());
  for (std::size_t i = 0; i < bytes.size() && i < mask.size(); ++i) bytes[i] &= mask[i];
  using Line = std::tuple<std::uint64_t, std::uint32_t, std::int64_t, std::string>;
  std::vector<Line> lines;
  for (const Relocation& relocation : function.relocations)
    lines.emplace_back(relocation.offset, relocation.type, relocation.addend, symbol_text(code, relocation.symbol));
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const auto& [offset, type, addend, symbol] : lines)
    text += std::to_string(offset) + " " + std::to_string(type) + " " + std::to_string(addend) + " " + symbol + "\n";
  identify::Sha256 hash;
  hash.update(identify::as_bytes("gpuwatch-form-v1\n"));
  hash.update(bytes);
  hash.update(identify::as_bytes(text));
  return hash.finish();
}

}  // namespace gpuwatch::probe
