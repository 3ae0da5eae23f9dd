// SPDX-License-Identifier: Apache-2.0
#include "identify/cubin.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>

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
  std::uint32_t symbol;
  std::int64_t addend;
  std::uint64_t entry_size;
};

// Sections by the section they apply to, in the file's order.
using Links = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

struct LinkBefore {
  bool operator()(const Links::value_type& link, std::uint32_t target) const { return link.first < target; }
  bool operator()(std::uint32_t target, const Links::value_type& link) const { return target < link.first; }
};

// The sections that one kernel may have, and where each is in Parts.
constexpr unsigned kShared = kConstantBanks;
constexpr unsigned kLocal = kConstantBanks + 1;
constexpr unsigned kCapmerc = kConstantBanks + 2;
constexpr unsigned kMercOptimizer = kConstantBanks + 3;
constexpr unsigned kMercInfo = kConstantBanks + 4;
constexpr unsigned kInfo = kConstantBanks + 5;
constexpr unsigned kPartCount = kConstantBanks + 6;
constexpr std::uint32_t kNoPart = ~std::uint32_t{0};
using Parts = std::array<std::uint32_t, kPartCount>;

struct PartName {
  unsigned part = kPartCount;  // none
  std::string_view kernel;
};

// Of a section's name: which part of which kernel.
PartName part_name(std::string_view name) {
  struct Prefix {
    std::string_view text;
    unsigned part;
  };
  static constexpr Prefix kPrefixes[] = {
      {".nv.shared.", kShared},         {".nv.local.", kLocal},
      {".nv.capmerc.text.", kCapmerc},  {".nv.merc.nv.constant.optimizer.", kMercOptimizer},
      {".nv.merc.nv.info.", kMercInfo}, {".nv.info.", kInfo}};
  if (!name.starts_with(".nv.")) return {};
  for (const Prefix& prefix : kPrefixes)
    if (name.starts_with(prefix.text)) return {prefix.part, name.substr(prefix.text.size())};
  constexpr std::string_view kConstant = ".nv.constant";
  if (!name.starts_with(kConstant)) return {};
  std::size_t at = kConstant.size();
  unsigned bank = 0;
  while (at < name.size() && name[at] >= '0' && name[at] <= '9' && at < kConstant.size() + 2)
    bank = bank * 10 + static_cast<unsigned>(name[at++] - '0');
  const std::size_t digits = at - kConstant.size();
  if (digits == 0 || (digits == 2 && bank < 10) || bank >= kConstantBanks || at >= name.size() || name[at] != '.')
    return {};
  return {bank, name.substr(at + 1)};
}

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
    std::string_view canonical;
  };

  Elf elf;
  Limits limits;
  std::uint64_t budget = 0;  // bytes that may still be hashed for K, T and D
  bool over_budget = false;
  std::vector<Symbol> merc_symbols;
  Links relocations;
  Links merc_relocations;
  std::unordered_map<std::string_view, Parts> parts;  // by kernel
  // Attributes of .nv.info by the symbol in their first word.
  std::vector<std::pair<std::uint32_t, Attribute>> module_attributes;
  CanonicalNames canonical;
  std::vector<std::string_view> section_names;  // canonical
  std::vector<Planned> planned;
  std::size_t d = 0;
  bool ready = false;
  // Used again and again: allocating them for each kernel took longer than
  // hashing it.
  struct Encoded {
    std::uint8_t id;
    std::uint8_t format;
    std::size_t begin;
    std::size_t size;
  };
  std::string text;
  std::string encoded_items;
  std::vector<Encoded> encoded;
  std::vector<Relocation> found;
  std::vector<Attribute> list;

  void append_reference(std::string& out, const std::vector<Symbol>& symbols, std::uint32_t index,
                        std::string_view self) {
    if (index >= symbols.size()) {
      out += '?';
      out += std::to_string(index);
    } else if (const Symbol& symbol = symbols[index]; symbol.type == kSymSection) {
      append_section(out, symbol.section < section_names.size() ? section_names[symbol.section] : "", self);
    } else {
      append_symbol(out, canonical.get(symbol.name), self);
    }
  }
  std::string reference(std::uint32_t index) {
    std::string out;
    append_reference(out, elf.symbols(), index, {});
    return out;
  }

  Bytes spend(Bytes bytes) {
    if (bytes.size() > budget) {
      over_budget = true;
      return {};
    }
    budget -= bytes.size();
    return bytes;
  }

  // Relocations of `target` in their order, into `found`.
  void collect(const Links& links, std::size_t target, const std::vector<Symbol>& symbols, std::string_view self) {
    found.clear();
    const auto [first, last] =
        std::equal_range(links.begin(), links.end(), static_cast<std::uint32_t>(target), LinkBefore());
    for (auto it = first; it != last; ++it) {
      const Section& section = elf.sections()[it->second];
      const Bytes bytes = elf.bytes(section);
      const std::size_t size = section.type == kTypeRel ? 16 : 24;
      for (std::size_t at = 0; fits(at, size, bytes.size()); at += size) {
        const auto info = load<std::uint64_t>(bytes, at + 8);
        found.push_back({load<std::uint64_t>(bytes, at), static_cast<std::uint32_t>(info),
                         static_cast<std::uint32_t>(info >> 32), size == 24 ? load<std::int64_t>(bytes, at + 16) : 0,
                         size});
      }
    }
    const auto named = [&](const Relocation& relocation) {
      std::string out;
      append_reference(out, symbols, relocation.symbol, self);
      return out;
    };
    std::sort(found.begin(), found.end(), [&](const Relocation& a, const Relocation& b) {
      if (std::tie(a.offset, a.type) != std::tie(b.offset, b.type))
        return std::tie(a.offset, a.type) < std::tie(b.offset, b.type);
      // Names are needed for two at one place only.
      if (a.symbol != b.symbol)
        if (const int order = named(a).compare(named(b)); order != 0) return order < 0;
      return std::tie(a.addend, a.entry_size) < std::tie(b.addend, b.entry_size);
    });
  }

  void reference_item(ItemWriter& out, const std::vector<Symbol>& symbols, std::uint32_t index, std::string_view self) {
    text.clear();
    append_reference(text, symbols, index, self);
    out.text(text);
  }

  void section(ItemWriter& out, std::string_view label, std::size_t index, std::string_view self, bool with_relocations,
               bool merc) {
    const Section& section = elf.sections()[index];
    out.text("sec");
    out.text(label);
    out.integer(section.size);
    out.integer(section.align);
    out.bytes(spend(elf.bytes(section)));
    if (!with_relocations) return;
    const std::vector<Symbol>& symbols = merc ? merc_symbols : elf.symbols();
    collect(merc ? merc_relocations : relocations, index, symbols, self);
    for (const Relocation& relocation : found) {
      out.text("rel");
      out.integer(relocation.offset);
      out.integer(relocation.type);
      reference_item(out, symbols, relocation.symbol, self);
      out.integer(static_cast<std::uint64_t>(relocation.addend));
      out.integer(relocation.entry_size);
    }
  }

  // Attributes in their order, values that are symbols by name.
  void attributes(ItemWriter& out, std::string_view tag, const std::vector<Symbol>& symbols, std::string_view self) {
    encoded.clear();
    encoded_items.clear();
    std::string& items = encoded_items;
    for (const Attribute& attribute : list) {
      const std::size_t begin = items.size();
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
          if (at / 4 < names && word.size() == 4) {
            text.clear();
            append_reference(text, symbols, load<std::uint32_t>(word, 0), self);
            append_text(items, text);
          } else {
            append_bytes(items, word);
          }
        }
      }
      encoded.push_back({attribute.id, attribute.format, begin, items.size() - begin});
    }
    const auto items_of = [&](const Encoded& one) { return std::string_view(items).substr(one.begin, one.size); };
    std::sort(encoded.begin(), encoded.end(), [&](const Encoded& a, const Encoded& b) {
      if (std::tie(a.id, a.format) != std::tie(b.id, b.format))
        return std::tie(a.id, a.format) < std::tie(b.id, b.format);
      return items_of(a) < items_of(b);
    });
    for (const Encoded& one : encoded) {
      out.text(tag);
      out.integer(one.id);
      out.integer(one.format);
      out.encoded(items_of(one));
    }
  }

  // Attributes of a section into `list`.
  void read_list(std::uint32_t index, Module& module) {
    list.clear();
    if (index >= elf.sections().size()) return;
    const Section& section = elf.sections()[index];
    if (!read_attributes(elf.bytes(section), list)) module.errors.push_back(std::string(section.name) + " truncated");
  }

  void function(std::uint32_t number, const Symbol& symbol, HashBatch& batch, Module& module);
  void module_data(HashBatch& batch);
  void index_sections(Module& module);
};

