// muster logs: what the ranks wrote, from the controller's copy.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <optional>
#include <regex>

#include "client/commands/commands.h"
#include "client/commands/interrupt.h"
#include "client/render/style.h"

namespace muster::client {
namespace {

struct Options {
  std::string job;
  bool follow = false;
  std::vector<std::string> ranks;
  std::string node;
  std::string attempt;
  std::string grep;
  std::uint64_t tail = 0;
  std::string timeout;
  bool raw = false;
};

// "0,8-15" -> numbers.
Result<std::vector<std::uint32_t>> parse_ranks(const std::vector<std::string>& texts) {
  std::vector<std::uint32_t> out;
  for (const auto& text : texts) {
    unsigned first = 0;
    unsigned last = 0;
    char more = 0;
    if (std::sscanf(text.c_str(), "%u-%u%c", &first, &last, &more) != 2) {
      if (std::sscanf(text.c_str(), "%u%c", &first, &more) != 1) return fail(ErrorCode::InvalidArgument, fmt::format("option --rank '{}': write numbers and ranges, like 0,8-15", text));
      last = first;
    }
    if (last < first || last - first > 65536) return fail(ErrorCode::InvalidArgument, fmt::format("option --rank '{}': not a range of ranks", text));
    for (unsigned rank = first; rank <= last; ++rank) out.push_back(rank);
  }
  return out;
}

// Prints whole lines, labelled where several ranks are shown.
class Printer {
 public:
  Printer(const Context& context, const Options& options, std::optional<std::regex> grep, bool labels) : context_(context), options_(options), grep_(std::move(grep)), labels_(labels) {}

  void add(const v1::ReadLogsResponse& chunk) {
    if (chunk.attempt() != attempt_) {
      flush();
      if (attempt_ != 0 && labels_) fmt::print("{}\n", context_.out.paint(render::Tint::Warn, fmt::format("==== attempt {} ====", chunk.attempt())));
      attempt_ = chunk.attempt();
    }
    if (!chunk.gap().empty() && !options_.raw) fmt::print("{}\n", context_.out.paint(render::Tint::Warn, fmt::format("[rank {}] -- bytes missing before offset {}: {}", chunk.rank(), chunk.offset(), chunk.gap())));
    if (options_.raw) {
      std::fwrite(chunk.data().data(), 1, chunk.data().size(), stdout);
      std::fflush(stdout);
      return;
    }
    std::string& rest = rest_[chunk.rank()];
    rest += chunk.data();
    std::size_t start = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', start)) {
      line(chunk.rank(), std::string_view(rest).substr(start, end - start));
      start = end + 1;
    }
    rest.erase(0, start);
    std::fflush(stdout);
  }
  void flush() {
    for (auto& [rank, rest] : rest_) {
      if (!rest.empty()) line(rank, rest);
      rest.clear();
    }
  }

 private:
  void line(std::uint32_t rank, std::string_view text) {
    if (grep_ && !std::regex_search(text.begin(), text.end(), *grep_)) return;
    // A terminal is protected from what a program may write; a pipe gets the bytes.
    const std::string shown = render::is_terminal(1) ? render::printable(text) : std::string(text);
    if (labels_) fmt::print("{} {}\n", context_.out.paint(render::Tint::Accent, fmt::format("[rank {}]", rank)), shown);
    else fmt::print("{}\n", shown);
  }
  const Context& context_;
  const Options& options_;
  std::optional<std::regex> grep_;
  bool labels_;
  std::uint32_t attempt_ = 0;
  std::map<std::uint32_t, std::string> rest_;
};

int logs(const Context& context, const Options& options) {
  auto ranks = parse_ranks(options.ranks);
  if (!ranks) return report(context, ranks.error());
  std::optional<std::chrono::milliseconds> timeout;
  if (!options.timeout.empty()) {
    auto parsed = parse_timeout(options.timeout);
    if (!parsed) return report(context, parsed.error());
    timeout = *parsed;
  }
  std::optional<std::regex> grep;
  if (!options.grep.empty()) {
    try {
      grep.emplace(options.grep, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
      return report(context, {ErrorCode::InvalidArgument, fmt::format("option --grep '{}': not a regular expression ({})", options.grep, error.what())});
    }
  }
  v1::ReadLogsRequest request;
  request.set_job(options.job);
  request.set_follow(options.follow);
  request.set_node(options.node);
  request.set_tail_lines(options.tail);
  if (options.attempt == "all") {
    request.set_all_attempts(true);
  } else if (!options.attempt.empty()) {
    unsigned number = 0;
    char more = 0;
    if (std::sscanf(options.attempt.c_str(), "%u%c", &number, &more) != 1 || number == 0) return report(context, {ErrorCode::InvalidArgument, fmt::format("option --attempt '{}': write a number from 1, or all", options.attempt)});
    request.set_attempt(number);
  }
  for (const auto rank : *ranks) request.add_ranks(rank);

  Interrupt interrupt(timeout);
  auto session = context.connect();
  if (!session) return report(context, session.error());
  grpc::ClientContext call;
  session->prepare(call, std::nullopt);
  const Interrupt::Guard guard(interrupt, call);
  auto stream = session->jobs->ReadLogs(&call, request);
  v1::ReadLogsResponse chunk;
  Printer printer(context, options, std::move(grep), ranks->size() != 1);
  while (stream->Read(&chunk)) printer.add(chunk);
  printer.flush();
  std::fflush(stdout);
  const auto status = stream->Finish();
  if (interrupt.timed_out()) return kTimedOut;
  if (status.ok() || interrupt.interrupted()) return kOk;
  return report(context, *session, status);
}

}  // namespace

void add_logs(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("logs", "Print what the ranks wrote, labelled by rank; the current attempt unless told");
  command->add_option("job", options->job, "name, id, unique prefix of an id, or @last")->required();
  command->add_flag("-f,--follow", options->follow, "go on with what comes, over restarts, until the job ends");
  command->add_option("-r,--rank", options->ranks, "only these: 0,8-15")->delimiter(',');
  command->add_option("--node", options->node, "only this node's ranks");
  command->add_option("--attempt", options->attempt, "a number, or all");
  command->add_option("--grep", options->grep, "only lines that match this regular expression");
  command->add_option("-n,--tail", options->tail, "begin this many lines before the end");
  command->add_option("--timeout", options->timeout, "at most this long (exit 4)");
  command->add_flag("--raw", options->raw, "the bytes as they are; wants one --rank");
  command->callback([&context, &exit, options] { exit = logs(context, *options); });
}

}  // namespace muster::client
