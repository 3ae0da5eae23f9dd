// SPDX-License-Identifier: Apache-2.0
#include "judge/baseline.h"

#include <algorithm>
#include <chrono>

#include "judge/schema.h"
#include "judge/sqlite.h"

namespace gpuwatch::judge {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using model::Digest;
using model::KernelPrint;
using model::ModulePrint;

namespace {

constexpr int kPlacesMax = 100;

#define MODULE_COLUMNS "id, r, m, d, p, kind, origin, sm, suffix, bytes"
#define KERNEL_COLUMNS "n.text, k.k, k.t, k.entry, k.code_bytes, k.shared_bytes, k.registers, k.barriers"

}  // namespace

struct Baseline::State {
  std::unique_ptr<Database> database;
  BaselineInfo info;
  Statement by_r, by_m, by_p, by_id, kernels, sources, has_k, place_k, by_name, names;
  Statement all;
  // Of a file that has the tables for it.
  Statement residents, resident_form, resident_name;
  bool has_residents = false;

  Error damaged(const std::string& what) const {
    return Error(Code::kBadInput, database->path() + ": " + what + " has a value that cannot be; the file is damaged");
  }

  Status prepare() {
    auto version = schema_version(*database);
    if (!version) return std::move(version.error());
    has_residents = *version > kOldestSchema;
    // The K of what a driver made of PTX is known as any other.
    const std::string k_place = "SELECT " KERNEL_COLUMNS
                                ", m.id, m.origin, m.sm FROM kernel k JOIN name n ON n.id = k.name JOIN module m ON "
                                "m.id = k.module WHERE k.k = ?1";
    const std::string k_of_residents =
        " UNION ALL SELECT n.text, x.k, x.t, 1, x.bytes, 0, 0, 0, m.id, m.origin, x.sm FROM resident x JOIN name n ON "
        "n.id = x.name JOIN module m ON m.id = x.module WHERE x.k = ?1 AND x.t IS NOT NULL";
    const std::pair<Statement*, std::string> wanted[] = {
        {&by_r, "SELECT " MODULE_COLUMNS " FROM module WHERE r = ?"},
        {&by_m, "SELECT " MODULE_COLUMNS " FROM module WHERE m = ? ORDER BY r LIMIT 1"},
        {&by_p, "SELECT " MODULE_COLUMNS " FROM module WHERE p = ? ORDER BY r LIMIT 1"},
        {&by_id, "SELECT " MODULE_COLUMNS " FROM module WHERE id = ?"},
        {&all, "SELECT " MODULE_COLUMNS " FROM module ORDER BY r"},
        {&kernels, "SELECT " KERNEL_COLUMNS " FROM kernel k JOIN name n ON n.id = k.name WHERE k.module = ?"},
        {&sources,
         "SELECT f.path, f.manager, f.package, f.version, f.label, f.added, s.container_offset, s.entry FROM source s "
         "JOIN file f ON f.id = s.file WHERE s.module = ?"},
        {&has_k, std::string("SELECT 1 FROM kernel WHERE k = ?1") +
                     (has_residents ? " UNION ALL SELECT 1 FROM resident WHERE k = ?1" : "") + " LIMIT 1"},
        {&place_k, k_place + (has_residents ? k_of_residents : "") + " LIMIT 1"},
        {&by_name, "SELECT " KERNEL_COLUMNS
                   ", m.id, m.origin, m.sm FROM kernel k JOIN name n ON n.id = k.name JOIN module m ON m.id = k.module "
                   "WHERE n.text = ? AND m.sm = ? ORDER BY k.id LIMIT ?"},
        {&names,
         "SELECT DISTINCT n.text FROM kernel k JOIN name n ON n.id = k.name WHERE k.module = ? AND k.entry = 1"},
    };
    for (const auto& [statement, sql] : wanted) {
      auto prepared = database->prepare(sql);
      if (!prepared) return std::move(prepared.error());
      *statement = std::move(*prepared);
    }
    if (!has_residents) return {};
    const std::pair<Statement*, const char*> more[] = {
        {&residents,
         "SELECT n.text, x.driver, x.sm, x.form, x.bytes, x.k, x.t FROM resident x JOIN name n ON n.id = x.name WHERE "
         "x.module = ?"},
        {&resident_form, "SELECT driver, form, module FROM resident WHERE form = ? AND sm = ? LIMIT ?"},
        {&resident_name,
         "SELECT x.driver, x.form, x.module FROM resident x JOIN name n ON n.id = x.name WHERE n.text = ? AND x.sm = ? "
         "LIMIT ?"},
    };
    for (const auto& [statement, sql] : more) {
      auto prepared = database->prepare(sql);
      if (!prepared) return std::move(prepared.error());
      *statement = std::move(*prepared);
    }
    return {};
  }

