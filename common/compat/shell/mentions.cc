#include "common/compat/shell/mentions.h"

#include <algorithm>
#include <array>
#include <string>

#include "common/text/shell_lexer.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kFrontMost = 120;  // bytes in front of a variable that may contain its option

constexpr auto kOptions = std::to_array<std::string_view>(
    {"nnodes", "nproc_per_node", "node_rank", "master_addr", "master_port", "rdzv_endpoint",
     "worker_num", "local_worker_num"});

// Also accepts the second half of `--rdzv_endpoint $MASTER_ADDR:$MASTER_PORT`.
bool behind_option(std::string_view text, std::size_t at) {
  if (option_in_front(text, at)) return true;
  if (at == 0 || text[at - 1] != ':') return false;
  const std::string_view front =
      text.substr(at - std::min(at, kFrontMost), std::min(at, kFrontMost));
  const std::size_t dollar = front.rfind('$');
  if (dollar == std::string_view::npos ||
      front.substr(dollar).find_first_of(" \t\n") != std::string_view::npos)
    return false;
  return option_in_front(front, dollar);
}

}  // namespace

bool option_in_front(std::string_view text, std::size_t at) {
  std::string_view front = text.substr(0, at);
  if (front.size() > kFrontMost) front.remove_prefix(front.size() - kFrontMost);
  while (!front.empty() &&
         std::string_view("=\"'\\ \t\n").find(front.back()) != std::string_view::npos)
    front.remove_suffix(1);
  std::string word(front.substr(front.find_last_of(" \t\n\"'(=") + 1));  // npos + 1 is 0
  if (!word.starts_with("--")) return false;
  word.erase(0, 2);
  std::ranges::replace(word, '-', '_');
  return std::ranges::find(kOptions, word) != kOptions.end();
}

std::vector<Mention> mentions_of(std::string_view text) {
  std::vector<Mention> found;
  struct Level {
    int brackets = 2;
    bool option = false;
  };
  std::vector<Level> arithmetic;  // for each open $((
  bool single = false, string = false;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (single) {
      single = c != '\'';
      ++i;
    } else if (c == '\\') {
      i += 2;
    } else if (c == '\'' && !string) {
      single = true;
      ++i;
    } else if (c == '"') {
      string = !string;
      ++i;
    } else if (text.substr(i).starts_with("$((")) {
      arithmetic.push_back({.option = behind_option(text, i)});
      i += 3;
    } else if (!arithmetic.empty() && (c == '(' || c == ')')) {
      arithmetic.back().brackets += c == '(' ? 1 : -1;
      if (arithmetic.back().brackets == 0) arithmetic.pop_back();
      ++i;
    } else if (c == '$') {
      const std::size_t brace = i + 1 < text.size() && text[i + 1] == '{' ? 1 : 0;
      const std::size_t name = i + 1 + brace,
                        length = shell_name_length(text.substr(std::min(name, text.size())));
      if (length > 0) {
        const std::string_view behind = text.substr(name + length);
        found.push_back(
            {.name = text.substr(name, length),
             .arithmetic = !arithmetic.empty(),
             .option = arithmetic.empty() ? behind_option(text, i) : arithmetic.back().option,
             .fallback = brace == 1 && (behind.starts_with(":-") || behind.starts_with('-') ||
                                        behind.starts_with(":="))});
      }
      i = name + length;
    } else if (!arithmetic.empty()) {
      const std::size_t length = shell_name_length(text.substr(i));
      const bool within =
          i > 0 && ((text[i - 1] >= '0' && text[i - 1] <= '9') || text[i - 1] == '_');
      if (length > 0 && !within)
        found.push_back({.name = text.substr(i, length),
                         .arithmetic = true,
                         .option = arithmetic.back().option});
      i += std::max<std::size_t>(1, length);
    } else {
      ++i;
    }
  }
  return found;
}

}  // namespace muster::launcher
