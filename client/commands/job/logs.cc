// muster logs: prints what the ranks and the other processes of a job wrote, from the controller's
// copy, or from what outputs.logs_to has made in a store.
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/call/out.h"
#include "client/commands/call/secret_value.h"
#include "client/commands/follow/bar_pace.h"
#include "client/commands/follow/lasting_streams.h"
#include "client/commands/follow/line_cutter.h"
#include "client/commands/follow/log_label.h"
#include "client/commands/job/store_reader.h"
#include "client/commands/job/stored_logs.h"
#include "client/render/style.h"
#include "client/render/text.h"
#include "common/base/time.h"
#include "common/io/file.h"
#include "common/proto/proto_time.h"
#include "common/store/store_url.h"

namespace muster::client {
namespace {

constexpr const char* kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

constexpr std::size_t kProfileFileMost = 1 << 20;

struct LogsOptions {
  std::string job;
  bool follow = false;
  std::vector<std::string> ranks;
  std::vector<std::string> auxiliaries;
  std::string node;
  std::string attempt;
  std::string grep;
  std::string since;
  std::uint64_t tail = 0;  // 0: not set
  std::string timeout;
  bool raw = false;
  // How a store is reached, as in `muster store add`.
  v1::StoreProfile profile;
  std::string key_file, ca_file, host_key_file;
};

// Prints whole lines, with labels if several logs are shown. On a terminal, lines keep their
// colours. If only one log is shown, a line that its program redraws is redrawn in place. With
// several logs, the states of such a line become lines of their own, one a second.
class Printer {
 public:
  // `grep` null means every line.
  Printer(const Context& context, bool raw, std::unique_ptr<const RE2> grep, bool labels)
      : context_(context),
        raw_(raw),
        grep_(std::move(grep)),
        labels_(labels),
        terminal_(render::is_terminal(1)),
        redraws_(render::is_screen(1) && !labels && !grep_),
        cutter_(kLineBytesMost, terminal_ ? Returns::Cut : Returns::Kept) {}

  void add(const v1::ReadLogsResponse& chunk) {
    any_ = true;
    if (raw_) {
      std::fwrite(chunk.data().data(), 1, chunk.data().size(), stdout);
    } else {
      if (chunk.attempt() != attempt_) {
        flush();
        if (attempt_ != 0 && labels_) note(fmt::format("==== attempt {} ====", chunk.attempt()));
        attempt_ = chunk.attempt();
      }
      const LogLabel log = label_of(chunk);
      const auto each = [&](std::string_view text, bool redrawn) { line(log, text, redrawn); };
      if (!chunk.gap().empty()) {
        cutter_.end(log, each);
        note(fmt::format("[{}] -- bytes missing before offset {}: {}", log.text(), chunk.offset(),
                         chunk.gap()));
      }
      cutter_.add(log, chunk.data(), each);
      if (redraws_ && !cutter_.rest(log).empty()) draw(cutter_.rest(log));
    }
    flush_out();
  }
  void flush() {
    cutter_.end_all([this](const LogLabel& log, std::string_view text) { line(log, text, false); });
    if (std::exchange(drawn_, false)) fmt::print("\n");
  }
  [[nodiscard]] bool any() const { return any_; }

