#include "controller/journal/row_table.h"

#include <fmt/format.h>

#include <utility>

namespace muster::journal {
namespace {

constexpr std::uint32_t kBridge = 0;  // value of `format`
constexpr std::size_t kBridgeSize = 8 + 1 + 16;

std::string bridge_payload(const Digest& previous, JournalIndex from, JournalIndex to, bool lost,
                           const Digest& chain) {
  std::string payload;
  for (int i = 0; i < 8; ++i) payload += static_cast<char>(from.value >> (8 * i));
  payload += lost ? '\1' : '\0';
  const Digest seal =
      digest_of({"bridge", previous.view(), payload, fmt::format("{}", to.value), chain.view()});
  return payload.append(seal.view());
}

// Returns false if the statement's row cannot be read as a row of the journal.
bool read_row(const Statement& statement, RowTable::Stored& row) {
  row.index = JournalIndex(static_cast<std::uint64_t>(statement.number(0)));
  row.record.format = static_cast<std::uint32_t>(statement.number(1));
  row.record.type = static_cast<std::uint32_t>(statement.number(2));
  row.record.payload.assign(statement.bytes(3));
  row.from = row.index;
  row.lost = false;
  if (!Digest::parse(statement.bytes(4), row.chain)) return false;
  if (!row.is_bridge()) return true;
  if (row.record.payload.size() != kBridgeSize || row.record.type != 0) return false;
  row.from.value = 0;
  for (int i = 0; i < 8; ++i)
    row.from.value |= static_cast<std::uint64_t>(static_cast<unsigned char>(
                          row.record.payload[static_cast<std::size_t>(i)]))
                      << (8 * i);
  row.lost = row.record.payload[8] == '\1';
  return row.from.value >= 1 && row.from <= row.index;
}

std::int64_t sql(JournalIndex index) { return static_cast<std::int64_t>(index.value); }

}  // namespace

Result<RowTable> RowTable::open(Database& database, std::string_view journal_id) {
  RowTable table(database);
  table.start_ = chain_start(journal_id);
  const std::pair<Statement*, std::string_view> statements[] = {
      {&table.all_, "SELECT idx, format, type, payload, chain FROM rows ORDER BY idx"},
      {&table.insert_, "INSERT INTO rows(idx, format, type, payload, chain) VALUES(?, ?, ?, ?, ?)"},
      {&table.find_, "SELECT idx, format, type, payload, chain FROM rows WHERE idx=?"},
      {&table.next_,
       "SELECT idx, format, type, payload, chain FROM rows WHERE idx>? ORDER BY idx LIMIT 1"},
      {&table.delete_, "DELETE FROM rows WHERE idx BETWEEN ? AND ?"},
  };
  for (const auto& [statement, text] : statements) {
    auto prepared = database.prepare(text);
    if (!prepared) return fail(std::move(prepared.error()));
    *statement = std::move(*prepared);
  }
  return table;
}

Result<JournalIndex> RowTable::highest(Database& database, JournalIndex limit) {
  auto statement =
      database.prepare("SELECT idx FROM rows WHERE idx BETWEEN 1 AND ? ORDER BY idx DESC LIMIT 1");
  if (!statement) return fail(std::move(statement.error()));
  auto there = statement->with({sql(limit)}).step();
  if (!there) return fail(std::move(there.error()));
  return JournalIndex(*there ? static_cast<std::uint64_t>(statement->number(0)) : 0);
}

Result<RowTable::End> RowTable::walk(JournalIndex mark,
                                     const std::function<Result<void>(const Stored&)>& each) {
  End end{.last = {}, .chain = start_, .at_mark = {}, .damage = {}};
  if (mark.value == 0) end.at_mark = start_;
  Stored row;
  all_.with({});
  struct Reset {
    Statement& statement;
    ~Reset() { statement.reset(); }
  } reset{all_};
  while (true) {
    auto more = all_.step();
    if (!more) {
      if (more.error().code != ErrorCode::DataLoss) return fail(std::move(more.error()));
      end.damage = fmt::format("the database cannot be read after row {}: {}", end.last.value,
                               more.error().message);
      return end;
    }
    if (!*more) return end;
    const bool readable = read_row(all_, row);
    const JournalIndex expected(end.last.value + 1);
    if (!readable) {
      end.damage = fmt::format("row {} cannot be read as a row", expected.value);
    } else if (row.from != expected) {
      end.damage = fmt::format("after row {} comes row {}: what was between is gone",
                               end.last.value, row.from.value);
    } else if (row.is_bridge()) {
      if (bridge_payload(end.chain, row.from, row.index, row.lost, row.chain) !=
          row.record.payload) {
        end.damage = fmt::format("the bridge over rows {} to {} does not fit its seal",
                                 row.from.value, row.index.value);
      }
    } else if (chain_next(end.chain, row.index, row.record) != row.chain) {
      end.damage = fmt::format("row {} does not fit its checksum", row.index.value);
    }
    if (!end.damage.empty()) return end;
    if (auto taken = each(row); !taken) return fail(std::move(taken.error()));
    end.last = row.index;
    end.chain = row.chain;
    if (row.index == mark) end.at_mark = row.chain;
  }
}

Result<void> RowTable::insert(JournalIndex index, const Record& record, const Digest& chain) {
  return insert_
      .with({sql(index), std::int64_t{record.format}, std::int64_t{record.type},
             Bytes{record.payload}, Bytes{chain.view()}})
      .run();
}

Result<void> RowTable::copy(const Stored& row) { return insert(row.index, row.record, row.chain); }

Result<Digest> RowTable::bridge_lost(const Digest& previous, JournalIndex from, JournalIndex to) {
  const Digest chain =
      digest_of({"lost", previous.view(), fmt::format("{} {}", from.value, to.value)});
  if (auto put = put_bridge(previous, from, to, true, chain); !put)
    return fail(std::move(put.error()));
  return chain;
}

Result<std::optional<RowTable::Stored>> RowTable::find(JournalIndex index) {
  auto there = find_.with({sql(index)}).step();
  if (!there) return fail(std::move(there.error()));
  if (!*there) return std::optional<Stored>();
  Stored row;
  const bool readable = read_row(find_, row);
  find_.reset();
  if (!readable)
    return fail(ErrorCode::DataLoss,
                fmt::format("row {} of the journal cannot be read as a row", index.value));
  return row;
}

Result<void> RowTable::remove(std::span<const JournalIndex> rows) {
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin + 1;
    while (end < rows.size() && rows[end].value == rows[end - 1].value + 1) ++end;
    if (auto done = remove_run(rows[begin], rows[end - 1]); !done) return done;
    begin = end;
  }
  return {};
}

