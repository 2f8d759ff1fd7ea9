#include "agent/start/start_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/code/code_copy.h"
#include "agent/container/container_prepare.h"
#include "agent/start/start_work.h"

namespace muster::agent {
namespace {

using Order = v1::NodeLaunch;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Of all quick steps together. The controller gives up a start after 60 s (Limits::start_timeout),
// so that the node reports first what hangs. It waits longer for an order that also takes long
// elsewhere, and then a slow file system may take longer, too.
Duration quick(const Order& order) {
  const bool sets_up = order.has_container() || order.has_code() || order.has_setup() ||
                       order.fetches_size() > 0 || order.staged_size() > 0;
  return sets_up ? Duration(minutes(10)) : Duration(seconds(50));
}
// Copying and patching end by themselves. What follows is a sync of the disk and the checks.
Duration code_bound(const Order&) { return kCodeCopyTime + minutes(2); }
// Of one input. A store that gives nothing ends it after 10 minutes (kStoreAwayMost), so one that
// takes longer makes progress.
Duration inputs_bound(const Order&) { return hours(24); }
// Of one directory. Silence of the other node ends a fetch after 2 minutes
// (FileStreams::Options::idle_most), so a fetch that takes longer makes progress.
Duration fetch_bound(const Order&) { return hours(2); }
// An archive may be loaded and then imported, each within image_time. The tool also answers short
// questions, within a minute each.
Duration container_bound(const Order& order) { return 2 * image_time(order) + minutes(10); }

bool always(const Order&) { return true; }

constexpr std::array<StartStepRow, kStartStepCount> kRows = {{
    {StartStep::Check, "check", StepPlace::Thread, false, quick, always,
     [](const Order& order) {
       return fmt::format(
           "looking for the user, directories and scripts of {} (working directory '{}')",
           start_text(order), order.ranks().empty() ? std::string() : order.ranks(0).cwd());
     },
     step_check},
    {StartStep::Checkpoints, "checkpoints", StepPlace::Thread, false, quick,
     [](const Order& order) { return order.has_scan_first(); },
     [](const Order& order) {
       return fmt::format("looking for earlier checkpoints of {} ('{}')", start_text(order),
                          order.scan_first().dir());
     },
     step_checkpoints},
    {StartStep::Directories, "directories", StepPlace::Thread, false, quick,
     [](const Order& order) { return !order.make_dirs().empty(); },
     [](const Order& order) {
       return fmt::format("making the directories of {} ('{}')", start_text(order),
                          order.make_dirs().empty() ? std::string() : order.make_dirs(0));
     },
     step_directories},
    {StartStep::Inputs, "inputs", StepPlace::Thread, true, inputs_bound,
     [](const Order& order) { return !order.staged().empty(); },
     [](const Order& order) {
       return input_text(order, order.staged().empty() ? v1::StagedInput() : order.staged(0));
     },
     step_inputs},
    {StartStep::Code, "code", StepPlace::Thread, true, code_bound,
     [](const Order& order) { return order.has_code(); },
     [](const Order& order) {
       return fmt::format("looking for the copy of the code at '{}'", order.code().path());
     },
     step_code},
    {StartStep::Files, "files", StepPlace::Thread, false, quick, always,
     [](const Order& order) { return fmt::format("writing the files of {}", start_text(order)); },
     step_files},
    {StartStep::Fetch, "fetch", StepPlace::Thread, true, fetch_bound,
     [](const Order& order) { return !order.fetches().empty(); },
     [](const Order& order) {
       return fetch_text(order, order.fetches().empty() ? v1::Fetch() : order.fetches(0));
     },
     step_fetch},
    {StartStep::Links, "links", StepPlace::Thread, false, quick,
     [](const Order& order) { return order.has_resume(); },
     [](const Order& order) {
       return fmt::format("linking the checkpoint that {} resumes from ('{}')", start_text(order),
                          order.resume().source());
     },
     step_links},
    {StartStep::Container, "container", StepPlace::Thread, true, container_bound,
     [](const Order& order) { return order.has_container(); },
     [](const Order& order) {
       return fmt::format("looking for what job '{}' mounts", order.job_name());
     },
     step_container},
    {StartStep::Record, "record", StepPlace::Thread, false, quick, always,
     [](const Order& order) {
       return fmt::format("looking for the programs of {}", start_text(order));
     },
     step_record},
    {StartStep::Secrets, "secrets", StepPlace::Thread, false, quick,
     [](const Order& order) { return !order.secrets().empty(); },
     [](const Order& order) {
       return fmt::format("asking the controller for the secrets of {}", start_text(order));
     },
     step_secrets},
    {StartStep::Spawn, "spawn", StepPlace::Loop, false, nullptr, always,
     [](const Order& order) { return fmt::format("starting the worker of {}", start_text(order)); },
     [](StartWork& work) { return work.spawn(work); }},
}};

static_assert([] {
  for (std::size_t at = 0; at < kRows.size(); ++at)
    if (kRows[at].step != static_cast<StartStep>(at) ||
        (kRows[at].bound == nullptr) != (kRows[at].place == StepPlace::Loop))
      return false;
  return true;
}());

}  // namespace

constinit const std::array<StartStepRow, kStartStepCount> kStartSteps = kRows;

const StartStepRow& row_of(StartStep step) {
  return kStartSteps.at(static_cast<std::size_t>(step));
}

std::optional<StartStep> parse_start_step(std::string_view word) {
  const auto row = std::ranges::find(kStartSteps, word, &StartStepRow::word);
  return row == kStartSteps.end() ? std::nullopt : std::optional(row->step);
}

std::string start_text(const v1::NodeLaunch& order) {
  return fmt::format("job '{}' attempt {}",
                     order.job_name().empty() ? order.job_id() : order.job_name(), order.attempt());
}

std::string input_text(const v1::NodeLaunch& order, const v1::StagedInput& input) {
  return fmt::format("fetching inputs.{} ('{}') for {}", input.name(), input.url(),
                     start_text(order));
}

std::string fetch_text(const v1::NodeLaunch& order, const v1::Fetch& what) {
  return fmt::format("fetching '{}' from node '{}' for {}", what.path(), what.node(),
                     start_text(order));
}

}  // namespace muster::agent
