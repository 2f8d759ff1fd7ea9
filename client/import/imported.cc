#include "client/import/imported.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "client/import/exported.h"
#include "client/import/launch_draft.h"
#include "common/base/utf8.h"
#include "common/compat/launcher/bare_launch.h"
#include "common/compat/launcher/computed.h"
#include "common/compat/launcher/launch.h"
#include "common/engine/model/engine.h"

namespace muster::import {
namespace {

constexpr std::size_t kShownMost = 100;  // bytes of a command line in a sentence
constexpr std::uint32_t kDevicesUsual = 8;

std::string shown(const std::vector<std::string>& words) {
  std::string text = fmt::format("{}", fmt::join(words, " "));
  if (text.size() > kShownMost)
    text = text.substr(0, utf8_prefix(std::string_view(text).substr(0, kShownMost))) + " ...";
  return text;
}

// Returns "torchrun --nproc_per_node 8", or "torchrun has no --nproc_per_node".
std::string option_given(const launcher::Launch& launch, std::string_view option) {
  const std::string launcher(launcher::name_of(launch.call.launcher));
  return launch.call.has(option)
             ? fmt::format("{} --{} {}", launcher, option, launch.call.value(option))
             : fmt::format("{} has no --{}", launcher, option);
}

void put_resources(const launcher::Launch& launch, Imported& out) {
  launcher::Draft& draft = out.draft;
  const bool msrun = launch.call.launcher == launcher::Launcher::Msrun;
  draft.remarks["resources.nodes"] = {msrun ? option_given(launch, "worker_num") + ", " +
                                                  option_given(launch, "local_worker_num")
                                            : option_given(launch, "nnodes")};
  draft.remarks["resources.devices"] = {
      option_given(launch, msrun ? "local_worker_num" : "nproc_per_node")};
  if (draft.devices != 0) return;
  draft.devices = kDevicesUsual;
  draft.remarks["resources.devices"].push_back("a spec has a number: as many as your nodes have");
  out.notes.push_back(fmt::format("{}: resources.devices is {} until you change it",
                                  option_given(launch, "nproc_per_node"), kDevicesUsual));
}

// If the script has set CUDA_VISIBLE_DEVICES=4,5, the job takes these devices.
void put_visible(const Variables& before, const Variables& after, launcher::Draft& draft) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"}) {
    std::string_view text = value_of(after, name);
    if (text.empty() || text == value_of(before, name)) continue;
    std::vector<std::uint32_t> ids;
    bool numbers = true;
    while (!text.empty() && numbers) {
      const std::size_t end = std::min(text.find(','), text.size());
      std::uint32_t id = 0;
      const auto read = std::from_chars(text.data(), text.data() + end, id);
      numbers = read.ec == std::errc() && read.ptr == text.data() + end;
      ids.push_back(id);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (!numbers || ids.size() != draft.devices) continue;
    draft.device_ids = ids;
    draft.remarks["resources.devices"].push_back(fmt::format("which: the script's {}", name));
    return;
  }
}

void put_environment(const Exported& found, const char* source, Imported& out) {
  launcher::Draft& draft = out.draft;
  for (const auto& [name, value] : found.kept) draft.env.try_emplace(name, value);
  std::vector<std::string>& remarks = draft.remarks["runtime.env"];
  if (!found.kept.empty()) remarks.emplace_back(source);
  if (!found.placed.empty())
    remarks.push_back(
        fmt::format("left out, because muster sets them: {}", fmt::join(found.placed, ", ")));
  if (!found.secret.empty()) {
    remarks.push_back(
        fmt::format("left out, because they look like secrets: {}", fmt::join(found.secret, ", ")));
    out.notes.push_back(
        fmt::format("not written down, because they look like secrets: {}; keep them "
                    "with `muster secret set`, and name them in runtime.env (NAME: ${{secret:x}})",
                    fmt::join(found.secret, ", ")));
  }
  if (!found.unusable.empty())
    remarks.push_back(fmt::format("left out, because a spec cannot hold their values: {}",
                                  fmt::join(found.unusable, ", ")));
  if (remarks.empty()) draft.remarks.erase("runtime.env");
}

// The spec keeps the script, which runs on every node.
void as_it_is(const Observed& observed, const launcher::MoreThanLaunch& more, Imported& out) {
  launcher::Draft& draft = out.draft;
  launcher::Draft whole{.engine = draft.engine,
                        .code = observed.directory,
                        .python = observed.python,
                        .per_node = true,
                        .run = launcher::literal(observed.command)};
  whole.launcher = draft.launcher;
  whole.mode = draft.mode;
  whole.nodes = draft.nodes;
  whole.devices = draft.devices;
  whole.remarks = std::move(draft.remarks);
  draft = std::move(whole);
  draft.remarks.erase("launch.script");
  draft.remarks["launch.run"] = {
      fmt::format("the script as it is, on every node: it does more than launch (line {}: {});",
                  more.line, more.command),
      "muster answers its launcher with the job's nodes, processes and master"};
  put_environment(read_from_outside(observed.script.text, observed.before, draft.engine),
                  "what the script reads from the environment that it was imported in", out);
  std::vector<std::string> warnings = computed_warnings(observed.script, {});
  std::ranges::move(weights_warnings(observed.script, {}), std::back_inserter(warnings));
  for (std::string& line : warnings) {
    draft.remarks["launch.run"].push_back("check this: " + line);
    out.notes.push_back(std::move(line));
  }
}

// The spec has the launch alone, with the variables that were exported for it.
void alone(const Observed& observed, const Captured& call, Imported& out) {
  launcher::Draft& draft = out.draft;
  put_visible(observed.before, call.env, draft);
  put_environment(exported(observed.before, call.env, draft.engine, observed.programs),
                  "what the script had exported when it launched", out);
  if (observed.script.name.empty()) return;
  draft.remarks[draft.args.empty() ? "launch" : "launch.args"].emplace_back(
      "with the values that the script's variables had when it was imported");
  for (const launcher::Computed& one : launcher::computed_from_placement(observed.script.text)) {
    const std::string line = fmt::format(
        "{}:{}: '{}' was computed from {}; the result is in the spec, and does not follow its "
        "resources",
        observed.script.name, one.line, one.text, one.variable);
    draft.remarks[draft.args.empty() ? "launch" : "launch.args"].push_back("check this: " + line);
    out.notes.push_back(line);
  }
}

Result<Imported> of_launch(const Observed& observed, const Captured& call) {
  auto launch = launcher::read_launch(call.words, call.directory);
  if (!launch) return fail(std::move(launch.error()));
  if (launch->interpreter.empty()) launch->interpreter = observed.python;
  Imported out{.draft = draft_of(*launch, Texts::Literal), .notes = {}};
  if (!out.draft.rank_table.empty() && !out.draft.rank_table.starts_with('/'))
    out.draft.rank_table = call.directory + "/" + out.draft.rank_table;
  put_resources(*launch, out);
  out.draft.remarks["launch"] = {"launched: " + shown(call.words)};
  if (const std::string given = launcher::options_given(launch->wanted); !given.empty())
    out.draft.remarks["launch"].push_back(given);
  if (const engine::Engine* engine = engine::find_engine(out.draft.engine);
      engine != nullptr && engine->signs.by_arguments != nullptr)
    out.draft.remarks["engine"] = {"by the arguments of what is launched"};
  std::optional<launcher::MoreThanLaunch> more;
  if (!launcher::is_launch(observed.command)) {
    if (observed.script.name.empty())
      more = launcher::MoreThanLaunch{.line = 1, .command = shown(observed.command)};
    else
      more = launcher::more_than_launch(observed.script.text);
  }
  if (more)
    as_it_is(observed, *more, out);
  else
    alone(observed, call, out);
  if (observed.script.name.empty() && !more && out.draft.script.empty())
    out.draft.name = launcher::job_name(launch->wanted.program.front());
  return out;
}

Result<Imported> of_ranks(const Observed& observed, const std::vector<Captured>& ranks,
                          const IsFile& is_file) {
  auto draft = draft_of_ranks(ranks, is_file);
  if (!draft) return fail(std::move(draft.error()));
  Imported out{.draft = std::move(*draft), .notes = {}};
  if (out.draft.python.empty()) out.draft.python = observed.python;
  out.draft.remarks["launch"] = {
      fmt::format("the script started its ranks itself: {}", shown(ranks.front().words)),
      "muster starts them, without the script"};
  if (const engine::Engine* engine = engine::find_engine(out.draft.engine);
      engine != nullptr && engine->by_table != nullptr && out.draft.launcher.empty())
    out.draft.remarks["launch"].emplace_back(
        "the rank table is muster's; resources.rank_table takes one of your own");
  // A variable that differs between ranks belongs to each rank alone.
  Captured common = ranks.front();
  for (const Captured& rank : ranks)
    std::erase_if(common.env, [&](const auto& variable) {
      return value_of(rank.env, variable.first) != variable.second;
    });
  put_environment(exported(observed.before, common.env, out.draft.engine, observed.programs),
                  "what the script had exported for its ranks", out);
  return out;
}

std::unexpected<Error> nothing(const Observed& observed) {
  if (!observed.how_ended.empty())
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("it ended with {} before it launched anything; what it printed is above",
                    observed.how_ended));
  return fail(ErrorCode::InvalidArgument,
              "it launched nothing that muster sees: it called no torchrun, msrun or python -m "
              "torch.distributed.run|launch by the PATH that it was given, and put no "
              "rank (RANK_ID, RANK) into the background; a launcher that is called by its path, or "
              "a single process, wants a spec with launch.run");
}