Result<void> RowTable::remove_run(JournalIndex first, JournalIndex last) {
  auto end = find(last);
  if (!end) return fail(std::move(end.error()));
  if (!*end)
    return fail(ErrorCode::DataLoss, fmt::format("row {} of the journal is gone", last.value));
  JournalIndex from = first, to = last;
  Digest chain = (*end)->chain;
  bool lost = false;
  // A bridge that ends right before this one, or begins right after it, becomes part of it.
  auto before = find(JournalIndex(first.value - 1));
  if (!before) return fail(std::move(before.error()));
  if (*before && (*before)->is_bridge()) {
    from = (*before)->from;
    lost = (*before)->lost;
  }
  auto there = next_.with({sql(last)}).step();
  if (!there) return fail(std::move(there.error()));
  if (*there) {
    Stored after;
    const bool readable = read_row(next_, after);
    next_.reset();
    if (!readable)
      return fail(
          ErrorCode::DataLoss,
          fmt::format("the row after {} of the journal cannot be read as a row", last.value));
    if (after.is_bridge() && after.from.value == last.value + 1) {
      to = after.index;
      chain = after.chain;
      lost = lost || after.lost;
    }
  }
  auto previous = chain_before(from);
  if (!previous) return fail(std::move(previous.error()));
  if (auto deleted = delete_.with({sql(from), sql(to)}).run(); !deleted) return deleted;
  return put_bridge(*previous, from, to, lost, chain);
}

Result<Digest> RowTable::chain_before(JournalIndex index) {
  if (index.value == 1) return start_;
  auto row = find(JournalIndex(index.value - 1));
  if (!row) return fail(std::move(row.error()));
  if (!*row)
    return fail(ErrorCode::DataLoss, fmt::format("row {} of the journal is gone", index.value - 1));
  return (*row)->chain;
}

Result<void> RowTable::put_bridge(const Digest& previous, JournalIndex from, JournalIndex to,
                                  bool lost, const Digest& chain) {
  return insert(
      to,
      Record{
          .format = kBridge, .type = 0, .payload = bridge_payload(previous, from, to, lost, chain)},
      chain);
}

}  // namespace muster::journal