  Result<std::vector<ResidentPlace>> resident_places(Statement& statement) const {
    std::vector<ResidentPlace> found;
    for (;;) {
      auto row = statement.step();
      if (!row) return std::move(row.error());
      if (!*row) return found;
      const auto form = statement.digest(1);
      if (!form) {
        statement.reset();
        return damaged("a resident function");
      }
      found.push_back({statement.text(0), *form, statement.integer(2)});
    }
  }

  Status read_residents(std::int64_t module, std::vector<Resident>& out) {
    if (!has_residents) return {};
    residents.bind(1, module);
    for (;;) {
      auto more = residents.step();
      if (!more) return std::move(more.error());
      if (!*more) break;
      const auto form = residents.digest(3);
      if (!form) {
        residents.reset();
        return damaged("a resident function");
      }
      out.push_back({residents.text(0), residents.text(1), static_cast<std::uint32_t>(residents.integer(2)), *form,
                     static_cast<std::uint64_t>(residents.integer(4)), residents.digest(5), residents.digest(6)});
    }
    std::sort(out.begin(), out.end(), [](const Resident& a, const Resident& b) { return a.key() < b.key(); });
    return {};
  }

  Result<std::optional<std::string>> meta(std::string_view key) {
    auto statement = database->prepare("SELECT value FROM meta WHERE key = ?");
    if (!statement) return std::move(statement.error());
    auto row = statement->bind(1, key).step();
    if (!row) return std::move(row.error());
    if (!*row) return std::optional<std::string>();
    return std::optional(statement->text(0));
  }

  Status set_meta(std::string_view key, std::string_view value) {
    auto statement = database->prepare("INSERT OR REPLACE INTO meta(key, value) VALUES(?, ?)");
    if (!statement) return std::move(statement.error());
    return statement->bind(1, key).bind(2, value).run();
  }

  Status read_info() {
    auto stance = meta("stance"), label = meta("label"), created = meta("created");
    if (!stance) return std::move(stance.error());
    if (!label) return std::move(label.error());
    if (!created) return std::move(created.error());
    if (*stance != "known" && *stance != "denied") return damaged("the stance");
    info.stance = *stance == "denied" ? Stance::kDenied : Stance::kKnown;
    info.label = label->value_or("");
    info.created_unix = std::strtoll(created->value_or("0").c_str(), nullptr, 10);
    return {};
  }

  // Reads the kernel columns of the statement's row.
  static std::optional<KernelPrint> kernel_of(const Statement& row) {
    KernelPrint kernel;
    const auto k = row.digest(1), t = row.digest(2);
    if (!k || !t) return std::nullopt;
    kernel.name = row.text(0);
    kernel.k = *k;
    kernel.t = *t;
    kernel.entry = row.integer(3) != 0;
    kernel.code_bytes = static_cast<std::uint64_t>(row.integer(4));
    kernel.shared_bytes = static_cast<std::uint64_t>(row.integer(5));
    kernel.registers = static_cast<std::uint32_t>(row.integer(6));
    kernel.barriers = static_cast<std::uint32_t>(row.integer(7));
    return kernel;
  }

