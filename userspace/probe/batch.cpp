// SPDX-License-Identifier: Apache-2.0
#include "probe/batch.h"

#include <algorithm>
#include <chrono>

#include "base/scope_exit.h"
#include "probe/host_tree.h"

namespace gpuwatch::probe {

namespace {

constexpr std::uint64_t kHeapBlockMax = 64ull << 20;

// Adds the time until its end.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum_ms) : sum_ms_(sum_ms), begin_(std::chrono::steady_clock::now()) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    sum_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  double& sum_ms_;
  std::chrono::steady_clock::time_point begin_;
};

bool has_function(const Code& code, std::uint32_t section) {
  return std::any_of(code.functions.begin(), code.functions.end(),
                     [&](const Function& function) { return function.section == section; });
}

// What the driver makes of PTX.
Failure compile(const Session& session, const LoadableImage& image, std::vector<std::uint8_t>& out) {
  const DriverApi& api = session.api();
  CuLink link = nullptr;
  if (const CuResult result = api.link_create(0, nullptr, nullptr, &link); result != kCuOk)
    return session.failed(result, "compiling PTX");
  const base::ScopeExit destroy([&] { api.link_destroy(link); });
  std::vector<std::uint8_t> text = image.bytes;
  void* cubin = nullptr;
  std::size_t size = 0;
  CuResult result = api.link_add(link, kCuInputPtx, text.data(), text.size(), "image", 0, nullptr, nullptr);
  if (result == kCuOk) result = api.link_complete(link, &cubin, &size);
  if (result != kCuOk) return session.failed(result, "compiling PTX");
  const auto* begin = static_cast<const std::uint8_t*>(cubin);
  out.assign(begin, begin + size);
  return {};
}

}  // namespace

Batch::~Batch() {
  for (const LoadedModule& module : modules_) session_.api().module_unload(module.module);
}

Failure Batch::add(const LoadableImage& image) {
  if (modules_.empty()) {
    figures_ = {};
    if (Failure failure = read_heap(before_)) return failure;
  }
  const Stopwatch watch(figures_.load_ms);
  std::vector<std::uint8_t> compiled;
  if (image.ptx)
    if (Failure failure = compile(session_, image, compiled)) return failure;
  const std::vector<std::uint8_t>& bytes = image.ptx ? compiled : image.bytes;
  LoadedModule module;
  if (const std::string error = read_code(bytes, module.code); !error.empty())
    return {Outcome::kWrongImage, "the image is cut or damaged (" + error + ")"};
  std::set<std::string_view> names;
  for (const CodeSymbol& symbol : module.code.symbols)
    if (symbol.section != 0 && !has_function(module.code, symbol.section) && !names.insert(symbol.name).second)
      module.shared_names.insert(symbol.name);
  if (const std::string error = read_banks(bytes, module.banks); !error.empty()) return {Outcome::kWrongImage, error};
  if (module.code.relocatable)
    return {Outcome::kWrongImage, "relocatable code, which the driver does not load by itself"};
  if (const CuResult result = session_.api().module_load(&module.module, bytes.data()); result != kCuOk)
    return session_.failed(result, "loading");
  module.identity = std::make_shared<ImageIdentity>(image.ptx, image.bytes, std::move(compiled));
  for (const Function& function : module.code.functions) figures_.text_bytes += function.text.size();
  figures_.functions += module.code.functions.size();
  figures_.banks += module.banks.size();
  ++figures_.modules;
  modules_.push_back(std::move(module));
  return {};
}

Failure Batch::read_heap(std::vector<Copy>& out) {
  const Stopwatch watch(figures_.read_ms);
  // Code lies in video memory that the driver's library took for itself. Copies
  // of it in system memory are ways there, and nothing runs from them.
  std::vector<Span> spans;
  for (const MappedRange& range : session_.ranges().ranges())
    if (range.memory_class == kClassVideoMemory && range.bytes <= kHeapBlockMax)
      spans.push_back({range.address, range.bytes});
  out.clear();
  figures_.heap_bytes = 0;
  figures_.heap_ranges = spans.size();
  if (spans.empty())
    return {Outcome::kTrouble,
            "no video memory is seen among this process's mappings: the driver's calls have a form "
            "that this version does not know"};
  std::vector<std::vector<std::uint8_t>> bytes;
  if (Failure failure = session_.read(spans, bytes)) return failure;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    figures_.heap_bytes += spans[i].bytes;
    out.push_back({spans[i].address, std::move(bytes[i])});
  }
  return {};
}

Addresses Batch::globals_of(const LoadedModule& module, const std::vector<Relocation>& relocations) const {
  Addresses addresses;
  std::map<std::uint32_t, bool> asked;
  for (const Relocation& relocation : relocations) {
    if (relocation.symbol >= module.code.symbols.size() || !asked.emplace(relocation.symbol, true).second) continue;
    const CodeSymbol& symbol = module.code.symbols[relocation.symbol];
    if (symbol.section == 0 || has_function(module.code, symbol.section)) continue;
    // The driver is asked by name, and local symbols of linked code share names (libnccl 2.28: strings of
    // assertions): which one it tells is not known.
    if (module.shared_names.contains(symbol.name)) continue;
    CuPointer address = 0;
    std::size_t size = 0;
    if (session_.api().module_global(&address, &size, module.module, symbol.name.c_str()) == kCuOk)
      addresses[relocation.symbol] = address;
  }
  return addresses;
}

