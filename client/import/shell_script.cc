#include "client/import/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "common/compat/launcher/computed.h"
#include "common/compat/shell/shell_words.h"
#include "common/io/file.h"
#include "common/text/shell_lexer.h"

namespace muster::import {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kScriptMost = 1U << 20U;

bool is_shell(std::string_view name) {
  constexpr auto kShells = std::to_array<std::string_view>({"bash", "sh", "dash", "ksh", "zsh"});
  // If there is no such character, npos + 1 is 0.
  return std::ranges::find(kShells, name.substr(name.rfind('/') + 1)) != kShells.end();
}

// True for a text that begins like "#!/usr/bin/env bash". A text without "#!" is a shell script if
// its file name ends with ".sh" or ".bash".
bool is_shell_text(std::string_view text, std::string_view name) {
  if (!text.starts_with("#!")) return name.ends_with(".sh") || name.ends_with(".bash");
  const std::string_view first = text.substr(0, text.find('\n'));
  return first.find("sh") != std::string_view::npos;
}

}  // namespace

ShellScript shell_script_of(const std::vector<std::string>& command, const std::string& directory) {
  if (command.empty()) return {};
  const bool by_shell = is_shell(command.front());
  auto word = command.begin();
  if (by_shell)
    word = std::find_if(command.begin() + 1, command.end(), [](const std::string& each) {
      return !each.starts_with('-') || each == "-c";
    });
  if (word == command.end() || *word == "-c" || word->empty()) return {};
  const fs::path path = fs::path(directory) / *word;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  auto text = io::read_file(path, kScriptMost);
  if (!text || (!by_shell && !is_shell_text(*text, *word))) return {};
  return {.name = *word, .text = std::move(*text)};
}

std::vector<std::string> computed_warnings(const ShellScript& script,
                                           const std::vector<std::string>& replaced) {
  std::vector<std::string> lines;
  for (const launcher::Computed& one : launcher::computed_from_placement(script.text, replaced)) {
    if (!one.own) continue;
    lines.push_back(
        fmt::format("{}:{}: '{}' is computed from the script's own {}, while the launcher gets the "
                    "job's: take the script's assignments of such variables out, or replace them "
                    "by launch.vars",
                    script.name, one.line, one.text, one.variable));
  }
  return lines;
}

std::vector<std::string> weights_warnings(const ShellScript& script,
                                          const std::vector<std::string>& replaced) {
  constexpr std::string_view kFlag = "--no-save-optim";
  std::vector<std::string> lines;
  for (const launcher::ShellCommand& command : launcher::shell_commands(script.text)) {
    for (const launcher::ShellWord& word : command) {
      const auto name = shell_assignment(word.text).name;
      if (!name.empty() && std::ranges::find(replaced, name) != replaced.end()) continue;
      for (std::size_t at = word.text.find(kFlag); at != std::string_view::npos;
           at = word.text.find(kFlag, at + kFlag.size())) {
        const std::string_view behind = word.text.substr(at + kFlag.size(), 1);
        if (!behind.empty() && (behind == "-" || behind == "_" ||
                                std::isalnum(static_cast<unsigned char>(behind.front())) != 0))
          continue;
        const auto line =
            word.line + static_cast<std::size_t>(std::ranges::count(word.text.substr(0, at), '\n'));
        lines.push_back(
            fmt::format("{}:{}: --no-save-optim: checkpoints hold weights alone, so that no "
                        "attempt goes on from them: take it out (the --no-load-* may stay), "
                        "or write resume: none",
                        script.name, line));
      }
    }
  }
  return lines;
}

}  // namespace muster::import