  Result<Entry> entry_of(const Statement& row) {
    Entry entry;
    ModulePrint& module = entry.module;
    const auto r = row.digest(1);
    const std::int64_t kind = row.integer(5), origin = row.integer(6);
    if (!r || kind < 0 || kind >= static_cast<std::int64_t>(model::kCodeKinds) || origin < 0 || origin > 1)
      return damaged("a module");
    module.r = *r;
    module.m = row.digest(2);
    module.d = row.digest(3);
    module.p = row.digest(4);
    module.kind = static_cast<model::CodeKind>(kind);
    module.origin = static_cast<model::CodeOrigin>(origin);
    module.sm = static_cast<std::uint32_t>(row.integer(7));
    const std::string suffix = row.text(8);
    module.sm_suffix = suffix.empty() ? '\0' : suffix[0];
    module.bytes = static_cast<std::uint64_t>(row.integer(9));
    const std::int64_t id = row.integer(0);
    kernels.bind(1, id);
    for (;;) {
      auto more = kernels.step();
      if (!more) return std::move(more.error());
      if (!*more) break;
      auto kernel = kernel_of(kernels);
      if (!kernel) {
        kernels.reset();
        return damaged("a kernel");
      }
      module.kernels.push_back(std::move(*kernel));
    }
    std::sort(module.kernels.begin(), module.kernels.end(), [](const KernelPrint& a, const KernelPrint& b) {
      return std::tie(a.name, a.k, a.t) < std::tie(b.name, b.k, b.t);
    });
    sources.bind(1, id);
    for (;;) {
      auto more = sources.step();
      if (!more) return std::move(more.error());
      if (!*more) break;
      Source source{sources.text(0),
                    sources.text(1),
                    sources.text(2),
                    sources.text(3),
                    sources.text(4),
                    sources.integer(5),
                    static_cast<std::uint64_t>(sources.integer(6)),
                    static_cast<std::uint32_t>(sources.integer(7))};
      entry.sources.push_back(std::move(source));
    }
    std::sort(entry.sources.begin(), entry.sources.end(),
              [](const Source& a, const Source& b) { return a.key() < b.key(); });
    if (Status status = read_residents(id, entry.residents); !status.ok()) return std::move(status.error());
    return entry;
  }

  // The entry that a module statement finds; it is reset afterwards.
  Result<std::optional<Entry>> find(Statement& statement) {
    auto row = statement.step();
    if (!row) return std::move(row.error());
    if (!*row) return std::optional<Entry>();
    auto entry = entry_of(statement);
    statement.reset();
    if (!entry) return std::move(entry.error());
    return std::optional(std::move(*entry));
  }