Failure Batch::check(const std::string& kernel, std::vector<ModuleVerdict>& out) {
  out.assign(modules_.size(), {});
  {
    const Stopwatch watch(figures_.refresh_ms);
    if (Failure failure = session_.scrub()) return failure;
    if (Failure failure = session_.refresh()) return failure;
  }
  Memory memory;
  if (Failure failure = read_heap(memory.copies)) return failure;
  memory.proven = session_.ranges();
  found_.clear();
  std::vector<Claim> claims;
  const std::vector<FunctionPlaces> places = claim_functions(kernel, memory, claims);
  claim_banks(kernel, memory, places, claims);
  std::vector<bool> equal(claims.size(), true);
  if (Failure failure = hash(claims, equal)) return failure;
  return judge(claims, equal, out);
}

std::vector<FunctionPlaces> Batch::claim_functions(const std::string& kernel, const Memory& memory,
                                                   std::vector<Claim>& claims) {
  std::vector<Addresses> globals;
  std::vector<Sought> sought;
  std::vector<Place> places;
  {
    const Stopwatch watch(figures_.search_ms);
    for (const LoadedModule& module : modules_) {
      std::vector<Relocation> all;
      for (const Function& function : module.code.functions)
        all.insert(all.end(), function.relocations.begin(), function.relocations.end());
      globals.push_back(globals_of(module, all));
    }
    for (std::size_t i = 0; i < modules_.size(); ++i)
      for (const Function& function : modules_[i].code.functions)
        sought.push_back({&function, &modules_[i].code, i, &globals[i]});
    places = locate(sought, memory.copies, before_);
  }
  const Stopwatch watch(figures_.settle_ms);
  const auto mapped = [&](std::uint64_t address) { return memory.proven.covers(address, 1); };
  std::vector<FunctionPlaces> by_module(modules_.size());
  for (std::size_t i = 0; i < sought.size(); ++i) {
    if (places[i].address == 0) continue;
    found_.push_back({places[i].address, sought[i].function->text.size()});
    by_module[sought[i].module][sought[i].function->section] = places[i].address;
  }
  for (std::size_t i = 0; i < sought.size(); ++i) {
    const Function& function = *sought[i].function;
    if (!kernel.empty() && function.name != kernel) continue;
    Claim claim;
    claim.module = sought[i].module;
    claim.function = &function;
    FunctionVerdict& verdict = claim.verdict;
    verdict.name = function.name;
    verdict.bytes = function.text.size();
    verdict.address = places[i].address;
    verdict.relocations = function.relocations.size();
    if (places[i].address == 0) {
      verdict.verdict = Verdict::kNotResident;
      verdict.reason = "nowhere in the code heap";
    } else {
      Addresses known;
      for (const Relocation& relocation : function.relocations)
        if (const auto it = globals[claim.module].find(relocation.symbol); it != globals[claim.module].end())
          known.insert(*it);
      settle_function(modules_[claim.module].code, function, resident_at(memory.copies, verdict.address, verdict.bytes),
                      memory.copies, mapped, std::move(known), verdict, claim.own, &by_module[claim.module]);
      // Most of it is as in the file, and that is held already.
      if (claim.own == function.text) claim.own = {};
    }
    claims.push_back(std::move(claim));
  }
  return by_module;
}

void Batch::claim_banks(const std::string& kernel, const Memory& memory, const std::vector<FunctionPlaces>& places,
                        std::vector<Claim>& claims) {
  const Stopwatch watch(figures_.search_ms);
  struct Owned {
    std::size_t module;
    const Bank* bank;
  };
  std::vector<Owned> owned;
  std::vector<BankImage> images;
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const LoadedModule& module = modules_[i];
    if (module.banks.empty()) continue;
    Addresses functions;
    for (std::uint32_t symbol = 0; symbol < module.code.symbols.size(); ++symbol)
      if (const auto place = places[i].find(module.code.symbols[symbol].section); place != places[i].end())
        functions[symbol] = place->second + module.code.symbols[symbol].value;
    for (const Bank& bank : module.banks) {
      Addresses known = globals_of(module, bank.relocations);
      known.insert(functions.begin(), functions.end());
      BankImage image;
      image.bytes = expected_bank(bank, known, image.mask);
      image.module = i;
      images.push_back(std::move(image));
      owned.push_back({i, &bank});
    }
  }
  const std::vector<Place> found = locate_banks(images, memory.copies, before_);
  for (std::size_t i = 0; i < owned.size(); ++i) {
    const Bank& bank = *owned[i].bank;
    if (found[i].address != 0) found_.push_back({found[i].address, bank.bytes.size()});
    const auto& functions = modules_[owned[i].module].code.functions;
    const auto owner = std::find_if(functions.begin(), functions.end(), [&](const Function& function) {
      return bank.function != 0 && function.section == bank.function;
    });
    if (!kernel.empty() && owner != functions.end() && owner->name != kernel) continue;
    Claim claim;
    claim.module = owned[i].module;
    claim.list = &ModuleVerdict::banks;
    FunctionVerdict& verdict = claim.verdict;
    verdict.name = bank.name;
    verdict.bytes = bank.bytes.size();
    verdict.address = found[i].address;
    verdict.relocations = bank.relocations.size();
    if (tells_nothing(images[i])) {
      verdict.address = 0;
      verdict.verdict = Verdict::kNotProbed;
      verdict.reason = "holds nothing but zeros and addresses that nothing tells";
    } else if (found[i].address == 0) {
      verdict.verdict = Verdict::kNotResident;
      verdict.reason = "nowhere in the driver's memory";
    } else {
      const identify::Bytes resident = resident_at(memory.copies, verdict.address, verdict.bytes);
      claim.own = images[i].bytes;
      for (std::size_t at = 0; at < claim.own.size(); ++at)
        if (images[i].mask[at] == 0) claim.own[at] = resident[at];
      verdict.unchecked =
          static_cast<std::size_t>(std::count(images[i].mask.begin(), images[i].mask.end(), std::uint8_t{0})) / 8;
    }
    claims.push_back(std::move(claim));
  }
}