Result<Imported> judge(const Observed& observed, const IsFile& is_file) {
  std::vector<Captured> launches, ranks;
  for (const Captured& call : observed.calls)
    (launcher::is_launch(call.words) ? launches : ranks).push_back(call);
  if (launches.empty() && ranks.empty()) return nothing(observed);
  if (launches.empty()) return of_ranks(observed, ranks, is_file);
  if (launches.size() + ranks.size() == 1) return of_launch(observed, launches.front());
  std::vector<std::string> each;
  for (const Captured& call : observed.calls)
    if (each.size() < 3) each.push_back(fmt::format("'{}'", shown(call.words)));
  return fail(ErrorCode::InvalidArgument,
              fmt::format("it launches {} times: {}{}; a job has one launch: import a script for "
                          "each, or write launch.per: node with the script as it is, which runs "
                          "them one after the other",
                          observed.calls.size(), fmt::join(each, ", "),
                          each.size() < observed.calls.size() ? ", ..." : ""));
}

}  // namespace

Result<Imported> import_observed(const Observed& observed, const IsFile& is_file) {
  auto out = judge(observed, is_file);
  if (!out) return out;
  if (out->draft.name.empty())
    out->draft.name = launcher::job_name(observed.script.name.empty()
                                             ? out->draft.script.empty() ? observed.command.back()
                                                                         : out->draft.script
                                             : observed.script.name);
  out->draft.remarks[""] = {fmt::format("Made by 'muster import -- {}'.", shown(observed.command))};
  if (!observed.how_ended.empty()) {
    const std::string line =
        fmt::format("the script ended with {} behind its launch, from which nothing had come here",
                    observed.how_ended);
    out->draft.remarks[""].push_back(line);
    out->notes.push_back(line);
  }
  return out;
}

}  // namespace muster::import
