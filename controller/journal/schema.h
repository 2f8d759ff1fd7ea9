// The tables of a journal database, and the numbers that identify it. SqliteJournal and salvage()
// call these functions. They run on the thread that uses the Database.
//
// docs/journal.md explains the reasons.
#pragma once

#include <optional>
#include <string>

#include "common/base/error.h"
#include "controller/journal/database.h"

namespace muster::journal {

// Returns the id of the journal. Nothing: the file is empty, or its creation was interrupted.
// DataLoss: the file is not a journal, or cannot be read. Unsupported: a newer muster made the
// journal.
Result<std::optional<std::string>> journal_id_of(Database& database);
// Makes all tables, or none.
Result<void> make_tables(Database& database, const std::string& journal_id);
// 32 hexadecimal digits from the system's random source.
Result<std::string> new_journal_id();

}  // namespace muster::journal