// Two readings, each under a nonce of its own and with a refresh behind it.
Failure Batch::hash(const std::vector<Claim>& claims, std::vector<bool>& equal) {
  std::vector<Span> spans;
  std::vector<identify::Bytes> expected;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (claims[i].verdict.address == 0) continue;
    spans.push_back({claims[i].verdict.address, claims[i].verdict.bytes});
    expected.push_back(claims[i].expected());
    which.push_back(i);
  }
  for (int reading = 0; reading < 2 && !spans.empty(); ++reading) {
    const Nonce nonce = nonces_();
    std::vector<identify::Digest> roots;
    {
      const Stopwatch watch(figures_.hash_ms);
      if (Failure failure = session_.hash(spans, Form::kTree, nonce, roots, figures_.gpu_ms[reading])) return failure;
    }
    {
      const Stopwatch watch(figures_.host_ms);
      const std::vector<identify::Digest> wanted = host_roots(expected, Form::kTree, nonce);
      for (std::size_t i = 0; i < which.size(); ++i)
        if (roots[i] != wanted[i]) equal[which[i]] = false;
    }
    const Stopwatch watch(figures_.refresh_ms);
    if (Failure failure = session_.refresh()) return failure;
  }
  return {};
}

Failure Batch::judge(std::vector<Claim>& claims, const std::vector<bool>& equal, std::vector<ModuleVerdict>& out) {
  std::vector<identify::Bytes> good;
  for (std::size_t i = 0; i < claims.size(); ++i)
    if (claims[i].verdict.address != 0 && equal[i] && claims[i].verdict.reason.empty())
      good.push_back(claims[i].expected());
  std::vector<identify::Digest> digests;
  {
    const Stopwatch watch(figures_.host_ms);
    digests = host_roots(good, Form::kPlain, {});
  }
  std::size_t next = 0;
  figures_.hashed_bytes = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    Claim& claim = claims[i];
    FunctionVerdict& verdict = claim.verdict;
    if (verdict.address != 0) {
      out[claim.module].hashed_bytes += verdict.bytes;
      figures_.hashed_bytes += verdict.bytes;
      if (equal[i] && verdict.reason.empty()) {
        verdict.verdict =
            verdict.relocations + verdict.loader_changes != 0 ? Verdict::kMatchRelocated : Verdict::kMatch;
        verdict.resident = digests[next++];
        if (claim.function != nullptr) {
          const LoadedModule& module = modules_[claim.module];
          verdict.form = claim.function->relocations.empty() ? verdict.resident
                                                             : form_of(module.code, *claim.function, claim.expected());
          verdict.image = module.identity;
        }
      } else {
        verdict.verdict = Verdict::kDiffer;
        std::vector<std::uint8_t> now;
        // Whole units are read; what is behind the last lies in the same block.
        if (Failure failure = session_.read({verdict.address, (verdict.bytes + 15) / 16 * 16}, now)) return failure;
        now.resize(verdict.bytes);
        tell_differences(claim.expected(), now, verdict);
      }
    }
    (out[claim.module].*claim.list).push_back(std::move(verdict));
  }
  return {};
}

Failure Batch::unload() {
  const Stopwatch watch(figures_.unload_ms);
  for (const Span& span : found_)
    if (Failure failure = session_.store(span.address, 0, span.bytes / 4)) return failure;
  found_.clear();
  Failure failure;
  for (const LoadedModule& module : modules_)
    if (const CuResult result = session_.api().module_unload(module.module); result != kCuOk && !failure)
      failure = session_.failed(result, "unloading");
  modules_.clear();
  before_ = {};
  return failure;
}

}  // namespace gpuwatch::probe
