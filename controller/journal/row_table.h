// The table `rows`: live rows, and bridges over those that are gone. Writes belong inside a
// transaction of the caller's.
//
//   idx   1 2 5 6 9 a live row: its chain value covers the one before it and itself
//        row   row bridge row bridge a bridge: stands at the last index it covers, says from where,
//              has the chain value of that index,
//                   (3-5)         (7-9) and a seal over the value before it, so that it cannot hide
//                                 a row it was not made for
//
// Bridges that touch become one: there are never more of them than live rows, plus one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "controller/journal/chain.h"
#include "controller/journal/database.h"

namespace muster::journal {

// Indexes covered by a lost bridge when nobody can tell how many rows there were: more than a
// journal ever gets (500 a second for 60 years), few enough to stay exact in JSON's numbers.
inline constexpr std::uint64_t kRowsUnknown = 1'000'000'000'000;

class RowTable {
 public:
  static Result<RowTable> open(Database& database, std::string_view journal_id);

  struct Stored {
    JournalIndex index;
    Record record;
    Digest chain;
    JournalIndex from;  // a bridge: the first index it covers; else as index
    bool lost = false;  // a bridge over rows that --accept-loss gave up
    [[nodiscard]] bool is_bridge() const { return record.format == 0; }
  };
  struct End {
    JournalIndex last;  // of the sound rows from the beginning
    Digest chain;       // at last
    // chain at the index asked for; nothing: beyond the end, or inside a bridge
    std::optional<Digest> at_mark;
    std::string damage;  // not empty: what is wrong right after last
  };
  // Every sound row and bridge in order, up to the first damage. An error of `each` ends the walk
  // and is returned.
  Result<End> walk(JournalIndex mark, const std::function<Result<void>(const Stored&)>& each);

  Result<void> insert(JournalIndex index, const Record& record, const Digest& chain);
  // As it stands: bridges too.
  Result<void> copy(const Stored& row);
  // A bridge from..to for rows that were lost, after a row with this chain value; the new value at
  // `to`.
  Result<Digest> bridge_lost(const Digest& previous, JournalIndex from, JournalIndex to);
  Result<std::optional<Stored>> find(JournalIndex index);
  // Takes these live rows out (ascending), bridging each gap.
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
