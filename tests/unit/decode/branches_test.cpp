// SPDX-License-Identifier: Apache-2.0
// Every struct that a driver branch changed reads right on both sides of the
// change: data/struct-fields.tsv says what the driver's headers have at which
// offset, and each branch's tables must find exactly that in the bytes.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "decode/decoder.h"
#include "decode/describe.h"
#include "decode/layouts.h"
#include "unit/decode/calls.h"

namespace gpuwatch::decode {
namespace {

using test::Argument;
using test::Blob;

constexpr std::array<std::uint32_t, 6> kBranches = {535, 550, 570, 580, 590, 595};

model::DriverVersion version_of(std::uint32_t branch) {
  return {branch, 200, 1};
}

std::vector<std::vector<std::string>> rows_of(const std::string& name) {
  std::ifstream in(std::string(DECODE_DATA) + "/" + name);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    rows.emplace_back();
    for (std::string word; std::getline(words, word, '\t');) rows.back().push_back(word);
  }
  return rows;
}

struct Fact {
  std::uint32_t offset;
  std::uint32_t bytes;
  std::string field;
};

struct Facts {
  std::uint32_t bytes = 0;
  std::vector<Fact> fields;
};

std::map<std::string, std::map<std::uint32_t, Facts>> all_facts() {
  std::map<std::string, std::map<std::uint32_t, Facts>> facts;
  for (const auto& row : rows_of("struct-fields.tsv")) {
    std::istringstream branches(row[1]);
    for (std::string branch; std::getline(branches, branch, ',');) {
      Facts& of = facts[row[0]][static_cast<std::uint32_t>(std::stoul(branch))];
      of.bytes = static_cast<std::uint32_t>(std::stoul(row[2]));
      of.fields.push_back(
          {static_cast<std::uint32_t>(std::stoul(row[3])), static_cast<std::uint32_t>(std::stoul(row[4])), row[5]});
    }
  }
  return facts;
}

// A call that carries the struct: as argument of an escape or of a UVM
// command, or as parameters of a class or of a control.
std::optional<Blob> call_with(std::uint16_t id, unsigned branch, const std::string& bytes) {
  const auto has = [&](const tables::Entry& entry) {
    return ((entry.branches >> branch) & 1U) != 0 && entry.struct_id == id;
  };
  const std::vector<test::CaptureSpec> argument{{GPUWATCH_CAP_ARG_IN, bytes}, {GPUWATCH_CAP_ARG_OUT, bytes}};
  for (const auto& entry : tables::all(tables::escapes))
    if (has(entry))
      return test::ioctl_record(test::head_on(GPUWATCH_NODE_CTL), test::escape_request(entry.key, bytes.size()), 0,
                                argument);
  for (const auto& entry : tables::all(tables::uvm))
    if (has(entry)) return test::ioctl_record(test::head_on(GPUWATCH_NODE_UVM), entry.key, 0, argument);
  const std::vector<test::CaptureSpec> nested{{GPUWATCH_CAP_NESTED0_IN, bytes}, {GPUWATCH_CAP_NESTED0_OUT, bytes}};
  for (const auto& entry : tables::all(tables::classes))
    if (has(entry)) {
      const Argument alloc = Argument(48).u32(12, entry.key).u64(16, 0x7000);
      return test::escape_call(test::head_on(GPUWATCH_NODE_CTL), 43, alloc, alloc, nested);
    }
  for (const auto& entry : tables::all(tables::controls))
    if (has(entry)) {
      const Argument control =
          Argument(32).u32(8, entry.key).u64(16, 0x7000).u32(24, static_cast<std::uint32_t>(bytes.size()));
      return test::escape_call(test::head_on(GPUWATCH_NODE_CTL), 42, control, control, nested);
    }
  return std::nullopt;
}

// Different at every place, and never what a boolean has a word for.
std::string pattern(std::uint32_t bytes) {
  std::string out(bytes, '\0');
  for (std::uint32_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(2 + (i * 37 + i / 251) % 125);
  return out;
}

std::uint64_t number_at(const std::string& bytes, std::uint32_t offset, std::uint32_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, width);
  return value;
}

void expect_field(const model::DescribedField& field, const std::string& bytes, const Fact& fact) {
  SCOPED_TRACE(fact.field + " at " + std::to_string(fact.offset));
  EXPECT_EQ(field.offset, fact.offset);
  const auto& items = field.value().items;
  const std::uint32_t width = fact.bytes / field.elements;
  if (field.type == "text") {
    EXPECT_EQ(items.front(), bytes.substr(fact.offset, fact.bytes));
  } else if (field.type == "raw") {
    EXPECT_EQ(items.front(), hex_bytes(reinterpret_cast<const std::byte*>(bytes.data()) + fact.offset, fact.bytes));
  } else if (field.type == "uuid") {
    std::string digits = items.front();
    std::erase(digits, '-');
    EXPECT_EQ(digits, hex_bytes(reinterpret_cast<const std::byte*>(bytes.data()) + fact.offset, 16));
  } else {
    ASSERT_EQ(items.size(), field.elements);
    for (std::uint32_t i = 0; i < field.elements; ++i)
      EXPECT_EQ(std::strtoull(items[i].c_str(), nullptr, 0), number_at(bytes, fact.offset + i * width, width));
  }
}

const model::DescribedField* find(const model::DescribedPart& part, const std::string& name) {
  for (const auto& field : part.fields)
    if (field.name == name) return &field;
  return nullptr;
}

// True where the branch's layout was there to be checked.
bool check_struct(const std::string& name, std::uint32_t branch, const Facts& facts, std::size_t& fields) {
  SCOPED_TRACE(name + " of branch " + std::to_string(branch));
  const unsigned index = tables::choose_branch(version_of(branch)).index;
  const std::uint16_t id = tables::struct_by_name(name);
  const auto layout = tables::layout_of(id, index);
  if (id == tables::kNoStruct || layout.empty()) return false;
  EXPECT_EQ(tables::struct_info(id, index)->bytes, facts.bytes);
  const Decoder decoder(version_of(branch));
  const Describer describer(version_of(branch));
  for (const Fact& fact : facts.fields) {
    const auto spec = std::find_if(layout.begin(), layout.end(), [&](const auto& f) { return f.name == fact.field; });
    if (spec == layout.end()) {
      // Only the members of a union that is kept as bytes, and of structs in an array.
      EXPECT_EQ(name.substr(0, 7), "NV_LOCK") << fact.field;
      continue;
    }
    if (spec->type == tables::FieldType::kStruct) continue;
    std::string bytes = pattern(facts.bytes);
    if (spec->when < layout.size()) {
      const auto& decides = layout[spec->when];
      std::memcpy(bytes.data() + decides.offset, &spec->when_value, decides.bytes);
    }
    const auto blob = call_with(id, index, bytes);
    if (!blob) {
      ADD_FAILURE() << "no call carries it";
      return false;
    }
    const model::Call call = decoder.decode(test::parsed(*blob));
    const model::Description description = describer.describe(call);
    const model::DescribedField* field = nullptr;
    for (const auto& part : description.parts)
      if (part.struct_name == name) {
        field = find(part, fact.field);
        EXPECT_TRUE(part.layout_branch.empty());
      }
    if (field == nullptr) {
      ADD_FAILURE() << fact.field << " was not told";
      continue;
    }
    expect_field(*field, bytes, fact);
    ++fields;
  }
  return true;
}

TEST(Branches, EveryChangedStructReadsRightOnBothSides) {
  const auto facts = all_facts();
  std::set<std::string> both_sides;
  std::size_t fields = 0;
  for (const auto& [name, of_branch] : facts) {
    std::set<std::uint32_t> checked;
    for (const auto& [branch, expected] : of_branch)
      if (check_struct(name, branch, expected, fields)) checked.insert(branch);
    if (checked.size() == of_branch.size())
      both_sides.insert(name);
    else
      std::printf("%s: no command, class or control of the tables has it\n", name.c_str());
  }
  std::printf("%zu structs in all their branches, %zu fields\n", both_sides.size(), fields);
  EXPECT_GE(both_sides.size(), 31U);
  for (const char* name :
       {"NVOS46_PARAMETERS", "NVOS47_PARAMETERS", "NVOS32_PARAMETERS", "NV_CHANNEL_ALLOC_PARAMS", "UVM_FREE_PARAMS",
        "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS", "UVM_ALLOC_SEMAPHORE_POOL_PARAMS", "NV_MEMORY_ALLOCATION_PARAMS",
        "NV_VASPACE_ALLOCATION_PARAMETERS", "nv_ioctl_export_to_dma_buf_fd_t", "UVM_UNREGISTER_CHANNEL_PARAMS",
        "NV503B_ALLOC_PARAMETERS", "NV00FD_ALLOCATION_PARAMETERS"})
    EXPECT_TRUE(both_sides.contains(name)) << name;
}

TEST(Branches, SizesOfEveryChangedStruct) {
  const auto rows = rows_of("struct-sizes.tsv");
  EXPECT_GE(rows.size(), 200U);
  for (const auto& row : rows) {
    const std::uint16_t id = tables::struct_by_name(row[0]);
    ASSERT_NE(id, tables::kNoStruct) << row[0];
    for (std::size_t i = 0; i < kBranches.size(); ++i) {
      const unsigned index = tables::choose_branch(version_of(kBranches[i])).index;
      const auto* info = tables::struct_info(id, index);
      EXPECT_EQ(std::to_string(info == nullptr ? 0 : info->bytes), row[1 + i]) << row[0] << " of " << kBranches[i];
    }
  }
}

// What the roles of the hot path say is what the layouts say.
TEST(Branches, RolesLieOnFields) {
  for (unsigned branch = 0; branch < tables::branch_count(); ++branch)
    for (std::uint16_t id = 0; id < tables::struct_count; ++id) {
      const auto* info = tables::struct_info(id, branch);
      const auto layout = tables::layout_of(id, branch);
      if (info == nullptr || layout.empty()) continue;
      for (const auto& spec : tables::fields_of(*info)) {
        const bool found = std::any_of(layout.begin(), layout.end(), [&](const auto& field) {
          const std::uint32_t width = field.bytes / field.count;
          return (spec.offset - field.offset) % width == 0 && spec.offset >= field.offset &&
                 spec.offset < field.offset + field.bytes && spec.width == width;
        });
        EXPECT_TRUE(found) << tables::struct_name(id) << " at " << spec.offset << " of " << tables::branch(branch).name;
      }
    }
}

struct Choice {
  model::DriverVersion version;
  const char* branch;
  bool inherited;
};

TEST(Branches, NearestAncestorIsMarked) {
  const Choice choices[] = {{{535, 104, 5}, "535", false},
                            {{535, 309, 1}, "535", false},
                            {{545, 23, 6}, "535", true},
                            {{550, 40, 7}, "550", true},
                            {{550, 54, 14}, "550", false},
                            {{550, 90, 12}, "550", false},
                            {{555, 42, 2}, "550", true},
                            {{565, 57, 1}, "550", true},
                            {{570, 86, 15}, "570", false},
                            {{570, 195, 3}, "570", false},
                            {{575, 51, 2}, "570", true},
                            {{580, 65, 6}, "580", false},
                            {{580, 159, 4}, "580", false},
                            {{590, 44, 1}, "590", false},
                            {{595, 71, 5}, "595", false},
                            {{610, 43, 2}, "595", true},
                            {{620, 6, 0}, "595", true},
                            {{470, 1, 1}, "535", true},
                            {{}, "595", true}};
  for (const Choice& choice : choices) {
    const Decoder decoder(choice.version);
    EXPECT_EQ(decoder.branch(), choice.branch) << choice.version.major << "." << choice.version.minor;
    EXPECT_EQ(decoder.inherited(), choice.inherited) << choice.version.major << "." << choice.version.minor;
  }
}

}  // namespace
}  // namespace gpuwatch::decode
