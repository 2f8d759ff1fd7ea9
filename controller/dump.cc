#include "controller/dump.h"

#include "controller/core/dump.h"
#include "controller/journal/sqlite_journal.h"
#include "controller/shell/replay.h"

namespace muster::controller {

Result<std::string> dump_journal(const std::filesystem::path& state_dir) {
  const std::filesystem::path dir = state_dir / "journal";
  if (!std::filesystem::is_directory(dir))
    return fail(ErrorCode::NotFound,
                "dumping the journal of '" + state_dir.string() + "': there is none");
  auto journal = journal::SqliteJournal::open({.dir = dir, .read_only = true});
  if (!journal) return fail(std::move(journal.error()).in("dumping the journal"));
  Replay replay;
  if (auto loaded = (*journal)->load([&](const journal::Row& row) { replay.row(row); }); !loaded)
    return fail(std::move(loaded.error()).in("dumping the journal"));
  std::string text;
  for (const auto& [job, why] : replay.unreadable())
    text += "unreadable: job '" + job.str() + "': " + why + "\n";
  return text + core::dump(replay.ledger());
}

}  // namespace muster::controller
