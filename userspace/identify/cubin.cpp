// SPDX-License-Identifier: Apache-2.0
#include "identify/cubin.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "identify/canon.h"
#include "identify/elf.h"
#include "identify/nvinfo.h"

namespace gpuwatch::identify {

namespace {

constexpr std::uint8_t kSymObject = 1;
constexpr std::uint8_t kSymFunction = 2;
constexpr std::uint8_t kSymSection = 3;
constexpr std::uint8_t kOtherEntry = 0x10;
constexpr std::uint32_t kTypeRela = 4;
constexpr std::uint32_t kTypeRel = 9;
constexpr std::uint32_t kTypeMercRela = 0x70000082;
constexpr std::uint32_t kTypeMercSymtab = 0x70000085;
constexpr unsigned kConstantBanks = 18;

struct Relocation {
  std::uint64_t offset;
  std::uint32_t type;
  std::string ref;
  std::int64_t addend;
  std::uint64_t entry_size;
  auto key() const { return std::tie(offset, type, ref, addend, entry_size); }
};

bool is_constant_bank(std::string_view name) {
  constexpr std::string_view kPrefix = ".nv.constant";
  if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) return false;
  return name.find_first_not_of("0123456789", kPrefix.size()) == std::string_view::npos;
}

}  // namespace

std::uint32_t cubin_sm(Bytes header) {
  const auto flags = try_load<std::uint32_t>(header, 48).value_or(0);
  return header.size() > 8 && header[8] >= 8 ? (flags >> 8) & 0xff : flags & 0xff;
}

struct CubinPlan::State {
  struct Planned {
    std::size_t k = 0;
    std::size_t t = 0;
    std::string canonical;
  };

  Elf elf;
  Limits limits;
  std::uint64_t budget = 0;  // bytes that may still be hashed for K, T and D
  bool over_budget = false;
  std::vector<Symbol> merc_symbols;
  // Relocation sections by the section they apply to.
  std::unordered_multimap<std::uint32_t, std::size_t> relocations;
  std::unordered_multimap<std::uint32_t, std::size_t> merc_relocations;
  // Attributes of .nv.info by the symbol in their first word.
  std::unordered_multimap<std::uint32_t, Attribute> module_attributes;
  std::vector<Planned> planned;
  std::size_t d = 0;
  bool ready = false;

  std::string reference(const std::vector<Symbol>& symbols, std::uint32_t index) const {
    if (index >= symbols.size()) return "?" + std::to_string(index);
    const Symbol& symbol = symbols[index];
    if (symbol.type != kSymSection) return "N:" + canonical_name(symbol.name);
    const auto& sections = elf.sections();
    return "S:" + canonical_name(symbol.section < sections.size() ? sections[symbol.section].name : "");
  }

  Bytes spend(Bytes bytes) {
    if (bytes.size() > budget) {
      over_budget = true;
      return {};
    }
    budget -= bytes.size();
    return bytes;
  }

  void collect(const std::unordered_multimap<std::uint32_t, std::size_t>& sections, std::size_t target,
               const std::vector<Symbol>& symbols, const std::string* self, std::vector<Relocation>& out) const {
    const auto [first, last] = sections.equal_range(static_cast<std::uint32_t>(target));
    for (auto it = first; it != last; ++it) {
      const Section& section = elf.sections()[it->second];
      const Bytes bytes = elf.bytes(section);
      const std::size_t size = section.type == kTypeRel ? 16 : 24;
      for (std::size_t at = 0; fits(at, size, bytes.size()); at += size) {
        Relocation relocation;
        relocation.offset = load<std::uint64_t>(bytes, at);
        const auto info = load<std::uint64_t>(bytes, at + 8);
        relocation.type = static_cast<std::uint32_t>(info);
        relocation.ref = reference(symbols, static_cast<std::uint32_t>(info >> 32));
        if (self != nullptr) relocation.ref = seen_from(relocation.ref, *self);
        relocation.addend = size == 24 ? load<std::int64_t>(bytes, at + 16) : 0;
        relocation.entry_size = size;
        out.push_back(std::move(relocation));
      }
    }
    std::sort(out.begin(), out.end(), [](const Relocation& a, const Relocation& b) { return a.key() < b.key(); });
  }

