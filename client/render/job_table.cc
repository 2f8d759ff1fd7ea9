#include "client/render/job_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "client/render/progress_text.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/proto/proto_time.h"

namespace muster::render {
namespace {

// Six characters of an id's end: its whole random part, and the end of its time, which covers about
// a second.
constexpr std::size_t kIdLeast = 6;
constexpr std::size_t kNameLeast = 6;  // minimum for a name on a narrow terminal

// Returns the time since the job's last step.
std::string since_text(const v1::Job& job, WallTime now) {
  const auto age = is_final(job.phase()) ? std::nullopt : step_age(job, now);
  return age ? duration_text(*age) : "-";
}

// Returns how long the latest attempt has run, or ran.
std::string run_text(const v1::Job& job, WallTime now) {
  if (job.attempts().empty() || job.phase() == v1::JOB_PHASE_QUEUED) return "-";
  const v1::Attempt& attempt = job.attempts(job.attempts_size() - 1);
  if (!attempt.has_running_at()) return "-";
  const WallTime end = attempt.has_ended_at() ? to_wall(attempt.ended_at())
                       : job.has_ended_at()   ? to_wall(job.ended_at())
                                              : now;
  return duration_text(end - to_wall(attempt.running_at()));
}

// Returns the reason column. It is the job that this one waits for (by name where the list has it),
// why it waits, that it has had no step for a while, or why it failed.
std::string reason_text(const v1::Job& job,
                        const std::map<std::string_view, std::string_view>& names, WallTime now) {
  if (const auto age = step_age(job, now);
      age && job.phase() == v1::JOB_PHASE_RUNNING && !is_stepping(job, now))
    return fmt::format("last step {} ago", duration_text(*age));
  const auto& after = job.resolved().after();
  if (job.phase() == v1::JOB_PHASE_QUEUED && !after.empty()) {
    const auto named = names.find(after[0]);
    const std::string text =
        fmt::format("behind {}", named == names.end() ? std::string_view(after[0]) : named->second);
    return after.size() == 1 ? text : text + fmt::format(" and {} more", after.size() - 1);
  }
  if (job.phase() == v1::JOB_PHASE_QUEUED) return job.waits_for();
  return job.phase() == v1::JOB_PHASE_FAILED || job.phase() == v1::JOB_PHASE_CANCELLED
             ? job.verdict().reason()
             : "";
}

std::string labels_text(const v1::JobSpec& spec) {
  const std::map<std::string, std::string> sorted(spec.labels().begin(), spec.labels().end());
  std::string text;
  for (const auto& [name, value] : sorted)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  return text.empty() ? "-" : text;
}

std::string nodes_text(const v1::Job& job) {
  std::string nodes;
  if (job.attempts_size() > 0) {
    for (const auto& node : job.attempts(job.attempts_size() - 1).nodes())
      nodes += (nodes.empty() ? "" : ",") + node.node();
  }
  return nodes.empty() ? "-" : nodes;
}

}  // namespace

std::vector<std::string> short_ids(const std::vector<std::string>& ids) {
  std::size_t length = kIdLeast, most = 0;
  for (const std::string& id : ids) most = std::max(most, id.size());
  // Text that is not an id of muster's is not cut: the cut might be inside a character.
  const auto is_id = [](const std::string& id) {
    return id.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz") == std::string::npos;
  };
  const auto end_of = [&](const std::string& id, std::size_t end) {
    return is_id(id) ? id.substr(id.size() - std::min(id.size(), end)) : id;
  };
  const auto alike = [&] {
    std::set<std::string> ends;
    return !std::ranges::all_of(
        ids, [&](const std::string& id) { return ends.insert(end_of(id, length)).second; });
  };
  while (length < most && alike()) ++length;
  std::vector<std::string> out;
  for (const std::string& id : ids) out.push_back(end_of(id, length));
  return out;
}

std::string jobs_text(const std::vector<v1::Job>& jobs, bool wide, const Style& style,
                      std::size_t width, WallTime now) {
  Table table{.columns = {{.title = "NAME", .least = kNameLeast},
                          {"ID"},
                          {"PHASE"},
                          {"STEP", Align::Right},
                          {"LOSS", Align::Right},
                          {"ETA", Align::Right},
                          {"RUN", Align::Right},
                          {"RESTARTS", Align::Right},
                          {"AGE", Align::Right}},
              .rows = {}};
  std::set<std::string_view> owners;
  for (const auto& job : jobs) owners.insert(job.owner());
  const bool with_owner = wide || owners.size() > 1;
  if (with_owner) table.columns.push_back({"OWNER"});
  if (wide) {
    table.columns.push_back({"SINCE", Align::Right});
    table.columns.push_back({"ATTEMPT", Align::Right});
    for (const char* title : {"NODES", "ENGINE", "LABELS", "DESCRIPTION"})
      table.columns.push_back({title});
  }
  std::map<std::string_view, std::string_view> names;
  std::vector<std::string> ids;
  for (const auto& job : jobs) {
    names.emplace(job.id(), job.spec().name());
    ids.push_back(job.id());
  }
  const std::vector<std::string> shown = wide ? ids : short_ids(ids);
  bool any_reason = false;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const v1::Job& job = jobs[i];
    std::vector<std::string> row = {job.spec().name(),
                                    shown[i],
                                    style.paint(phase_tint(job.phase()), phase_text(job.phase())),
                                    step_text(job.progress()),
                                    loss_text(job.progress()),
                                    eta_text(job, now),
                                    run_text(job, now),
                                    fmt::format("{}", job.restarts()),
                                    duration_text(now - to_wall(job.submitted_at()))};
    if (with_owner) row.push_back(job.owner().empty() ? "-" : printable(job.owner()));
    if (wide) {
      row.push_back(since_text(job, now));
      row.push_back(fmt::format("{}", job.attempt()));
      row.push_back(nodes_text(job));
      row.push_back(job.spec().engine());
      row.push_back(labels_text(job.spec()));
      row.push_back(job.spec().description().empty() ? "-" : job.spec().description());
    }
    row.push_back(reason_text(job, names, now));
    any_reason = any_reason || !row.back().empty();
    table.rows.push_back(std::move(row));
  }
  if (any_reason) {
    table.columns.push_back({"REASON"});
    for (auto& row : table.rows)
      if (row.back().empty()) row.back() = "-";
  } else {
    for (auto& row : table.rows) row.pop_back();
  }
  return to_text(table, style, width);
}

}  // namespace muster::render