 private:
  void note(const std::string& text) {
    clear();
    fmt::print("{}\n", context_.out.paint(render::Tint::Warn, render::printable(text)));
  }
  void line(const LogLabel& log, std::string_view text, bool redrawn) {
    if (redrawn && redraws_) return draw(text);
    if (grep_ && !RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *grep_)) return;
    if (redrawn && !grep_ && !bars_.due(log, std::chrono::steady_clock::now())) return;
    clear();
    // A terminal is protected from what a program may write; a pipe gets the unchanged bytes.
    const std::string shown = terminal_ ? render::coloured(text, context_.out) : std::string(text);
    if (labels_)
      fmt::print("{} {}\n",
                 context_.out.paint(render::Tint::Accent,
                                    fmt::format("[{}]", render::printable(log.text()))),
                 shown);
    else
      fmt::print("{}\n", shown);
  }
  // Draws a line that has not ended in the terminal's current row. The terminal cuts off what does
  // not fit.
  void draw(std::string_view text) {
    clear();
    fmt::print("\x1b[?7l{}\x1b[?7h",
               render::clip(render::coloured(text, context_.out), render::terminal_width(1)));
    drawn_ = true;
  }
  void clear() {
    if (std::exchange(drawn_, false)) fmt::print("\r\x1b[K");
  }
  const Context& context_;
  const bool raw_;
  const std::unique_ptr<const RE2> grep_;
  const bool labels_;
  const bool terminal_;
  const bool redraws_;  // only one log is shown
  bool drawn_ = false;  // the row contains an unfinished line
  bool any_ = false;
  std::uint32_t attempt_ = 0;
  LineCutter cutter_;
  BarPace bars_;
};

Result<v1::ReadLogsRequest> request_of(const LogsOptions& options) {
  v1::ReadLogsRequest request;
  request.set_job(options.job);
  request.set_follow(options.follow);
  request.set_node(options.node);
  request.set_tail_lines(options.tail);
  const auto ranks = parse_ranks(options.ranks);
  if (!ranks) return fail(ranks.error());
  for (const auto rank : *ranks) request.add_ranks(rank);
  request.set_training_ranks(!options.raw);  // raw: bytes of two logs would run into each other
  const bool all_ranks = ranks->empty() && !options.ranks.empty();
  if (all_ranks && !options.auxiliaries.empty())
    return fail(
        ErrorCode::InvalidArgument,
        "option --rank 'all': with --auxiliary write which ranks you want besides, like 0-7");
  for (const std::string& name : options.auxiliaries) {
    const bool sound =
        !name.empty() && name.find_first_not_of(kNameCharacters) == std::string::npos;
    if (!sound)
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("option --auxiliary '{}': write setup, scheduler, rank-N of a script, or all",
                      render::printable(name)));
    request.add_node_logs(name == "all" ? kAllAuxiliaries : name);
  }
  // If the user chose no log, the lines of a failed setup are the only answer that exists.
  if (options.ranks.empty() && options.auxiliaries.empty() && !options.raw)
    request.add_node_logs(kFailedSetups);
  const bool one_rank = ranks->size() == 1 && options.auxiliaries.empty();
  const bool one_auxiliary = ranks->empty() && options.auxiliaries.size() == 1 &&
                             options.auxiliaries.front() != "all" && !options.node.empty();
  if (options.raw && !one_rank && !one_auxiliary) {
    return fail(ErrorCode::InvalidArgument,
                "option --raw: wants one --rank, or one --auxiliary and its --node: bytes of "
                "several would run into each other");
  }
  if (!options.since.empty()) {
    const auto since = parse_since(options.since, system_clock().now().wall);
    if (!since) return fail(since.error());
    *request.mutable_since() = to_proto(*since);
  }
  if (options.attempt == "all") {
    request.set_all_attempts(true);
  } else if (!options.attempt.empty()) {
    std::uint32_t number = 0;
    const char* const end = options.attempt.data() + options.attempt.size();
    const auto read = std::from_chars(options.attempt.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end || number == 0)
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("option --attempt '{}': write a number from 1, or all", options.attempt));
    request.set_attempt(number);
  }
  return request;
}

// Returns null for an empty text.
Result<std::unique_ptr<const RE2>> grep_of(const std::string& text) {
  if (text.empty()) return nullptr;
  RE2::Options options(RE2::Quiet);
  options.set_encoding(RE2::Options::EncodingLatin1);  // logs may contain any bytes
  auto pattern = std::make_unique<const RE2>(text, options);
  if (!pattern->ok())
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("option --grep '{}': not a regular expression ({})", text, pattern->error()));
  return pattern;
}