  void section(ItemWriter& out, std::string_view label, std::size_t index, const std::string* self,
               bool with_relocations, bool merc) {
    const Section& section = elf.sections()[index];
    out.text("sec");
    out.text(label);
    out.integer(section.size);
    out.integer(section.align);
    out.bytes(spend(elf.bytes(section)));
    if (!with_relocations) return;
    std::vector<Relocation> found;
    if (merc)
      collect(merc_relocations, index, merc_symbols, self, found);
    else
      collect(relocations, index, elf.symbols(), self, found);
    for (const Relocation& relocation : found) {
      out.text("rel");
      out.integer(relocation.offset);
      out.integer(relocation.type);
      out.text(relocation.ref);
      out.integer(static_cast<std::uint64_t>(relocation.addend));
      out.integer(relocation.entry_size);
    }
  }

  // Attributes in their order, values that are symbols by name.
  void attributes(ItemWriter& out, std::string_view tag, const std::vector<Attribute>& list,
                  const std::vector<Symbol>& symbols, const std::string& self) const {
    std::vector<std::tuple<std::uint8_t, std::uint8_t, std::string>> encoded;
    encoded.reserve(list.size());
    for (const Attribute& attribute : list) {
      std::string items;
      std::size_t names = 0;  // leading words that are symbols
      switch (attribute.id) {
        case attr::kExterns:
          names = attribute.value.size() / 4;
          break;
        case attr::kParamCbank:
        case attr::kFrameSize:
        case attr::kMinStackSize:
        case attr::kMaxStackSize:
        case attr::kRegisterCount:
          names = 1;
          break;
        default:
          break;
      }
      if (names == 0 || attribute.format != 4 || attribute.value.size() < 4) {
        append_bytes(items, attribute.value);
      } else {
        for (std::size_t at = 0; at < attribute.value.size(); at += 4) {
          const Bytes word = attribute.value.subspan(at, std::min<std::size_t>(4, attribute.value.size() - at));
          if (at / 4 < names && word.size() == 4)
            append_text(items, seen_from(reference(symbols, load<std::uint32_t>(word, 0)), self));
          else
            append_bytes(items, word);
        }
      }
      encoded.emplace_back(attribute.id, attribute.format, std::move(items));
    }
    std::sort(encoded.begin(), encoded.end());
    for (const auto& [id, format, items] : encoded) {
      out.text(tag);
      out.integer(id);
      out.integer(format);
      out.encoded(items);
    }
  }

  std::vector<Attribute> attributes_of(std::string_view section_name, Module& module) const {
    std::vector<Attribute> list;
    const std::size_t index = elf.find(section_name);
    if (index == Elf::npos) return list;
    if (!read_attributes(elf.bytes(elf.sections()[index]), list))
      module.errors.push_back(std::string(section_name) + " truncated");
    return list;
  }

  void function(std::uint32_t number, const Symbol& symbol, HashBatch& batch, Module& module);
  void module_data(HashBatch& batch);
  void index_sections(Module& module);
};

void CubinPlan::State::index_sections(Module& module) {
  const auto& sections = elf.sections();
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const Section& section = sections[i];
    if (section.type == kTypeRela || section.type == kTypeRel) relocations.emplace(section.info, i);
    if (section.type == kTypeMercRela) merc_relocations.emplace(section.info, i);
    if (section.type == kTypeMercSymtab && merc_symbols.empty())
      if (std::string error = elf.read_symbols(i, limits, merc_symbols); !error.empty())
        module.errors.push_back(".nv.merc.symtab: " + error);
    if (!section.in_file && section.size != 0 && !is_nobits(section) && module.errors.size() < 16)
      module.errors.push_back("section " + std::to_string(i) + " past end");
  }
  std::vector<Attribute> list = attributes_of(".nv.info", module);
  for (const Attribute& attribute : list)
    if (attribute.format == 4 && attribute.value.size() >= 4)
      module_attributes.emplace(load<std::uint32_t>(attribute.value, 0), attribute);
}

