#include "controller/core/model/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "controller/core/model/ledger.h"

namespace muster::core {
namespace {

// strsignal() uses the process's language; records must not.
constexpr std::array kSignalNames = {
    std::pair{1, "SIGHUP"},   std::pair{2, "SIGINT"},   std::pair{3, "SIGQUIT"},
    std::pair{4, "SIGILL"},   std::pair{5, "SIGTRAP"},  std::pair{6, "SIGABRT"},
    std::pair{7, "SIGBUS"},   std::pair{8, "SIGFPE"},   std::pair{9, "SIGKILL"},
    std::pair{10, "SIGUSR1"}, std::pair{11, "SIGSEGV"}, std::pair{12, "SIGUSR2"},
    std::pair{13, "SIGPIPE"}, std::pair{14, "SIGALRM"}, std::pair{15, "SIGTERM"},
    std::pair{24, "SIGXCPU"}, std::pair{25, "SIGXFSZ"}, std::pair{31, "SIGSYS"}};

std::string signal_text(std::int32_t number) {
  for (const auto& [known, name] : kSignalNames) {
    if (known == number) return fmt::format("signal {} ({})", number, name);
  }
  return fmt::format("signal {}", number);
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool is_hex(char letter) {
  return is_digit(letter) || (letter >= 'a' && letter <= 'f') || (letter >= 'A' && letter <= 'F');
}

}  // namespace

std::string age_text(Duration age) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(age).count();
  if (ms < 1000) return fmt::format("{}ms", ms < 0 ? 0 : ms);
  const auto seconds = ms / 1000;
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600)
    return seconds % 60 == 0 ? fmt::format("{}m", seconds / 60)
                             : fmt::format("{}m{}s", seconds / 60, seconds % 60);
  return seconds % 3600 < 60 ? fmt::format("{}h", seconds / 3600)
                             : fmt::format("{}h{}m", seconds / 3600, seconds % 3600 / 60);
}

std::string exit_text(const RankExited& exit) {
  const std::string who =
      exit.training_rank ? fmt::format("rank {} of the training, in the script on node '{}',",
                                       *exit.training_rank, exit.node.str())
                         : fmt::format("rank {} on node '{}'", exit.rank.value, exit.node.str());
  if (exit.lost) return who + " was lost: nobody saw how it ended";
  if (exit.stop_requested && !exit.killed_unasked)
    return exit.signal != 0 ? fmt::format("{} was stopped by {}", who, signal_text(exit.signal))
                            : fmt::format("{} was stopped, status {}", who, exit.code);
  if (exit.oom)
    return fmt::format("{} ran out of memory{}", who, exit.signal != 0 ? " and was killed" : "");
  if (exit.killed_unasked)
    return fmt::format("{} was killed by {} while it was being stopped, and not by muster", who,
                       signal_text(exit.signal));
  if (exit.signal != 0) return fmt::format("{} was killed by {}", who, signal_text(exit.signal));
  return fmt::format("{} ended with status {}", who, exit.code);
}

std::string exit_text(const AuxiliaryExited& exit) {
  const std::string who = fmt::format("the {} on node '{}'", exit.name, exit.node.str());
  if (exit.signal != 0) return fmt::format("{} was killed by {}", who, signal_text(exit.signal));
  return fmt::format("{} ended with status {}", who, exit.code);
}

std::string squash_digits(std::string_view text) {
  std::string squashed;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at, 2) == "0x") {
      squashed += "0x";
      at += 2;
      if (at < text.size() && is_hex(text[at])) squashed += '#';
      while (at < text.size() && is_hex(text[at])) ++at;
    } else if (is_digit(text[at])) {
      squashed += '#';
      while (at < text.size() && is_digit(text[at])) ++at;
    } else {
      squashed += text[at++];
    }
  }
  return squashed;
}

std::string_view to_string(FailureClass cls) {
  switch (cls) {
    case FailureClass::UserError: return "user-error";
    case FailureClass::Signal: return "signal";
    case FailureClass::Oom: return "oom";
    case FailureClass::Node: return "node";
    case FailureClass::Launch: return "launch";
    case FailureClass::Worker: return "worker";
    case FailureClass::Operator: return "operator";
  }
  return "?";
}

std::string cancelled_text(const std::string& by, const std::string& reason) {
  return fmt::format("cancelled{}{}{}{}", by.empty() ? "" : " by ", by, reason.empty() ? "" : ": ",
                     reason);
}

std::string came_back_without(const JobRecord& job, AttemptNo attempt) {
  return fmt::format("came back without the run directory of attempt {}: {}", attempt.value,
                     job.attempts_lost > 0
                         ? "it ended there in the lost end of the journal, or the agent's state "
                           "directory is another or an older one"
                         : "its agent's state directory is another or an older one");
}

std::string_view to_string(StartFailure why) {
  switch (why) {
    case StartFailure::Gone: return "gone";
    case StartFailure::Launch: return "launch";
    case StartFailure::Port: return "port";
    case StartFailure::Disk: return "disk";
    case StartFailure::Node: return "node";
    case StartFailure::Checkpoint: return "checkpoint";
    case StartFailure::Inputs: return "inputs";
    case StartFailure::InputsChanged: return "inputs-changed";
  }
  return "?";
}

std::string_view to_string(SweptWhy why) {
  switch (why) {
    case SweptWhy::Ended: return "ended";
    case SweptWhy::Stopped: return "stopped";
    case SweptWhy::Orphaned: return "orphaned";
    case SweptWhy::WorkerDied: return "worker died";
    case SweptWhy::DiskRefusedWrites: return "disk refused writes";
    case SweptWhy::Rebooted: return "rebooted";
    case SweptWhy::NeverStarted: return "never started";
    case SweptWhy::ClaimLost: return "its claim was lost";
  }
  return "?";
}

std::string_view to_string(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::Unknown: return "of unknown kind";
    case EvidenceKind::Cause: return "cause";
    case EvidenceKind::Consequence: return "consequence";
  }
  return "?";
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::Succeeded: return "succeeded";
    case Outcome::Failed: return "failed";
    case Outcome::Cancelled: return "cancelled";
  }
  return "?";
}

std::string some_of(const std::vector<std::string>& nodes) {
  const std::vector<std::string> named(
      nodes.begin(),
      nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), kNodesNamed)));
  std::string text = fmt::format("'{}'", fmt::join(named, "', '"));
  if (nodes.size() > kNodesNamed) text += fmt::format(" and {} more", nodes.size() - kNodesNamed);
  return text;
}

}  // namespace muster::core
