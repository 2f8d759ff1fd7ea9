// What the journal uses of common/sqlite, by short names.
#pragma once

#include "common/sqlite/database.h"

namespace muster::journal {

using sqlite::Bytes;
using sqlite::Database;
using sqlite::Statement;

// In messages: "opening the journal '/var/lib/...'".
inline constexpr const char* kDatabaseText = "journal";

}  // namespace muster::journal