void CubinPlan::State::function(std::uint32_t number, const Symbol& symbol, HashBatch& batch, Module& module) {
  const std::string name(symbol.name);
  const std::string self = canonical_name(name);
  const Section& text = elf.sections()[symbol.section];
  Kernel kernel;
  kernel.name = name;
  kernel.entry = (symbol.other & kOtherEntry) != 0;
  kernel.code_bytes = text.size;
  kernel.barriers = (text.flags >> 20) & 0x7f;
  kernel.registers = text.info >> 24;

  Planned plan;
  plan.k = batch.begin();
  ItemWriter out(batch);
  out.text("gpuwatch-kernel-v1");
  out.integer(module.sm);
  out.integer(kernel.entry ? 1 : 0);
  out.integer(symbol.size);
  out.text("tflags");
  out.integer((text.flags >> 20) & 0x7f);
  section(out, ".text.@", symbol.section, &self, true, false);
  for (unsigned bank = 0; bank < kConstantBanks; ++bank) {
    const std::string prefix = ".nv.constant" + std::to_string(bank) + ".";
    const std::size_t index = elf.find(prefix + name);
    if (index != Elf::npos) section(out, prefix + "@", index, &self, true, false);
  }
  for (const char* prefix : {".nv.shared.", ".nv.local."}) {
    const std::size_t index = elf.find(prefix + name);
    if (index == Elf::npos || elf.sections()[index].size == 0) continue;
    if (prefix[4] == 's') kernel.shared_bytes = elf.sections()[index].size;
    section(out, std::string(prefix) + "@", index, &self, false, false);
  }
  if (const std::size_t index = elf.find(".nv.capmerc.text." + name); index != Elf::npos) {
    const Bytes bytes = elf.bytes(elf.sections()[index]);
    out.text("capmerc");
    out.integer(elf.sections()[index].size);
    // The first word is the index of .text, which moves with debug sections.
    out.bytes(spend(bytes.size() > 4 ? bytes.subspan(4) : Bytes()));
    std::vector<Relocation> found;
    collect(merc_relocations, index, merc_symbols, &self, found);
    for (const Relocation& relocation : found) {
      out.text("mrel");
      out.integer(relocation.offset);
      out.integer(relocation.type);
      out.text(relocation.ref);
      out.integer(static_cast<std::uint64_t>(relocation.addend));
    }
  }
  if (const std::size_t index = elf.find(".nv.merc.nv.constant.optimizer." + name); index != Elf::npos)
    section(out, ".nv.merc.optimizer.@", index, &self, true, true);

  std::vector<Attribute> merc = attributes_of(".nv.merc.nv.info." + name, module);
  std::erase_if(merc, [](const Attribute& a) { return a.id == attr::kCudaApiVersion || a.id == attr::kMercOptions; });
  attributes(out, "mattr", merc, merc_symbols, self);

  std::vector<Attribute> list = attributes_of(".nv.info." + name, module);
  std::erase_if(list, [](const Attribute& a) { return a.id == attr::kCudaApiVersion; });
  for (const Attribute& attribute : list)
    if (attribute.id == attr::kBarriers) kernel.barriers = attribute.value[0];
  const auto [first, last] = module_attributes.equal_range(number);
  for (auto it = first; it != last; ++it) {
    const Attribute& attribute = it->second;
    if (attribute.id == attr::kRegisterCount && attribute.value.size() >= 8)
      kernel.registers = load<std::uint32_t>(attribute.value, 4);
    if (attribute.id == attr::kRegisterCount || attribute.id == attr::kFrameSize ||
        attribute.id == attr::kMinStackSize || attribute.id == attr::kMaxStackSize)
      list.push_back(attribute);
  }
  attributes(out, "attr", list, elf.symbols(), self);

  plan.t = batch.begin();
  batch.add(spend(elf.bytes(text)));
  plan.canonical = self;
  planned.push_back(std::move(plan));
  module.kernels.push_back(std::move(kernel));
}

void CubinPlan::State::module_data(HashBatch& batch) {
  d = batch.begin();
  ItemWriter out(batch);
  out.text("gpuwatch-moddata-v1");
  const auto& sections = elf.sections();
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const std::string_view name = sections[i].name;
    if (is_constant_bank(name) || name == ".nv.global.init" || name == ".nv.global" || name == ".nv.shared.reserved.0")
      section(out, canonical_name(name), i, nullptr, true, false);
  }
  std::vector<std::tuple<std::string, std::uint64_t, std::string, std::uint64_t>> objects;
  for (const Symbol& symbol : elf.symbols()) {
    if (symbol.type != kSymObject || symbol.section == 0) continue;
    objects.emplace_back(canonical_name(symbol.section < sections.size() ? sections[symbol.section].name : ""),
                         symbol.value, canonical_name(symbol.name), symbol.size);
  }
  std::sort(objects.begin(), objects.end());
  for (const auto& [where, value, name, size] : objects) {
    out.text("obj");
    out.text(name);
    out.text(where);
    out.integer(value);
    out.integer(size);
  }
}

