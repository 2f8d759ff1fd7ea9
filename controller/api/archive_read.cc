#include "controller/api/archive_read.h"

#include "controller/api/event_text.h"

namespace muster::controller {
namespace {

Result<ArchivedRecord> find_record(journal::Journal& journal, const JobId& id, bool events) {
  auto archived = journal.archived_job(id);
  if (!archived) return fail(std::move(archived.error()));
  if (!*archived)
    return fail(ErrorCode::NotFound, "finding job '" + id.str() + "': no job has this id");
  auto job = refold(**archived);
  if (!job)
    return fail(ErrorCode::DataLoss,
                "reading job '" + id.str() + "' from the archive: its records make no sense");
  ArchivedRecord record{.job = std::move(*job)};
  if (events) {
    Replay replay([&](const journal::Row& row, const core::Ledger& after) {
      record.events.push_back(std::make_shared<const v1::Event>(describe(row, after)));
    });
    for (const journal::Row& row : (*archived)->rows) replay.row(row);
  }
  return record;
}

}  // namespace

void read_archived(Shell& shell, const JobId& id, bool events,
                   std::move_only_function<void(Result<ArchivedRecord>)> done) {
  shell.with_archive("archive-read",
                     [id, events, done = std::move(done)](journal::Journal& journal) mutable {
                       done(find_record(journal, id, events));
                     });
}

}  // namespace muster::controller
