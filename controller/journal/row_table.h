// The SQLite table `rows`: live rows, and bridges over the rows that are gone. SqliteJournal owns
// one, and salvage() makes others for a copy. Each table runs on the thread that uses its Database;
// writes must run inside a transaction of the caller.
//
//   idx    1     2     5        6     9
//         row   row   bridge   row   bridge
//                     (3-5)          (7-9)
//
//   a live row: its chain value covers the chain value before it and the row itself
//   a bridge:   has the last index that it covers; names the first index that it covers; has the
//               chain value of its last index, and a seal over the chain value before it, so that
//               it cannot hide a row for which it was not made
//
// Adjacent bridges become one, so there are never more bridges than live rows, plus one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "controller/journal/chain.h"
#include "controller/journal/database.h"

namespace muster::journal {

// The number of indexes that a lost bridge covers when nobody knows how many rows were lost. No
// journal ever gets so many rows (500 a second for 60 years), and the number is small enough to
// stay exact in JSON's numbers.
inline constexpr std::uint64_t kRowsUnknown = 1'000'000'000'000;

class RowTable {
 public:
  static Result<RowTable> open(Database& database, std::string_view journal_id);

  struct Stored {
    JournalIndex index;
    Record record;
    Digest chain;
    JournalIndex from;  // a bridge: the first index that it covers; a row: same as index
    bool lost = false;  // a bridge over rows that --accept-loss gave up
    [[nodiscard]] bool is_bridge() const { return record.format == 0; }
  };
  struct End {
    JournalIndex last;  // of the sound rows from the beginning
    Digest chain;       // at `last`
    // The chain value at the index `mark`. Nothing: the index is beyond the end, or inside a
    // bridge.
    std::optional<Digest> at_mark;
    std::string damage;  // not empty: what is wrong right after `last`
  };
  // The highest index in the table up to `limit`, also behind a damage, and of a damaged row; 0:
  // there is none. DataLoss: the end of the table cannot be read.
  static Result<JournalIndex> highest(Database& database, JournalIndex limit);
  // Passes every sound row and bridge to `each`, in order, up to the first damage. An error of
  // `each` ends the walk and is returned.
  Result<End> walk(JournalIndex mark, const std::function<Result<void>(const Stored&)>& each);

  Result<void> insert(JournalIndex index, const Record& record, const Digest& chain);
  // Writes the row or bridge unchanged.
  Result<void> copy(const Stored& row);
  // Writes a bridge from..to over lost rows, after a row with the chain value `previous`. Returns
  // the new chain value at `to`.
  Result<Digest> bridge_lost(const Digest& previous, JournalIndex from, JournalIndex to);
  Result<std::optional<Stored>> find(JournalIndex index);
  // Removes these live rows (ascending), and bridges each gap.
  Result<void> remove(std::span<const JournalIndex> rows);

 private:
  explicit RowTable(Database& database) : database_(&database) {}
  Result<void> remove_run(JournalIndex first, JournalIndex last);
  Result<Digest> chain_before(JournalIndex index);
  Result<void> put_bridge(const Digest& previous, JournalIndex from, JournalIndex to, bool lost,
                          const Digest& chain);

  Database* database_;
  Digest start_;
  Statement all_, insert_, find_, next_, delete_;
};

}  // namespace muster::journal