// Returns the text to append to "no log lines".
std::string why_none(const Session& session, Interrupt& interrupt, const LogsOptions& options) {
  if (!options.since.empty()) return " since then";
  v1::GetJobRequest request;
  request.set_job(options.job);
  request.set_name_prefix(true);
  const auto answer = ask(session, &Jobs::GetJob, request, &interrupt);
  if (!answer) return " yet";
  const v1::Job& job = answer->job();
  const std::string ended =
      render::is_final(job.phase())
          ? fmt::format(": the job has ended ({})", render::phase_text(job.phase()))
          : "";
  // The latest attempt may have ended before any of its ranks started.
  if (options.attempt.empty() && job.attempt() > 1)
    return fmt::format(" of attempt {}{}{}; --attempt all has those of earlier ones", job.attempt(),
                       ended.empty() ? " yet" : "", ended);
  return ended.empty() ? " yet" : ended;
}

// With launch.per: node: the node whose script has this number. Null: no script has it.
const v1::NodePlacement* node_of_script(const v1::Attempt& attempt, std::uint32_t number) {
  for (const v1::NodePlacement& node : attempt.nodes()) {
    if (number >= node.first_rank() && number - node.first_rank() < node.rank_count()) return &node;
  }
  return nullptr;
}

// The node whose script contains the rank of the training with this number. Null: there is none.
const v1::NodePlacement* node_of_training_rank(const v1::Attempt& attempt, std::uint32_t number) {
  for (const v1::NodePlacement& node : attempt.nodes()) {
    const auto inside = static_cast<std::uint32_t>(std::max(1, node.devices_size()));
    if (number < inside) return &node;
    number -= inside;
  }
  return nullptr;
}

// A script may have the number of a rank that is inside another script. Then both logs come. True
// for a job without an attempt if it may become so.
bool may_have_two_logs(const v1::Job& job, std::uint32_t number) {
  if (job.spec().launch().per() != v1::LAUNCH_PER_NODE) return false;
  if (job.attempts().empty()) return number > 0;
  return std::ranges::any_of(job.attempts(), [number](const v1::Attempt& attempt) {
    const v1::NodePlacement* script = node_of_script(attempt, number);
    const v1::NodePlacement* training = node_of_training_rank(attempt, number);
    return script != nullptr && training != nullptr && script != training;
  });
}

// With launch.per: node, one number may mean a script and also a rank inside a script.
void tell_scripts(const v1::Job& job, const v1::ReadLogsRequest& request) {
  if (job.spec().launch().per() != v1::LAUNCH_PER_NODE || job.attempts().empty() ||
      !render::is_terminal(2))
    return;
  const v1::Attempt& attempt = job.attempts(job.attempts_size() - 1);
  for (const std::uint32_t rank : request.ranks()) {
    const v1::NodePlacement* script = node_of_script(attempt, rank);
    const v1::NodePlacement* training = node_of_training_rank(attempt, rank);
    if (script == nullptr || training == nullptr) continue;
    if (script != training && request.node().empty())
      fmt::print(stderr,
                 "rank {0} is the script of node '{1}', as [rank {0}], and rank {0} of the "
                 "training, in the script of node '{2}', as [{2} rank-{0}]\n",
                 rank, render::printable(script->node()), render::printable(training->node()));
    if (script == training && script->devices_size() > 1)
      fmt::print(stderr,
                 "rank {0} is the script of node '{1}', with all of its ranks; rank {0} of the "
                 "training alone: --auxiliary rank-{0}\n",
                 rank, render::printable(script->node()));
  }
}

// What the words name in place of a job: a directory, or the URL of a place in a store.
struct Place {
  std::filesystem::path dir;
  std::optional<store::Url> url = std::nullopt;
};
// Nothing: they name a job.
Result<std::optional<Place>> named_place(const LogsOptions& options) {
  const std::string& job = options.job;
  const bool is_dir = job.starts_with('/') || job.starts_with("./") || job.starts_with("../");
  if (is_dir || job == ".") return std::optional(Place{.dir = job});
  if (!store::is_url(job)) return std::optional<Place>();
  auto url = store::parse_url(job);
  if (!url)
    return fail(Error(url.error()).in(fmt::format("reading logs of '{}'", render::printable(job))));
  if (url->scheme != store::Scheme::Directory)
    return std::optional(Place{.dir = {}, .url = *std::move(url)});
  const std::string& endpoint = options.profile.endpoint();
  if (!endpoint.starts_with('/'))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("reading logs of '{}': --endpoint has to be the absolute path of "
                            "dir://{} on this machine",
                            render::printable(job), render::printable(url->place)));
  return std::optional(Place{.dir = std::filesystem::path(endpoint) / url->path});
}