void CubinPlan::State::index_sections(Module& module) {
  const auto& sections = elf.sections();
  section_names.reserve(sections.size());
  std::uint32_t info = kNoPart;
  for (std::uint32_t i = 0; i < sections.size(); ++i) {
    const Section& section = sections[i];
    section_names.push_back(canonical.get(section.name));
    if (section.type == kTypeRela || section.type == kTypeRel) relocations.emplace_back(section.info, i);
    if (section.type == kTypeMercRela) merc_relocations.emplace_back(section.info, i);
    if (section.type == kTypeMercSymtab && merc_symbols.empty())
      if (std::string error = elf.read_symbols(i, limits, merc_symbols); !error.empty())
        module.errors.push_back(".nv.merc.symtab: " + error);
    if (!section.in_file && section.size != 0 && !is_nobits(section) && module.errors.size() < 16)
      module.errors.push_back("section " + std::to_string(i) + " past end");
    if (section.name == ".nv.info" && info == kNoPart) info = i;
    if (const PartName name = part_name(section.name); name.part != kPartCount) {
      const auto [it, fresh] = parts.try_emplace(name.kernel);
      if (fresh) it->second.fill(kNoPart);
      if (it->second[name.part] == kNoPart) it->second[name.part] = i;
    }
  }
  const auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(relocations.begin(), relocations.end(), before);
  std::stable_sort(merc_relocations.begin(), merc_relocations.end(), before);
  read_list(info, module);
  for (const Attribute& attribute : list)
    if (attribute.format == 4 && attribute.value.size() >= 4)
      module_attributes.emplace_back(load<std::uint32_t>(attribute.value, 0), attribute);
  std::stable_sort(module_attributes.begin(), module_attributes.end(), before);
}

