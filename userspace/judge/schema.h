// SPDX-License-Identifier: Apache-2.0
// The tables of a baseline file, making them and recognising them. A file whose
// tables are not word for word ours is refused: what SQLite would run from it
// would be a stranger's.
#pragma once

#include <span>
#include <utility>

#include "base/result.h"
#include "judge/sqlite.h"

namespace gpuwatch::judge {

inline constexpr std::int64_t kSchemaVersion = 2;
// Has all but the tables of residents. Read as it is; writing makes it the newest.
inline constexpr std::int64_t kOldestSchema = 1;
inline constexpr std::int64_t kApplicationId = 0x47575342;  // "GWSB"

using MetaRow = std::pair<std::string_view, std::string>;

// All or nothing, with these rows of meta. Where tables are there already, as
// check_schema().
base::Status make_schema(Database& database, std::span<const MetaRow> rows);
base::Status check_schema(Database& database);
// Of a file that check_schema() found good.
base::Result<std::int64_t> schema_version(Database& database);
// To the newest, all or nothing; nothing to do for a file that is.
base::Status upgrade_schema(Database& database);

}  // namespace gpuwatch::judge
