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
  identity_ = std::make_shared<ImageIdentity>(image.ptx, image.bytes, image.ptx ? bytes : std::vector<std::uint8_t>());
  code_ = Code{};
  if (const std::string error = read_code(bytes, code_); !error.empty())
    return {Outcome::kWrongImage, "the image is cut or damaged (" + error + ")"};
  banks_.clear();
  if (const std::string error = read_banks(bytes, banks_); !error.empty()) return {Outcome::kWrongImage, error};
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

Addresses ImageProbe::globals_of(const std::vector<Relocation>& relocations) const {
  Addresses addresses;
  for (const Relocation& relocation : relocations) {
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
  std::vector<Wanted> wanted;
  found_.clear();
  const RangeRecord proven = session_.ranges();
  const auto mapped = [&](std::uint64_t address) { return proven.covers(address, 1); };
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const Function& function = *functions[i];
    if (places[i].address != 0) found_.push_back({places[i].address, function.text.size()});
    if (!kernel.empty() && function.name != kernel) continue;
    Wanted one;
    FunctionVerdict& verdict = one.verdict;
    verdict.name = function.name;
    verdict.bytes = function.text.size();
    verdict.address = places[i].address;
    verdict.relocations = function.relocations.size();
    if (places[i].address == 0) {
      verdict.verdict = Verdict::kNotResident;
      verdict.reason = "nowhere in the code heap";
    } else {
      const identify::Bytes resident = resident_at(copies, places[i].address, function.text.size());
      settle_function(code_, function, resident, copies, mapped, globals_of(function.relocations), verdict,
                      one.expected);
      verdict.form = form_of(code_, function, one.expected);
      verdict.image = identity_;
    }
    wanted.push_back(std::move(one));
  }
  want_banks(kernel, copies, places, wanted);
  std::vector<Span> spans;
  for (const Wanted& one : wanted)
    if (one.verdict.address != 0) spans.push_back({one.verdict.address, one.verdict.bytes});
  std::vector<bool> equal(wanted.size(), true);
  for (int reading = 0; reading < 2 && !spans.empty(); ++reading) {
    const Nonce nonce = nonces_();
    std::vector<identify::Digest> roots;
    if (Failure failure = session_.hash(spans, Form::kTree, nonce, roots, out.gpu_ms)) return failure;
    std::size_t next = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].verdict.address != 0 && roots[next++] != host_root(wanted[i].expected, Form::kTree, nonce))
        equal[i] = false;
    if (Failure failure = session_.refresh()) return failure;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    FunctionVerdict& verdict = wanted[i].verdict;
    if (verdict.address != 0) {
      out.hashed_bytes += verdict.bytes;
      if (equal[i] && verdict.reason.empty()) {
        verdict.verdict =
            verdict.relocations + verdict.loader_changes != 0 ? Verdict::kMatchRelocated : Verdict::kMatch;
        verdict.resident = host_root(wanted[i].expected, Form::kPlain, {});
      } else {
        verdict.verdict = Verdict::kDiffer;
        std::vector<std::uint8_t> now;
        // Whole units are read; what is behind the last lies in the same block.
        if (Failure failure = session_.read({verdict.address, (verdict.bytes + 15) / 16 * 16}, now)) return failure;
        now.resize(verdict.bytes);
        tell_differences(wanted[i].expected, now, verdict);
      }
    }
    (wanted[i].bank ? out.banks : out.functions).push_back(std::move(verdict));
  }
  return {};
}

void ImageProbe::want_banks(const std::string& kernel, const std::vector<Copy>& copies,
                            const std::vector<Place>& places, std::vector<Wanted>& out) {
  Addresses functions;
  for (std::uint32_t symbol = 0; symbol < code_.symbols.size(); ++symbol)
    for (std::size_t i = 0; i < code_.functions.size(); ++i)
      if (code_.functions[i].section == code_.symbols[symbol].section && places[i].address != 0)
        functions[symbol] = places[i].address + code_.symbols[symbol].value;
  std::vector<BankImage> images;
  for (const Bank& bank : banks_) {
    Addresses known = globals_of(bank.relocations);
    known.insert(functions.begin(), functions.end());
    BankImage image;
    image.bytes = expected_bank(bank, known, image.mask);
    images.push_back(std::move(image));
  }
  const std::vector<Place> found = locate_banks(images, copies, before_);
  for (std::size_t i = 0; i < banks_.size(); ++i) {
    const Bank& bank = banks_[i];
    if (found[i].address != 0) found_.push_back({found[i].address, bank.bytes.size()});
    const Function* owner = function_in(code_, bank.function);
    if (!kernel.empty() && owner != nullptr && owner->name != kernel) continue;
    Wanted one;
    one.bank = true;
    FunctionVerdict& verdict = one.verdict;
    verdict.name = bank.name;
    verdict.bytes = bank.bytes.size();
    verdict.address = found[i].address;
    verdict.relocations = bank.relocations.size();
    if (tells_nothing(images[i])) {
      verdict.verdict = Verdict::kNotProbed;
      verdict.reason = "holds nothing but zeros and addresses that nothing tells";
    } else if (found[i].address == 0) {
      verdict.verdict = Verdict::kNotResident;
      verdict.reason = "nowhere in the driver's memory";
    } else {
      const identify::Bytes resident = resident_at(copies, verdict.address, verdict.bytes);
      one.expected = images[i].bytes;
      for (std::size_t at = 0; at < one.expected.size(); ++at)
        if (images[i].mask[at] == 0) one.expected[at] = resident[at];
      verdict.unchecked =
          static_cast<std::size_t>(std::count(images[i].mask.begin(), images[i].mask.end(), std::uint8_t{0})) / 8;
    }
    out.push_back(std::move(one));
  }
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