void CubinPlan::State::function(std::uint32_t number, const Symbol& symbol, HashBatch& batch, Module& module) {
  const std::string_view self = canonical.get(symbol.name);
  const Section& text = elf.sections()[symbol.section];
  Kernel kernel;
  kernel.name = symbol.name;
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
  section(out, ".text.@", symbol.section, self, true, false);
  Parts own;
  own.fill(kNoPart);
  if (const auto it = parts.find(symbol.name); it != parts.end()) own = it->second;
  for (unsigned bank = 0; bank < kConstantBanks; ++bank)
    if (own[bank] != kNoPart) section(out, ".nv.constant" + std::to_string(bank) + ".@", own[bank], self, true, false);
  for (const unsigned part : {kShared, kLocal}) {
    if (own[part] == kNoPart || elf.sections()[own[part]].size == 0) continue;
    if (part == kShared) kernel.shared_bytes = elf.sections()[own[part]].size;
    section(out, part == kShared ? ".nv.shared.@" : ".nv.local.@", own[part], self, false, false);
  }
  if (const std::uint32_t index = own[kCapmerc]; index != kNoPart) {
    const Bytes bytes = elf.bytes(elf.sections()[index]);
    out.text("capmerc");
    out.integer(elf.sections()[index].size);
    // The first word is the index of .text, which moves with debug sections.
    out.bytes(spend(bytes.size() > 4 ? bytes.subspan(4) : Bytes()));
    collect(merc_relocations, index, merc_symbols, self);
    for (const Relocation& relocation : found) {
      out.text("mrel");
      out.integer(relocation.offset);
      out.integer(relocation.type);
      reference_item(out, merc_symbols, relocation.symbol, self);
      out.integer(static_cast<std::uint64_t>(relocation.addend));
    }
  }
  if (own[kMercOptimizer] != kNoPart) section(out, ".nv.merc.optimizer.@", own[kMercOptimizer], self, true, true);

  read_list(own[kMercInfo], module);
  std::erase_if(list, [](const Attribute& a) { return a.id == attr::kCudaApiVersion || a.id == attr::kMercOptions; });
  attributes(out, "mattr", merc_symbols, self);

  read_list(own[kInfo], module);
  std::erase_if(list, [](const Attribute& a) { return a.id == attr::kCudaApiVersion; });
  for (const Attribute& attribute : list)
    if (attribute.id == attr::kBarriers) kernel.barriers = attribute.value[0];
  for (auto it = std::lower_bound(module_attributes.begin(), module_attributes.end(), number,
                                  [](const auto&a, std::uint32_t wanted) { return a.first < wanted; });
       it != module_attributes.end() && it->first == number; ++it) {
    const Attribute& attribute = it->second;
    if (attribute.id == attr::kRegisterCount && attribute.value.size() >= 8)
      kernel.registers = load<std::uint32_t>(attribute.value, 4);
    if (attribute.id == attr::kRegisterCount || attribute.id == attr::kFrameSize ||
        attribute.id == attr::kMinStackSize || attribute.id == attr::kMaxStackSize)
      list.push_back(attribute);
  }
  attributes(out, "attr", elf.symbols(), self);

  plan.t = batch.begin();
  batch.add(spend(elf.bytes(text)));
  plan.canonical = self;
  planned.push_back(plan);
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
      section(out, section_names[i], i, {}, true, false);
  }
  std::vector<std::tuple<std::string_view, std::uint64_t, std::string_view, std::uint64_t>> objects;
  for (const Symbol& symbol : elf.symbols()) {
    if (symbol.type != kSymObject || symbol.section == 0) continue;
    objects.emplace_back(symbol.section < sections.size() ? section_names[symbol.section] : "", symbol.value,
                         canonical.get(symbol.name), symbol.size);
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
    std::string& function = functions.emplace_back(state.planned[i].canonical);
    function += '\0';
    function += to_hex(kernel.k);
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
      calls.push_back(state.reference(load<std::uint32_t>(bytes, at)) + ">" +
                      (callee < 0 ? std::to_string(callee) : state.reference(static_cast<std::uint32_t>(callee))));
    }
    std::sort(calls.begin(), calls.end());
    for (const std::string& call : calls) append_text(items, call);
  }
  module.m = sha256(as_bytes(items));
}

}  // namespace gpuwatch::identify