  Result<std::vector<KernelPlace>> places(Statement& statement) {
    std::vector<KernelPlace> found;
    for (;;) {
      auto row = statement.step();
      if (!row) return std::move(row.error());
      if (!*row) return found;
      auto kernel = kernel_of(statement);
      if (!kernel) {
        statement.reset();
        return damaged("a kernel");
      }
      found.push_back({statement.integer(8),
                       statement.integer(9) == 0 ? model::CodeOrigin::kFile : model::CodeOrigin::kMemory,
                       static_cast<std::uint32_t>(statement.integer(10)), std::move(*kernel)});
    }
  }
};

Baseline::Baseline(std::unique_ptr<State> state) : state_(std::move(state)) {}
Baseline::Baseline(Baseline&&) noexcept = default;
Baseline& Baseline::operator=(Baseline&&) noexcept = default;
Baseline::~Baseline() = default;

Result<Baseline> Baseline::open(const std::string& path, Access access) {
  auto state = std::make_unique<State>();
  auto database = Database::open(path, access == Access::kRead ? Database::Mode::kRead : Database::Mode::kWrite);
  if (!database) return std::move(database.error());
  state->database = std::move(*database);
  if (Status status = check_schema(*state->database); !status.ok()) return std::move(status.error());
  if (access == Access::kWrite)
    if (Status status = upgrade_schema(*state->database); !status.ok()) return std::move(status.error());
  if (Status status = state->read_info(); !status.ok()) return std::move(status.error());
  if (Status status = state->prepare(); !status.ok()) return std::move(status.error());
  return Baseline(std::move(state));
}

Result<Baseline> Baseline::open_or_make(const std::string& path, const BaselineInfo& info) {
  {
    auto database = Database::open(path, Database::Mode::kCreate);
    if (!database) return std::move(database.error());
    auto count = (*database)->prepare("SELECT count(*) FROM sqlite_schema");
    if (!count) return std::move(count.error());
    auto row = count->step();
    if (!row) return std::move(row.error());
    const bool fresh = count->integer(0) == 0;
    count->reset();
    if (fresh) {
      const MetaRow rows[] = {{"stance", std::string(stance_name(info.stance))},
                              {"label", info.label},
                              {"created", std::to_string(info.created_unix)}};
      if (Status status = make_schema(**database, rows); !status.ok()) return std::move(status.error());
    }
  }
  auto baseline = open(path, Access::kWrite);
  if (baseline && baseline->info().stance != info.stance)
    return Error(Code::kBadInput, path + ": its modules are " + std::string(stance_name(baseline->info().stance)) +
                                      "; keep " + std::string(stance_name(info.stance)) +
                                      " ones in a file of their own");
  return baseline;
}

const BaselineInfo& Baseline::info() const {
  return state_->info;
}
const std::string& Baseline::path() const {
  return state_->database->path();
}

Result<BaselineCounts> Baseline::counts() {
  BaselineCounts counts;
  const std::pair<const char*, std::uint64_t*> wanted[] = {{"SELECT count(*) FROM module", &counts.modules},
                                                           {"SELECT count(*) FROM kernel", &counts.kernels},
                                                           {"SELECT count(*) FROM name", &counts.names},
                                                           {"SELECT count(*) FROM file", &counts.files},
                                                           {"SELECT count(*) FROM resident", &counts.residents}};
  for (const auto& [sql, out] : wanted) {
    if (out == &counts.residents && !state_->has_residents) continue;
    auto statement = state_->database->prepare(sql);
    if (!statement) return std::move(statement.error());
    auto row = statement->step();
    if (!row) return std::move(row.error());
    *out = static_cast<std::uint64_t>(statement->integer(0));
  }
  return counts;
}

Status Baseline::for_each(const std::function<Status(const Entry&)>& visit) {
  for (;;) {
    auto row = state_->all.step();
    if (!row) return std::move(row.error());
    if (!*row) return {};
    auto entry = state_->entry_of(state_->all);
    Status status = entry ? visit(*entry) : Status(std::move(entry.error()));
    if (!status.ok()) {
      state_->all.reset();
      return status;
    }
  }
}

Result<std::optional<StoredSignature>> Baseline::signature() {
  auto key = state_->meta("public_key"), value = state_->meta("signature");
  if (!key) return std::move(key.error());
  if (!value) return std::move(value.error());
  if (!*key || !*value) return std::optional<StoredSignature>();
  return std::optional(StoredSignature{**key, **value});
}

Status Baseline::set_signature(const StoredSignature& signature) {
  auto transaction = Transaction::begin(*state_->database);
  if (!transaction) return std::move(transaction.error());
  if (Status status = state_->set_meta("public_key", signature.public_key); !status.ok()) return status;
  if (Status status = state_->set_meta("signature", signature.value); !status.ok()) return status;
  return transaction->commit();
}

Status Baseline::check_pages() {
  auto statement = state_->database->prepare("PRAGMA integrity_check(1)");
  if (!statement) return std::move(statement.error());
  auto row = statement->step();
  if (!row) return std::move(row.error());
  const std::string answer = statement->text(0);
  if (answer != "ok")
    return Error(Code::kBadInput,
                 path() + ": the file is damaged (" + answer + "); restore it from a copy, or import an export");
  return {};
}

Result<std::optional<Entry>> Baseline::by_r(const Digest& r) {
  return state_->find(state_->by_r.bind(1, r));
}
Result<std::optional<Entry>> Baseline::by_m(const Digest& m) {
  return state_->find(state_->by_m.bind(1, m));
}
Result<std::optional<Entry>> Baseline::by_p(const Digest& p) {
  return state_->find(state_->by_p.bind(1, p));
}
Result<std::optional<Entry>> Baseline::by_id(std::int64_t module) {
  return state_->find(state_->by_id.bind(1, module));
}

Result<bool> Baseline::has_k(const Digest& k) {
  auto row = state_->has_k.bind(1, k).step();
  state_->has_k.reset();
  return row;
}

Result<std::optional<KernelPlace>> Baseline::place_of_k(const Digest& k) {
  auto found = state_->places(state_->place_k.bind(1, k));
  if (!found) return std::move(found.error());
  if (found->empty()) return std::optional<KernelPlace>();
  return std::optional(std::move(found->front()));
}

Result<std::vector<KernelPlace>> Baseline::by_name(std::string_view name, std::uint32_t sm) {
  return state_->places(
      state_->by_name.bind(1, name).bind(2, static_cast<std::int64_t>(sm)).bind(3, std::int64_t{kPlacesMax}));
}

Result<std::vector<ResidentPlace>> Baseline::residents_of_form(const Digest& form, std::uint32_t sm) {
  if (!state_->has_residents) return std::vector<ResidentPlace>();
  state_->resident_form.bind(1, form).bind(2, static_cast<std::int64_t>(sm)).bind(3, std::int64_t{kPlacesMax});
  return state_->resident_places(state_->resident_form);
}

Result<std::vector<ResidentPlace>> Baseline::residents_of_name(std::string_view name, std::uint32_t sm) {
  if (!state_->has_residents) return std::vector<ResidentPlace>();
  state_->resident_name.bind(1, name).bind(2, static_cast<std::int64_t>(sm)).bind(3, std::int64_t{kPlacesMax});
  return state_->resident_places(state_->resident_name);
}

Result<std::vector<std::string>> Baseline::names_of(std::int64_t module) {
  std::vector<std::string> names;
  state_->names.bind(1, module);
  for (;;) {
    auto row = state_->names.step();
    if (!row) return std::move(row.error());
    if (!*row) break;
    names.push_back(state_->names.text(0));
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

// The statements of one add(), prepared once for many entries.
class Adder {
 public:
  explicit Adder(Database& database) : database_(database) {}

  Status prepare() {
    const std::pair<Statement*, const char*> wanted[] = {
        {&find_, "SELECT id FROM module WHERE r = ?"},
        {&module_, "INSERT INTO module(r, m, d, p, kind, origin, sm, suffix, bytes) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)"},
        {&find_name_, "SELECT id FROM name WHERE text = ?"},
        {&name_, "INSERT INTO name(text) VALUES(?)"},
        {&kernel_,
         "INSERT INTO kernel(module, name, k, t, entry, code_bytes, shared_bytes, registers, barriers) VALUES(?, ?, ?, "
         "?, ?, ?, ?, ?, ?)"},
        {&find_file_,
         "SELECT id FROM file WHERE path = ? AND manager = ? AND package = ? AND version = ? AND label = ?"},
        {&file_, "INSERT INTO file(path, manager, package, version, label, added) VALUES(?, ?, ?, ?, ?, ?)"},
        {&source_, "INSERT OR IGNORE INTO source(module, file, container_offset, entry) VALUES(?, ?, ?, ?)"},
        {&resident_,
         "INSERT OR IGNORE INTO resident(module, name, driver, sm, form, bytes, k, t) VALUES(?, ?, ?, ?, ?, ?, ?, ?)"},
    };
    for (const auto& [statement, sql] : wanted) {
      auto prepared = database_.prepare(sql);
      if (!prepared) return std::move(prepared.error());
      *statement = std::move(*prepared);
    }
    return {};
  }

  // True where the module is new.
  Result<bool> add(const Entry& entry) {
    const ModulePrint& module = entry.module;
    auto id = id_of(find_.bind(1, module.r));
    if (!id) return std::move(id.error());
    const bool fresh = !*id;
    std::int64_t module_id = id->value_or(0);
    if (fresh) {
      module_.bind(1, module.r).bind(2, module.m).bind(3, module.d).bind(4, module.p);
      module_.bind(5, static_cast<std::int64_t>(module.kind)).bind(6, static_cast<std::int64_t>(module.origin));
      module_.bind(7, static_cast<std::int64_t>(module.sm));
      module_.bind(8, module.sm_suffix == 0 ? std::string_view() : std::string_view(&module.sm_suffix, 1));
      if (Status status = module_.bind(9, static_cast<std::int64_t>(module.bytes)).run(); !status.ok())
        return std::move(status.error());
      module_id = database_.last_row_id();
      for (const KernelPrint& kernel : module.kernels)
        if (Status status = add_kernel(module_id, kernel); !status.ok()) return std::move(status.error());
    }
    for (const Source& source : entry.sources)
      if (Status status = add_source(module_id, source); !status.ok()) return std::move(status.error());
    for (const Resident& resident : entry.residents)
      if (Status status = add_resident(module_id, resident); !status.ok()) return std::move(status.error());
    return fresh;
  }

 private:
  static Result<std::optional<std::int64_t>> id_of(Statement& statement) {
    auto row = statement.step();
    if (!row) return std::move(row.error());
    if (!*row) return std::optional<std::int64_t>();
    const std::int64_t id = statement.integer(0);
    statement.reset();
    return std::optional(id);
  }

  Result<std::int64_t> name_of(const std::string& text) {
    auto name = id_of(find_name_.bind(1, text));
    if (!name) return std::move(name.error());
    if (*name) return **name;
    if (Status status = name_.bind(1, text).run(); !status.ok()) return std::move(status.error());
    return database_.last_row_id();
  }

  Status add_resident(std::int64_t module, const Resident& resident) {
    auto name = name_of(resident.name);
    if (!name) return std::move(name.error());
    resident_.bind(1, module).bind(2, *name).bind(3, resident.driver).bind(4, static_cast<std::int64_t>(resident.sm));
    resident_.bind(5, resident.form).bind(6, static_cast<std::int64_t>(resident.bytes));
    return resident_.bind(7, resident.k).bind(8, resident.t).run();
  }

  Status add_kernel(std::int64_t module, const KernelPrint& kernel) {
    auto name = name_of(kernel.name);
    if (!name) return std::move(name.error());
    kernel_.bind(1, module).bind(2, *name).bind(3, kernel.k).bind(4, kernel.t);
    kernel_.bind(5, static_cast<std::int64_t>(kernel.entry)).bind(6, static_cast<std::int64_t>(kernel.code_bytes));
    kernel_.bind(7, static_cast<std::int64_t>(kernel.shared_bytes));
    return kernel_.bind(8, static_cast<std::int64_t>(kernel.registers))
        .bind(9, static_cast<std::int64_t>(kernel.barriers))
        .run();
  }

  Status add_source(std::int64_t module, const Source& source) {
    for (Statement* statement : {&find_file_, &file_})
      statement->bind(1, source.path)
          .bind(2, source.manager)
          .bind(3, source.package)
          .bind(4, source.version)
          .bind(5, source.label);
    auto file = id_of(find_file_);
    if (!file) return std::move(file.error());
    if (!*file) {
      if (Status status = file_.bind(6, source.added_unix).run(); !status.ok()) return status;
      *file = database_.last_row_id();
    }
    return source_.bind(1, module)
        .bind(2, **file)
        .bind(3, static_cast<std::int64_t>(source.container_offset))
        .bind(4, static_cast<std::int64_t>(source.entry))
        .run();
  }

  Database& database_;
  Statement find_, module_, find_name_, name_, kernel_, find_file_, file_, source_, resident_;
};

}  // namespace

Result<std::uint64_t> Baseline::add(std::span<const Entry> entries) {
  auto transaction = Transaction::begin(*state_->database);
  if (!transaction) return std::move(transaction.error());
  std::uint64_t added = 0;
  {
    Adder adder(*state_->database);
    if (Status status = adder.prepare(); !status.ok()) return std::move(status.error());
    for (const Entry& entry : entries) {
      auto fresh = adder.add(entry);
      if (!fresh) return std::move(fresh.error());
      added += *fresh ? 1 : 0;
    }
    if (!entries.empty())
      if (Status status = state_->database->execute("DELETE FROM meta WHERE key IN ('signature', 'public_key')");
          !status.ok())
        return std::move(status.error());
  }
  if (Status status = transaction->commit(); !status.ok()) return std::move(status.error());
  return added;
}

}  // namespace gpuwatch::judge
