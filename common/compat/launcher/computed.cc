#include "common/compat/launcher/computed.h"

#include <algorithm>
#include <array>
#include <map>

#include "common/base/utf8.h"
#include "common/compat/shell/mentions.h"
#include "common/compat/shell/shell_words.h"
#include "common/text/shell_lexer.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kTextMost = 120, kFoundMost = 100;

constexpr auto kVariables = std::to_array<std::string_view>(
    {"NNODES",         "NODE_RANK",       "MASTER_ADDR",      "MASTER_PORT",
     "NPROC_PER_NODE", "GPUS_PER_NODE",   "NPUS_PER_NODE",    "WORLD_SIZE",
     "RANK",           "LOCAL_RANK",      "LOCAL_WORLD_SIZE", "PET_NNODES",
     "PET_NODE_RANK",  "PET_MASTER_ADDR", "PET_MASTER_PORT",  "PET_NPROC_PER_NODE",
     "RANK_ID",        "RANK_SIZE",       "DEVICE_ID",        "RANK_TABLE_FILE",
     "MS_WORKER_NUM",  "MS_SCHED_HOST",   "MS_SCHED_PORT",    "MS_NODE_ID"});

// Whether the value is "$NAME" or ${NAME} and nothing else.
bool is_copy(std::string_view value, const std::vector<Mention>& mentions) {
  while (value.size() > 1 && value.front() == '"' && value.back() == '"')
    value = value.substr(1, value.size() - 2);
  if (mentions.size() != 1 || mentions.front().arithmetic) return false;
  const std::string name(mentions.front().name);
  return value == "$" + name || value == "${" + name + "}";
}

class Reader {
 public:
  explicit Reader(const std::vector<std::string>& given) : given_(given) {}
  std::vector<Computed> run(std::string_view script) {
    const auto commands = shell_commands(script);
    for (const std::string_view name : kVariables) replaced_[name] = false;
    for (const ShellCommand& command : commands) read_options(command);
    for (const ShellCommand& command : commands) read(command);
    return std::move(found_);
  }

 private:
  // Finds the variables that a launcher's options get, in the call itself and in strings that are
  // assembled before it.
  void read_options(const ShellCommand& command) {
    for (std::size_t i = 0; i < command.size(); ++i) {
      for (const Mention& mention : mentions_of(command[i].text)) {
        const bool next = i > 0 &&
                          option_in_front(command[i - 1].text, command[i - 1].text.size()) &&
                          command[i - 1].text.starts_with("--");
        if (mention.option || next) replaced_.try_emplace(mention.name, false);
      }
    }
  }

  void read(const ShellCommand& command) {
    constexpr auto kDeclare =
        std::to_array<std::string_view>({"export", "readonly", "declare", "local", "typeset"});
    bool assigning = true;
    for (std::size_t i = 0; i < command.size(); ++i) {
      const ShellAssignment assignment =
          assigning ? shell_assignment(command[i].text) : ShellAssignment{};
      if (!assignment.name.empty()) {
        assign(command[i], assignment);
        continue;
      }
      if (std::ranges::find(kDeclare, command[i].text) == kDeclare.end() &&
          !command[i].text.starts_with('-'))
        assigning = false;
      const bool option = i > 0 && command[i - 1].text.starts_with("--") &&
                          option_in_front(command[i - 1].text, command[i - 1].text.size());
      for (const Mention& mention : mentions_of(command[i].text))
        if (mention.arithmetic && !mention.option && !option && tell(command[i], mention)) break;
    }
  }

  void assign(const ShellWord& word, const ShellAssignment& assignment) {
    const std::vector<Mention> mentions = mentions_of(assignment.value);
    if (const auto known = replaced_.find(assignment.name); known != replaced_.end()) {
      // NNODES=${NNODES:-1} has muster's value. NNODES=1 and NNODES=$2 have the script's own value.
      // WORLD_SIZE=$((NNODES*8)) follows the variables that it is computed from.
      const auto is_own = [this](const Mention& mention) {
        const auto from = replaced_.find(mention.name);
        return from == replaced_.end() || from->second;
      };
      const bool itself = std::ranges::any_of(mentions, [&](const Mention& mention) {
        return mention.fallback && replaced_.contains(mention.name);
      });
      const bool given = std::ranges::find(given_, assignment.name) != given_.end();
      known->second =
          !given && !itself && (mentions.empty() || std::ranges::any_of(mentions, is_own));
      return;
    }
    // the value that the script computes for it is not used
    if (std::ranges::find(given_, assignment.name) != given_.end()) return;
    if (is_copy(assignment.value, mentions)) {
      if (const auto from = replaced_.find(mentions.front().name); from != replaced_.end())
        replaced_[assignment.name] = from->second;
      return;
    }
    for (const Mention& mention : mentions)
      if (!mention.option && tell(word, mention)) return;
  }

  bool tell(const ShellWord& word, const Mention& mention) {
    const auto from = replaced_.find(mention.name);
    if (from == replaced_.end()) return false;
    if (found_.size() >= kFoundMost) return true;
    const std::string_view shown =
        word.text.size() > kTextMost
            ? word.text.substr(0, utf8_prefix(word.text.substr(0, kTextMost)))
            : word.text;
    Computed computed{.line = word.line,
                      .variable = std::string(mention.name),
                      .text = std::string(shown),
                      .own = from->second};
    std::ranges::replace_if(
        computed.text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    if (word.text.size() > kTextMost) computed.text += " ...";
    found_.push_back(std::move(computed));
    return true;
  }

  const std::vector<std::string>& given_;
  // variable -> whether the script gives it its own value
  std::map<std::string_view, bool, std::less<>> replaced_;
  std::vector<Computed> found_;
};

}  // namespace

std::vector<Computed> computed_from_placement(std::string_view script,
                                              const std::vector<std::string>& given) {
  return Reader(given).run(script);
}

bool is_placement_variable(std::string_view name) {
  return std::ranges::find(kVariables, name) != kVariables.end();
}

}  // namespace muster::launcher
