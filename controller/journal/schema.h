// The tables of a journal database, and the numbers that say what it is. docs/journal.md has the
// reasons.
#pragma once

#include <optional>
#include <string>

#include "common/base/error.h"
#include "controller/journal/database.h"

namespace muster::journal {

// Its journal id. Nothing: an empty file, or one whose making was cut short. DataLoss: it is not a
// journal, or cannot be read. Unsupported: a newer muster's.
Result<std::optional<std::string>> journal_id_of(Database& database);
// Makes the tables, all or nothing.
Result<void> make_tables(Database& database, const std::string& journal_id);
// 32 hexadecimal digits from the system's random source.
Result<std::string> new_journal_id();

}  // namespace muster::journal
