#include "common/text/options.h"

namespace muster {
namespace {

std::size_t value_end(std::span<const std::string_view> words, std::size_t at, ValueRule rule) {
  if (rule == ValueRule::SeveralWords) {
    while (at < words.size() && !is_flag(words[at])) ++at;
    return at;
  }
  const bool taken =
      at < words.size() && (rule == ValueRule::AnyWord || !words[at].starts_with("--"));
  return taken ? at + 1 : at;
}

}  // namespace

bool is_flag(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && !(word[1] >= '0' && word[1] <= '9') &&
         word[1] != '.';
}

std::string_view option_name(std::string_view word) { return word.substr(0, word.find('=')); }

std::optional<OptionSpan> option_at(std::span<const std::string_view> words, std::size_t at,
                                    std::string_view name, ValueRule rule) {
  const std::string_view word = words[at];
  if (option_name(word) != name) return std::nullopt;
  OptionSpan found{.begin = at, .end = at + 1, .attached = word.size() > name.size(), .value = {}};
  if (!found.attached || rule == ValueRule::SeveralWords)
    found.end = value_end(words, at + 1, rule);
  if (found.attached)
    found.value = word.substr(name.size() + 1);
  else if (found.has_value())
    found.value = words[at + 1];
  return found;
}

std::vector<OptionSpan> find_options(std::span<const std::string_view> words, std::string_view name,
                                     ValueRule rule) {
  std::vector<OptionSpan> found;
  for (std::size_t at = 0; at < words.size();) {
    const auto option = option_at(words, at, name, rule);
    if (option) found.push_back(*option);
    at = option ? option->end : at + 1;
  }
  return found;
}

}  // namespace muster
