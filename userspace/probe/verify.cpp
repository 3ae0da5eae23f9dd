// SPDX-License-Identifier: Apache-2.0
#include "probe/verify.h"

#include <algorithm>

#include "base/scope_exit.h"

namespace gpuwatch::probe {

namespace {

constexpr std::uint64_t kHeapBlockMax = 64ull << 20;

const Function* function_in(const Code& code, std::uint32_t section) {
  for (const Function& function : code.functions)
    if (function.section == section) return &function;
  return nullptr;
}

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kMatch:
      return "match";
    case Verdict::kMatchRelocated:
      return "match-relocated";
    case Verdict::kDiffer:
      return "differ";
    case Verdict::kNotResident:
      return "not-resident";
    case Verdict::kNotProbed:
      return "not-probed";
  }
  return "";
}

void tell_differences(const std::vector<std::uint8_t>& expected, const std::vector<std::uint8_t>& resident,
                      FunctionVerdict& verdict) {
  constexpr std::size_t kUnit = 16;
  const std::size_t both = std::min(expected.size(), resident.size());
  for (std::size_t unit = 0; unit < both; unit += kUnit) {
    const std::size_t end = std::min(unit + kUnit, both);
    std::uint64_t here = 0;
    for (std::size_t at = unit; at < end; ++at) {
      if (expected[at] == resident[at]) continue;
      if (verdict.different_bytes + here++ == 0) verdict.first_offset = at;
    }
    verdict.different_bytes += here;
    if (here == 0 || verdict.differences.size() >= kDifferencesMax) continue;
    const auto part = [&](const std::vector<std::uint8_t>& code) {
      return std::vector<std::uint8_t>(code.begin() + static_cast<std::ptrdiff_t>(unit),
                                       code.begin() + static_cast<std::ptrdiff_t>(end));
    };
    verdict.differences.push_back({unit, part(expected), part(resident)});
  }
}

ImageProbe::~ImageProbe() {
  if (module_ != nullptr) session_.api().module_unload(module_);
}

Failure ImageProbe::load(const LoadableImage& image) {
  const DriverApi& api = session_.api();
  before_.clear();
  if (Failure failure = read_heap(before_)) return failure;
  std::vector<std::uint8_t> bytes = image.bytes;
  if (image.ptx) {
    CuLink link = nullptr;
    if (const CuResult result = api.link_create(0, nullptr, nullptr, &link); result != kCuOk)
      return session_.failed(result, "compiling PTX");
    const base::ScopeExit destroy([&] { api.link_destroy(link); });
    void* cubin = nullptr;
    std::size_t size = 0;
    CuResult result = api.link_add(link, kCuInputPtx, bytes.data(), bytes.size(), "image", 0, nullptr, nullptr);
    if (result == kCuOk) result = api.link_complete(link, &cubin, &size);
    if (result != kCuOk) return session_.failed(result, "compiling PTX");
    const auto* begin = static_cast<const std::uint8_t*>(cubin);
    bytes.assign(begin, begin + size);
  }
  code_ = Code{};
  if (const std::string error = read_code(bytes, code_); !error.empty()) return {Outcome::kWrongImage, error};
  if (code_.relocatable) return {Outcome::kWrongImage, "relocatable code, which the driver does not load by itself"};
  if (const CuResult result = api.module_load(&module_, bytes.data()); result != kCuOk)
    return session_.failed(result, "loading");
  return {};
}

Failure ImageProbe::read_heap(std::vector<Copy>& out) {
  // Code lies in video memory that the driver's library took for itself. Copies
  // of it in system memory are ways there, and nothing runs from them.
  for (const MappedRange& range : session_.ranges().ranges()) {
    if (range.memory_class != kClassVideoMemory || range.bytes > kHeapBlockMax) continue;
    Copy copy{range.address, {}};
    if (Failure failure = session_.read({range.address, range.bytes}, copy.bytes)) return failure;
    out.push_back(std::move(copy));
  }
  if (out.empty())
    return {Outcome::kTrouble,
            "no video memory is seen among this process's mappings: the driver's calls have a form "
            "that this version does not know"};
  return {};
}

Addresses ImageProbe::globals_of(const Function& function) const {
  Addresses addresses;
  for (const Relocation& relocation : function.relocations) {
    if (relocation.symbol >= code_.symbols.size()) continue;
    const CodeSymbol& symbol = code_.symbols[relocation.symbol];
    if (symbol.section == 0 || function_in(code_, symbol.section) != nullptr) continue;
    CuPointer address = 0;
    std::size_t size = 0;
    if (session_.api().module_global(&address, &size, module_, symbol.name.c_str()) == kCuOk)
      addresses[relocation.symbol] = address;
  }
  return addresses;
}

