#include "common/compat/launcher/bare_launch.h"

#include <algorithm>
#include <array>
#include <vector>

#include "common/base/utf8.h"
#include "common/compat/launcher/call.h"
#include "common/compat/shell/shell_words.h"
#include "common/text/shell_lexer.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kShownMost = 80;

constexpr auto kHarmless = std::to_array<std::string_view>(
    {"export", "readonly", "declare", "typeset", "unset", "echo", "set", "shopt", "ulimit", "cd",
     "torchrun", "msrun", "tee", "exit", "wait", "true", ":"});

bool is_python_launch(const ShellCommand& command, std::size_t at) {
  const std::string_view name = command[at].text;
  if (!name.starts_with("python") || name.find('/') != std::string_view::npos) return false;
  std::vector<std::string> words;
  for (std::size_t i = at + 1; i < command.size(); ++i) words.emplace_back(command[i].text);
  return parse_python(words).launches;
}

}  // namespace

std::optional<MoreThanLaunch> more_than_launch(std::string_view script) {
  for (const ShellCommand& command : shell_commands(script)) {
    std::size_t at = 0;
    while (at < command.size() && !shell_assignment(command[at].text).name.empty()) ++at;
    if (at == command.size() || std::ranges::find(kHarmless, command[at].text) != kHarmless.end() ||
        is_python_launch(command, at))
      continue;
    MoreThanLaunch more{.line = command[at].line, .command = {}};
    for (std::size_t i = at; i < command.size() && more.command.size() < kShownMost; ++i)
      more.command += (i == at ? "" : " ") + std::string(command[i].text);
    if (more.command.size() > kShownMost)
      more.command = more.command.substr(
                         0, utf8_prefix(std::string_view(more.command).substr(0, kShownMost))) +
                     " ...";
    std::ranges::replace_if(
        more.command, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    return more;
  }
  return std::nullopt;
}

}  // namespace muster::launcher
