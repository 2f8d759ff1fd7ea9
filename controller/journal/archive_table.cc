#include "controller/journal/archive_table.h"

#include <fmt/format.h>

#include <utility>

#include "muster/journal/v1/record.pb.h"

namespace muster::journal {
namespace {

constexpr std::string_view kList =
    "SELECT job, name, submitted_at, events, checksum FROM archive WHERE job<? ORDER BY job DESC "
    "LIMIT ?";
constexpr std::string_view kFind =
    "SELECT job, name, submitted_at, events, checksum FROM archive WHERE job=?";

struct Entry {
  std::string job, name;
  std::int64_t submitted_at = 0;
  std::string events, checksum;

  [[nodiscard]] Digest digest() const {
    return digest_of({"archive", job, name, fmt::format("{}", submitted_at), events});
  }
  [[nodiscard]] bool sound() const { return checksum == digest().view(); }
};

Entry entry_of(const Statement& row) {
  return {.job = std::string(row.bytes(0)),
          .name = std::string(row.bytes(1)),
          .submitted_at = row.number(2),
          .events = std::string(row.bytes(3)),
          .checksum = std::string(row.bytes(4))};
}

ArchivedJob job_of(const Entry& entry) {
  ArchivedJob job{.job = JobId(entry.job),
                  .name = entry.name,
                  .submitted_at = WallTime(Duration(entry.submitted_at)),
                  .rows = {},
                  .damage = {}};
  v1::ArchivedRows stored;
  if (!entry.sound() || !stored.ParseFromString(entry.events)) {
    job.damage = fmt::format(
        "reading the archive: the stored events of job '{}' do not fit their checksum", entry.job);
    return job;
  }
  for (const auto& row : stored.rows()) {
    auto event = decode({.format = row.format(), .type = row.type(), .payload = row.payload()});
    if (!event) {
      job.damage = fmt::format("reading the archive: row {} of job '{}': {}", row.index(),
                               entry.job, event.error().message);
      job.rows.clear();
      return job;
    }
    job.rows.push_back({.index = JournalIndex(row.index()), .event = std::move(*event)});
  }
  return job;
}

}  // namespace

Result<ArchiveTable> ArchiveTable::open(Database& database) {
  ArchiveTable table;
  const std::pair<Statement*, std::string_view> statements[] = {
      {&table.put_,
       "INSERT OR REPLACE INTO archive(job, name, submitted_at, events, checksum) VALUES(?, ?, ?, "
       "?, ?)"},
      {&table.list_, kList},
      {&table.find_, kFind},
      {&table.all_, "SELECT job, name, submitted_at, events, checksum FROM archive ORDER BY job"},
      {&table.oldest_,
       "SELECT job, name, submitted_at, events, checksum FROM archive ORDER BY job LIMIT ?"},
      {&table.drop_, "DELETE FROM archive WHERE job=?"},
  };
  for (const auto& [statement, text] : statements) {
    auto prepared = database.prepare(text);
    if (!prepared) return fail(std::move(prepared.error()));
    *statement = std::move(*prepared);
  }
  return table;
}

Result<ArchiveTable> ArchiveTable::open_to_read(Database& database) {
  ArchiveTable table;
  auto list = database.prepare(kList),
       find = list ? database.prepare(kFind) : Result<Statement>(std::unexpected(list.error()));
  if (!find) return fail(std::move(find.error()));
  table.list_ = *std::move(list);
  table.find_ = *std::move(find);
  return table;
}

Result<void> ArchiveTable::add(const JobId& job, std::span<const RowTable::Stored> rows) {
  Entry entry{.job = job.value};
  auto there = find_.with({std::string_view(job.value)}).step();
  if (!there) return fail(std::move(there.error()));
  if (*there) {
    entry = entry_of(find_);
    find_.reset();
    if (!entry.sound())
      return fail(
          ErrorCode::DataLoss,
          fmt::format("archiving job '{}': what is archived of it does not fit its checksum",
                      job.value));
  }
  v1::ArchivedRows stored;
  if (!stored.ParseFromString(entry.events))
    return fail(
        ErrorCode::DataLoss,
        fmt::format("archiving job '{}': what is archived of it does not parse", job.value));
  for (const RowTable::Stored& row : rows) {
    // A row that cannot be read is kept unchanged, for a release that can read it; a reader gets
    // ArchivedJob::damage. Such a row must not keep other jobs from being moved.
    const auto event = decode(row.record);
    if (const auto* submitted = event ? std::get_if<core::JobSubmitted>(&event->body) : nullptr) {
      entry.name = submitted->spec.name();
      entry.submitted_at = event->at.time_since_epoch().count();
    }
    auto& to = *stored.add_rows();
    to.set_index(row.index.value);
    to.set_format(row.record.format);
    to.set_type(row.record.type);
    to.set_payload(row.record.payload);
  }
  entry.events = stored.SerializeAsString();
  const Digest checksum = entry.digest();
  return put_
      .with({std::string_view(entry.job), std::string_view(entry.name), entry.submitted_at,
             Bytes{entry.events}, Bytes{checksum.view()}})
      .run();
}

Result<std::vector<ArchivedJob>> ArchiveTable::list(const std::optional<JobId>& before,
                                                    std::size_t most) {
  // "{" sorts after every letter and digit that occurs in an id.
  const std::string_view bound = before ? std::string_view(before->value) : std::string_view("{");
  std::vector<ArchivedJob> jobs;
  list_.with({bound, static_cast<std::int64_t>(most)});
  while (true) {
    auto more = list_.step();
    if (!more) return fail(std::move(more.error()));
    if (!*more) return jobs;
    jobs.push_back(job_of(entry_of(list_)));
  }
}

Result<std::optional<ArchivedJob>> ArchiveTable::find(const JobId& job) {
  auto there = find_.with({std::string_view(job.value)}).step();
  if (!there) return fail(std::move(there.error()));
  if (!*there) return std::optional<ArchivedJob>();
  Entry entry = entry_of(find_);
  find_.reset();
  return job_of(entry);
}

Result<void> ArchiveTable::drop(WallTime before, std::size_t most) {
  std::vector<JobId> old;
  oldest_.with({static_cast<std::int64_t>(most)});
  while (true) {
    auto more = oldest_.step();
    if (!more) return fail(std::move(more.error()));
    if (!*more) break;
    const ArchivedJob job = job_of(entry_of(oldest_));
    const WallTime last = job.rows.empty() ? job.submitted_at : job.rows.back().event.at;
    if (last != WallTime{} && last < before) old.push_back(job.job);
  }
  for (const JobId& job : old) {
    if (auto dropped = drop_.with({std::string_view(job.value)}).run(); !dropped) return dropped;
  }
  return {};
}

Result<std::size_t> ArchiveTable::copy_sound(ArchiveTable& to) {
  std::size_t lost = 0;
  all_.with({});
  while (true) {
    auto more = all_.step();
    if (!more) {
      if (more.error().code != ErrorCode::DataLoss) return fail(std::move(more.error()));
      return lost + 1;  // the rest cannot be read
    }
    if (!*more) return lost;
    const Entry entry = entry_of(all_);
    if (!entry.sound()) {
      ++lost;
      continue;
    }
    auto put = to.put_
                   .with({std::string_view(entry.job), std::string_view(entry.name),
                          entry.submitted_at, Bytes{entry.events}, Bytes{entry.checksum}})
                   .run();
    if (!put) return fail(std::move(put.error()));
  }
}

}  // namespace muster::journal