Result<StoreReader> reader_of(const LogsOptions& options, const store::Url& url) {
  v1::StoreProfile profile = options.profile;
  for (const auto& [file, set] :
       {std::pair(&options.ca_file, &v1::StoreProfile::mutable_ca),
        std::pair(&options.host_key_file, &v1::StoreProfile::mutable_host_key)}) {
    if (file->empty()) continue;
    auto text = io::read_file(*file, kProfileFileMost);
    if (!text) return fail(std::move(text.error()));
    *(profile.*set)() = *std::move(text);
  }
  std::string key;
  if (!profile.user().empty()) {
    auto value =
        read_secret_value({.file = options.key_file,
                           .what = fmt::format("key of '{}'", render::printable(profile.user()))});
    if (!value) return fail(std::move(value.error()));
    key = *std::move(value);
  }
  return StoreReader::make(std::move(profile), url, key);
}

Result<void> check_for_directory(const LogsOptions& options) {
  const auto refuse = [](const char* option) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("option {}: not for logs in a directory, which has no times and does "
                            "not end",
                            option));
  };
  if (options.follow) return refuse("--follow");
  if (!options.since.empty()) return refuse("--since");
  if (!options.timeout.empty()) return refuse("--timeout");
  if (!options.node.empty() && options.auxiliaries.empty())
    return fail(ErrorCode::InvalidArgument,
                "option --node: of logs in a directory only with --auxiliary: ranks have no node "
                "there");
  return {};
}

bool is_wanted(const LogLabel& label, const v1::ReadLogsRequest& request) {
  if (label.auxiliary.empty())
    return request.ranks_size() == 0 || std::ranges::count(request.ranks(), label.rank) > 0;
  if (!request.node().empty() && label.node != request.node()) return false;
  return std::ranges::any_of(request.node_logs(), [&](const std::string& name) {
    return name == kAllAuxiliaries || name == label.auxiliary;
  });
}

void keep_wanted(std::vector<StoredLog>& logs, const LogsOptions& options,
                 const v1::ReadLogsRequest& request) {
  const std::uint32_t latest = logs.back().label.attempt;
  const std::uint32_t attempt = request.attempt() > 0 ? request.attempt() : latest;
  const bool ranks_too = options.auxiliaries.empty() || !options.ranks.empty();
  std::erase_if(logs, [&](const StoredLog& log) {
    return (!request.all_attempts() && log.label.attempt != attempt) ||
           (log.label.auxiliary.empty() && !ranks_too) || !is_wanted(log.label, request);
  });
}

// Reads one log after another. `fetch` says where its segments are, and keeps them there meanwhile.
using Fetch = std::function<Result<void>(const StoredLog& log,
                                         const std::function<Result<void>(StoredLog)>&)>;
Result<int> print_stored(const Context& context, const LogsOptions& options,
                         const v1::ReadLogsRequest& request, std::unique_ptr<const RE2> grep,
                         std::vector<StoredLog> logs, const Fetch& fetch) {
  keep_wanted(logs, options, request);
  Printer printer(context, options.raw, std::move(grep), logs.size() != 1);
  for (const StoredLog& log : logs) {
    auto read = fetch(log, [&](const StoredLog& there) {
      return read_stored_log(there, options.tail,
                             [&](const v1::ReadLogsResponse& chunk) { printer.add(chunk); });
    });
    printer.flush();
    flush_out();
    if (!read) return fail(std::move(read.error()));
  }
  if (!printer.any()) fmt::print(stderr, "no log lines there\n");
  return kOk;
}

