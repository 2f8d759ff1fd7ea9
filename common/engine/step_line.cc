#include "common/engine/step_line.h"

#include <cstring>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace muster::engine {
namespace {

// A launcher or logger may put its own prefix first; beyond this no step is looked for.
constexpr std::size_t kPrefixBytesMax = 256;

bool digit(char c) { return c >= '0' && c <= '9'; }
bool word_char(char c) { return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

void skip(std::string_view& text, std::string_view chars) { text.remove_prefix(std::min(text.find_first_not_of(chars), text.size())); }

// Takes digits off the front.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  if (text.empty() || !digit(text[0])) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<double> leading_double(std::string_view text) {
  skip(text, " \t+");
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view text) {
  skip(text, " \t");
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

void read_fields(std::string_view text, StepLine& result) {
  bool lm_loss = false;
  while (!text.empty()) {
    const std::size_t bar = std::min(text.find('|'), text.size());
    const std::string_view field = text.substr(0, bar);
    text.remove_prefix(std::min(bar + 1, text.size()));
    const std::size_t colon = field.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trimmed(field.substr(0, colon));
    const std::string_view value = field.substr(colon + 1);
    if (key == "lm loss" || (key == "loss" && !lm_loss)) {
      // A loss that is left out or "nan" is no loss; other losses ("load_balancing_loss", "mtp_1 loss") do not stand in for it.
      result.has_loss = false;
      lm_loss = key == "lm loss";
      set_loss(result, value);
    } else if (key.starts_with("elapsed time per iteration")) {
      if (const auto time = leading_double(value)) result.seconds = key.ends_with("(ms)") ? *time / 1000 : key.ends_with("(s)") ? *time : 0;
    }
  }
}

// The loss of a common step line: the last word before the number is loss, or ends in it.
void find_loss(std::string_view text, StepLine& result) {
  for (std::size_t i = 0; i + 4 < text.size(); ++i) {
    if (lower(text[i]) != 'l' || lower(text[i + 1]) != 'o' || lower(text[i + 2]) != 's' || lower(text[i + 3]) != 's') continue;
    if (i > 0 && word_char(text[i - 1]) && text[i - 1] != '_') continue;
    std::string_view rest = text.substr(i + 4);
    if (word_char(rest[0])) continue;
    skip(rest, " \t:='\"");
    set_loss(result, rest);
    if (result.has_loss) return;
  }
}

}  // namespace

std::optional<std::int64_t> whole_number(std::string_view text) {
  const auto number = take_number(text);
  return text.empty() ? number : std::nullopt;
}

void set_loss(StepLine& line, std::string_view text) {
  const auto value = leading_double(text);
  if (!value) return;
  line.loss = *value;
  line.has_loss = true;
}

std::optional<StepLine> megatron_step(std::string_view line) {
  constexpr std::string_view kWord = "iteration";
  const std::string_view head = line.substr(0, kPrefixBytesMax);
  std::size_t at = 0;
  while (at < head.size()) {
    const void* found = memmem(head.data() + at, head.size() - at, kWord.data(), kWord.size());
    if (found == nullptr) return std::nullopt;
    const auto start = static_cast<std::size_t>(static_cast<const char*>(found) - head.data());
    at = start + kWord.size();
    if (start > 0 && head[start - 1] != ' ' && head[start - 1] != ']' && head[start - 1] != '\t') continue;
    std::string_view rest = line.substr(at);
    if (rest.empty() || (rest[0] != ' ' && !digit(rest[0]))) continue;
    StepLine result;
    skip(rest, " ");
    const auto step = take_number(rest);
    skip(rest, " ");
    if (!step || rest.empty() || rest[0] != '/') continue;
    rest.remove_prefix(1);
    skip(rest, " ");
    const auto total = take_number(rest);
    skip(rest, " ");
    if (!total || rest.empty() || rest[0] != '|') continue;
    rest.remove_prefix(1);
    result.step = *step;
    result.total = *total;
    read_fields(rest, result);
    return result;
  }
  return std::nullopt;
}

std::optional<StepLine> common_step(std::string_view line) {
  const std::string_view head = line.substr(0, kPrefixBytesMax);
  for (std::size_t i = 0; i + 5 < head.size(); ++i) {
    const char c = lower(head[i]);
    if (c != 's' && c != 'i') continue;
    const char* p = head.data() + i;
    const bool step_word = c == 's' && lower(p[1]) == 't' && lower(p[2]) == 'e' && lower(p[3]) == 'p';
    const bool iter_word = c == 'i' && lower(p[1]) == 't' && lower(p[2]) == 'e' && lower(p[3]) == 'r';
    if (!step_word && !iter_word) continue;
    if (i > 0 && word_char(head[i - 1]) && head[i - 1] != '_') continue;
    std::string_view rest = line.substr(i + 4);
    if (iter_word && rest.size() > 5 && lower(rest[0]) == 'a' && lower(rest[1]) == 't' && lower(rest[2]) == 'i' && lower(rest[3]) == 'o' &&
        lower(rest[4]) == 'n')
      rest.remove_prefix(5);
    if (word_char(rest[0]) && !digit(rest[0])) continue;
    const std::size_t before = rest.size();
    skip(rest, " \t:=#['\"");
    if (before - rest.size() > 12) continue;
    StepLine result;
    const auto step = take_number(rest);
    if (!step || (!rest.empty() && (word_char(rest[0]) || (rest[0] == '.' && rest.size() > 1 && digit(rest[1]))))) continue;
    result.step = *step;
    std::string_view behind = rest;
    skip(behind, " ");
    if (!behind.empty() && behind[0] == '/') {
      behind.remove_prefix(1);
      skip(behind, " ");
      if (const auto total = take_number(behind); total && (behind.empty() || !word_char(behind[0]))) result.total = *total;
    }
    find_loss(rest, result);
    if (result.has_loss || result.total >= result.step + (result.total == 0 ? 1 : 0)) return result;
  }
  return std::nullopt;
}

}  // namespace muster::engine
