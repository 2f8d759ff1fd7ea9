#include "controller/journal/schema.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "controller/journal/chain.h"

namespace muster::journal {
namespace {

constexpr std::int64_t kApplication = 0x6d757374;  // "must"
// version of the tables; the format of a record is in its row
constexpr std::int64_t kVersion = 1;

// rows: idx is the journal index; format 0 is a bridge over rows that are gone (row_table.h).
// archive: one row for each job; the checksum covers the other columns.
constexpr const char* kTables =
    "CREATE TABLE meta(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;CREATE "
    "TABLE rows(idx INTEGER PRIMARY KEY NOT NULL, format INTEGER NOT NULL, type INTEGER NOT NULL, "
    "payload BLOB NOT NULL, chain BLOB NOT NULL);CREATE TABLE archive(job TEXT PRIMARY KEY NOT "
    "NULL, name TEXT NOT NULL, submitted_at INTEGER NOT NULL, events BLOB NOT NULL, checksum BLOB "
    "NOT NULL);";

Result<std::int64_t> pragma(Database& database, std::string_view name) {
  auto statement = database.prepare(fmt::format("PRAGMA {}", name));
  if (!statement) return fail(std::move(statement.error()));
  auto row = statement->step();
  if (!row) return fail(std::move(row.error()));
  return *row ? statement->number(0) : 0;
}

}  // namespace

Result<std::optional<std::string>> journal_id_of(Database& database) {
  auto application = pragma(database, "application_id");
  if (!application) return fail(std::move(application.error()));
  auto version = pragma(database, "user_version");
  if (!version) return fail(std::move(version.error()));
  if (*application == 0 && *version == 0) {
    auto tables = database.prepare("SELECT count(*) FROM sqlite_schema");
    if (!tables) return fail(std::move(tables.error()));
    auto row = tables->step();
    if (!row) return fail(std::move(row.error()));
    if (tables->number(0) == 0) return std::optional<std::string>();
  }
  if (*application != kApplication)
    return fail(ErrorCode::DataLoss, "the database's header is not a journal's");
  if (*version != kVersion) {
    return fail(*version > kVersion ? ErrorCode::Unsupported : ErrorCode::DataLoss,
                fmt::format("its tables are of version {}, this muster knows version {}; start a "
                            "muster at least as new as the one that wrote it",
                            *version, kVersion));
  }
  auto statement = database.prepare("SELECT value FROM meta WHERE key='journal_id'");
  if (!statement) return fail(std::move(statement.error()));
  auto row = statement->step();
  if (!row) return fail(std::move(row.error()));
  if (!*row) return fail(ErrorCode::DataLoss, "the database has lost its journal id");
  return std::optional<std::string>(statement->bytes(0));
}

Result<void> make_tables(Database& database, const std::string& journal_id) {
  return database.transaction([&]() -> Result<void> {
    if (auto made = database.execute(kTables); !made) return made;
    if (auto marked = database.execute(
            fmt::format("PRAGMA application_id={}; PRAGMA user_version={};", kApplication, kVersion)
                .c_str());
        !marked)
      return marked;
    auto statement = database.prepare("INSERT INTO meta VALUES('journal_id', ?)");
    if (!statement) return fail(std::move(statement.error()));
    return statement->with({std::string_view(journal_id)}).run();
  });
}

Result<std::string> new_journal_id() {
  std::array<char, 16> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    return fail_errno("making a journal id", errno);
  Digest bytes;
  Digest::parse({random.data(), random.size()}, bytes);
  return bytes.hex();
}

}  // namespace muster::journal