Result<int> stored_logs(const Context& context, const LogsOptions& options,
                        const v1::ReadLogsRequest& request, std::unique_ptr<const RE2> grep,
                        const Place& place) {
  if (auto sound = check_for_directory(options); !sound) return fail(std::move(sound.error()));
  if (!place.url) {
    auto logs = find_stored_logs(place.dir);
    if (!logs) return fail(std::move(logs.error()));
    return print_stored(context, options, request, std::move(grep), *std::move(logs),
                        [](const StoredLog& log, const auto& read) { return read(log); });
  }
  auto reader = reader_of(options, *place.url);
  if (!reader)
    return fail(std::move(reader.error())
                    .in(fmt::format("reading logs of '{}'", render::printable(options.job))));
  const auto names = reader->list();
  if (!names) return fail(Error(names.error()));
  auto logs = stored_logs_of(*names);
  if (!logs) return fail(std::move(logs.error()));
  return print_stored(context, options, request, std::move(grep), *std::move(logs),
                      [&](const StoredLog& log, const auto& read) -> Result<void> {
                        const auto dir = TemporaryDir::make();
                        if (!dir) return fail(Error(dir.error()));
                        std::vector<std::string> of_log;
                        for (const std::string& name : *names)
                          if (std::filesystem::path(name).parent_path() == log.dir)
                            of_log.push_back(name);
                        if (auto copied = reader->copy(of_log, dir->path()); !copied) return copied;
                        return read({.label = log.label, .dir = dir->path() / log.dir});
                      });
}

Result<int> logs(const Context& context, const LogsOptions& options) {
  auto request = request_of(options);
  if (!request) return fail(request.error());
  auto grep = grep_of(options.grep);
  if (!grep) return fail(std::move(grep.error()));
  const auto place = named_place(options);
  if (!place) return fail(Error(place.error()));
  if (*place) return stored_logs(context, options, *request, std::move(*grep), **place);
  return connected(
      context, options.timeout, [&](const Session& session, Interrupt& interrupt) -> Result<int> {
        v1::GetJobRequest which;
        which.set_job(options.job);
        which.set_name_prefix(true);
        const auto job = ask(session, &Jobs::GetJob, which, &interrupt);
        if (!job && interrupt.fired()) return interrupt.timed_out() ? kTimedOut : kOk;
        if (!job) return fail(job.error());
        request->set_job(job->job().id());  // its name may belong to another job later
        if (job->asked_for_chain() && !options.raw)
          fmt::print(stderr, "stage {}, job {}\n",
                     render::printable(job->job().spec().stage().name()),
                     render::printable(job->job().id()));
        if (!options.raw) tell_scripts(job->job(), *request);
        const bool several =
            request->ranks_size() != 1 || !options.auxiliaries.empty() ||
            (options.node.empty() && may_have_two_logs(job->job(), request->ranks(0)));
        Printer printer(context, options.raw, std::move(*grep), several);
        const auto status = read_logs(
            session, interrupt.calls(), *request, options.follow ? OnLoss::Notify : OnLoss::End,
            [&](const v1::ReadLogsResponse& chunk) { printer.add(chunk); });
        printer.flush();
        flush_out();
        if (interrupt.timed_out()) return kTimedOut;
        if (!status.ok() && !interrupt.interrupted()) return fail(to_error(session, status));
        if (!printer.any() && !interrupt.fired())
          fmt::print(stderr, "no log lines{}\n", why_none(session, interrupt, options));
        return kOk;
      });
}