void settle_function(const Code& code, const Function& function, identify::Bytes resident,
                     const std::vector<Copy>& copies, const std::function<bool(std::uint64_t)>& mapped,
                     Addresses addresses, FunctionVerdict& verdict, std::vector<std::uint8_t>& expected) {
  const bool agree = solve(function, resident, addresses);
  for (const auto& [index, address] : addresses) {
    if (index >= code.symbols.size()) continue;
    const CodeSymbol& symbol = code.symbols[index];
    if (const Function* target = function_in(code, symbol.section)) {
      std::size_t unknown = 0;
      const identify::Bytes there = resident_at(copies, address - symbol.value, target->text.size());
      if (there.empty() || first_difference(target->text, there, mask_of(*target, unknown)))
        verdict.reason = "calls or points to " + symbol.name + " where that function's code is not";
    } else if (!mapped(address)) {
      verdict.reason = "refers to " + symbol.name + " at an address that is not mapped";
    }
  }
  if (!agree && verdict.reason.empty()) verdict.reason = "uses of one symbol contradict each other";
  expected = expected_text(function, addresses);
  verdict.loader_changes = accept_loader_changes(expected, resident);
  for (const Relocation& relocation : function.relocations) {
    const bool checked =
        addresses.contains(relocation.symbol) && (relocation.type == kReloc64 || relocation.type == kRelocLow32 ||
                                                  relocation.type == kRelocHigh32 || relocation.type == kRelocCall55);
    if (checked) continue;
    // Nothing tells the value: take what is there, and say so.
    ++verdict.unchecked;
    Function one;
    one.text = function.text;
    one.relocations = {relocation};
    std::size_t unknown = 0;
    const std::vector<std::uint8_t> mask = mask_of(one, unknown);
    for (std::size_t i = 0; i < mask.size(); ++i)
      expected[i] = static_cast<std::uint8_t>((expected[i] & mask[i]) | (resident[i] & ~mask[i]));
  }
}

Failure ImageProbe::check(const std::string& kernel, ModuleVerdict& out) {
  if (Failure failure = session_.scrub()) return failure;
  if (Failure failure = session_.refresh()) return failure;
  std::vector<Copy> copies;
  if (Failure failure = read_heap(copies)) return failure;
  std::vector<const Function*> functions;
  for (const Function& function : code_.functions) functions.push_back(&function);
  const std::vector<Place> places = locate(functions, copies, before_);
  std::vector<Span> spans;
  std::vector<std::vector<std::uint8_t>> expected;
  std::vector<std::size_t> which;
  found_.clear();
  const RangeRecord proven = session_.ranges();
  const auto mapped = [&](std::uint64_t address) { return proven.covers(address, 1); };
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const Function& function = *functions[i];
    if (places[i].address != 0) found_.push_back({places[i].address, function.text.size()});
    if (!kernel.empty() && function.name != kernel) continue;
    FunctionVerdict verdict;
    verdict.name = function.name;
    verdict.bytes = function.text.size();
    verdict.address = places[i].address;
    verdict.relocations = function.relocations.size();
    if (places[i].address == 0) {
      verdict.verdict = Verdict::kNotResident;
      verdict.reason = "nowhere in the code heap";
    } else {
      std::vector<std::uint8_t> bytes;
      const identify::Bytes resident = resident_at(copies, places[i].address, function.text.size());
      settle_function(code_, function, resident, copies, mapped, globals_of(function), verdict, bytes);
      spans.push_back({places[i].address, function.text.size()});
      expected.push_back(std::move(bytes));
      which.push_back(out.functions.size());
    }
    out.functions.push_back(std::move(verdict));
  }
  if (spans.empty()) return {};
  std::vector<bool> equal(spans.size(), true);
  for (int reading = 0; reading < 2; ++reading) {
    const Nonce nonce = nonces_();
    std::vector<identify::Digest> roots;
    if (Failure failure = session_.hash(spans, Form::kTree, nonce, roots, out.gpu_ms)) return failure;
    for (std::size_t i = 0; i < spans.size(); ++i)
      if (roots[i] != host_root(expected[i], Form::kTree, nonce)) equal[i] = false;
    if (Failure failure = session_.refresh()) return failure;
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    FunctionVerdict& verdict = out.functions[which[i]];
    out.hashed_bytes += spans[i].bytes;
    if (equal[i] && verdict.reason.empty()) {
      verdict.verdict = verdict.relocations + verdict.loader_changes != 0 ? Verdict::kMatchRelocated : Verdict::kMatch;
      verdict.resident = host_root(expected[i], Form::kPlain, {});
      continue;
    }
    verdict.verdict = Verdict::kDiffer;
    std::vector<std::uint8_t> now;
    if (Failure failure = session_.read({spans[i].address, spans[i].bytes / 16 * 16}, now)) return failure;
    tell_differences(expected[i], now, verdict);
  }
  return {};
}

Failure ImageProbe::unload() {
  for (const Span& span : found_)
    if (Failure failure = session_.store(span.address, 0, span.bytes / 4)) return failure;
  found_.clear();
  if (module_ == nullptr) return {};
  const CuResult result = session_.api().module_unload(module_);
  module_ = nullptr;
  return result == kCuOk ? Failure{} : session_.failed(result, "unloading");
}

}  // namespace gpuwatch::probe