CubinPlan::CubinPlan() = default;
CubinPlan::CubinPlan(CubinPlan&&) noexcept = default;
CubinPlan& CubinPlan::operator=(CubinPlan&&) noexcept = default;
CubinPlan::~CubinPlan() = default;

void CubinPlan::plan(Bytes image, const Limits& limits, HashBatch& batch, Module& module) {
  state_ = std::make_unique<State>();
  State& state = *state_;
  state.limits = limits;
  module.kind = Kind::kElf;
  if (std::string error = state.elf.parse(image, limits); !error.empty()) {
    module.errors.push_back(std::move(error));
    return;
  }
  if (state.elf.machine() != kMachineCuda) {
    module.errors.push_back("machine " + std::to_string(state.elf.machine()));
    return;
  }
  module.sm = cubin_sm(image);
  module.abi = state.elf.abi();
  module.relocatable = state.elf.type() == 1;
  // K and T read the code once each, D the data; overlaps may not multiply it.
  state.budget = image.size() > ~std::uint64_t{0} / limits.hashed_ratio ? 0 : image.size() * limits.hashed_ratio;
  state.index_sections(module);
  const auto& symbols = state.elf.symbols();
  const auto& sections = state.elf.sections();
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& symbol = symbols[i];
    if (symbol.type != kSymFunction || symbol.section == 0 || symbol.section >= sections.size()) continue;
    const std::string_view where = sections[symbol.section].name;
    if (symbol.name.empty() || !where.starts_with(".text.") || where.substr(6) != symbol.name) continue;
    state.function(static_cast<std::uint32_t>(i), symbol, batch, module);
    if (state.over_budget) break;
  }
  state.module_data(batch);
  if (state.over_budget) module.errors.push_back("sections overlap: more than 4 times the image to hash");
  state.ready = true;
  module.has_modules = true;
}

void CubinPlan::finish(const HashBatch& batch, Module& module) {
  if (!state_ || !state_->ready) return;
  State& state = *state_;
  module.d = batch.result(state.d);
  std::vector<std::string> functions;
  functions.reserve(state.planned.size());
  for (std::size_t i = 0; i < state.planned.size(); ++i) {
    Kernel& kernel = module.kernels[i];
    kernel.k = batch.result(state.planned[i].k);
    kernel.t = batch.result(state.planned[i].t);
    functions.push_back(state.planned[i].canonical + '\0' + to_hex(kernel.k));
  }
  std::sort(functions.begin(), functions.end());

  std::string items;
  append_text(items, "gpuwatch-module-v1");
  append_int(items, module.sm);
  append_int(items, state.elf.type());
  for (const std::string& function : functions) append_text(items, function);
  append_text(items, to_hex(module.d));
  for (const char* name : {".nv.compat", ".nv.rel.action"}) {
    const std::size_t index = state.elf.find(name);
    if (index == Elf::npos) continue;
    append_text(items, name);
    append_bytes(items, state.elf.bytes(state.elf.sections()[index]));
  }
  if (const std::size_t index = state.elf.find(".nv.callgraph"); index != Elf::npos) {
    append_text(items, "callgraph");
    std::vector<std::string> calls;
    const Bytes bytes = state.elf.bytes(state.elf.sections()[index]);
    for (std::size_t at = 0; fits(at, 8, bytes.size()); at += 8) {
      const auto callee = load<std::int32_t>(bytes, at + 4);
      calls.push_back(state.reference(state.elf.symbols(), load<std::uint32_t>(bytes, at)) + ">" +
                      (callee < 0 ? std::to_string(callee)
                                  : state.reference(state.elf.symbols(), static_cast<std::uint32_t>(callee))));
    }
    std::sort(calls.begin(), calls.end());
    for (const std::string& call : calls) append_text(items, call);
  }
  module.m = sha256(as_bytes(items));
}

}  // namespace gpuwatch::identify