// As in `muster store add`.
void add_store_options(CLI::App& command, LogsOptions& options) {
  v1::StoreProfile* const profile = &options.profile;
  using Field = std::string* (v1::StoreProfile::*)();
  const auto add = [&](const char* name, const char* help, const char* type, Field field) {
    command
        .add_option_function<std::string>(
            name, [profile, field](const std::string& value) { *(profile->*field)() = value; },
            help)
        ->type_name(type)
        ->group("Of a store");
  };
  add("--endpoint", "where it is; of dir:// its path here", "URL",
      &v1::StoreProfile::mutable_endpoint);
  add("--region", "as in cn-north-4", "NAME", &v1::StoreProfile::mutable_region);
  add("--user", "access key ID, or the name of the user", "ID", &v1::StoreProfile::mutable_user);
  add("--proxy", "http://HOST:PORT", "URL", &v1::StoreProfile::mutable_proxy);
  command
      .add_flag_callback(
          "--path-style", [profile] { profile->set_path_style(true); },
          "the bucket is in the path, not in the host's name")
      ->group("Of a store");
  command.add_option("--key-file", options.key_file, "read the key from this file")
      ->type_name("FILE")
      ->group("Of a store");
  command.add_option("--ca", options.ca_file, "the endpoint's own CA (PEM)")
      ->type_name("FILE")
      ->group("Of a store");
  command.add_option("--host-key", options.host_key_file, "of sftp: what ssh-keyscan prints")
      ->type_name("FILE")
      ->group("Of a store");
}

}  // namespace

void add_logs(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<LogsOptions>();
  CLI::App* command = app.add_subcommand(
      "logs", "Print what the ranks wrote, labelled by rank; by default of the current attempt");
  add_job_option(*command, options->job);
  command->add_flag("-f,--follow", options->follow,
                    "go on with what comes, over restarts, until the job ends");
  add_ranks_option(*command, options->ranks, "only these: 0,8-15 (default: all)");
  command
      ->add_option("--auxiliary", options->auxiliaries,
                   "of what runs in addition to the ranks: setup (runtime.setup, on each node), "
                   "scheduler (MindSpore's), or all; alone unless --rank is there, too")
      ->delimiter(',')
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--node", options->node, "only what ran on this node")->type_name("NODE");
  command->add_option("--attempt", options->attempt, "this one, or all")->type_name("N");
  command
      ->add_option(
          "--since", options->since,
          "only what came since: 10m (ago), 14:05, 2026-03-01T14:05 (here), 2026-03-01T13:05Z")
      ->type_name("TIME");
  add_number_option(*command, "-n,--tail", options->tail,
                    "begin this many lines before the end, at least 1", 1)
      ->type_name("LINES");
  command->add_option("--grep", options->grep, "only lines that match this regular expression")
      ->type_name("RE");
  add_timeout_option(*command, options->timeout, "at most this long (exit 4)");
  command->add_flag("--raw", options->raw,
                    "the bytes as they are, of one --rank, or of one --auxiliary and its --node");
  add_store_options(*command, *options);
  command->footer(
      "examples:     muster logs llama-7b -f --rank 0\n"
      "              muster logs llama-7b --attempt all --grep 'Error|Traceback'\n"
      "              muster logs llama-7b --node n07 --since 10m\n"
      "              muster logs llama-7b --auxiliary setup --node n07\n"
      "              muster logs ./JOB --rank 0\n"
      "              muster logs obs://bucket/logs/JOB --endpoint URL --user AKID < secret-key\n"
      "In place of a job may stand what outputs.logs_to has made of it: a directory that begins "
      "with / or ./, or a URL, which is read with this machine's rclone. No controller is asked "
      "then. With --user, the key is read from standard input, or typed.\n"
      "A terminal shows the programs' colours (NO_COLOR: none), and of one --rank progress bars as "
      "they move; of several logs a bar's states are lines, one a second.\n"
      "A pipe gets the bytes as they are.\n"
      "Where an attempt failed in its setup, what that printed on the node comes with the ranks' "
      "lines, as [n07 setup].\n"
      "With launch.per: node, --rank 1 is the script of node 1, and also rank 1 of the training if "
      "that is inside another script: as [n07 rank-1].\n"
      "--since goes by when lines reached the controller, which notes the time every ten seconds: "
      "a few lines from before may come along\n"
      "A line longer than 1 MiB is printed as several of 1 MiB, and --grep checks each; --raw "
      "gives the bytes as they are.\n"
      "exit:         0 all was printed, or Ctrl-C  4 time is up  10 no such job, rank, auxiliary "
      "process, node or attempt");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return logs(chosen, *options); });
}

}  // namespace muster::client
