#include "common/spec/keys/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/spec/keys/key_table.h"
#include "common/spec/keys/values.h"

namespace muster::spec {
namespace {

bool small_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool letter_or_digit(char c) { return small_or_digit(c) || (c >= 'A' && c <= 'Z'); }

bool starts_and_ends_well(std::string_view text, std::string_view others) {
  return !text.empty() && text.size() <= kJobNameMax && small_or_digit(text.front()) &&
         small_or_digit(text.back()) && std::ranges::all_of(text, [&](char c) {
           return small_or_digit(c) || others.find(c) != std::string_view::npos;
         });
}

// Changes the text to small letters, and characters that a name may not have to '-'. Returns an
// empty text if the result is no name either.
std::string near_job_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool fits = small_or_digit(small) || small == '.' || small == '_' || small == '-';
    if (fits || (!name.empty() && name.back() != '-')) name += fits ? small : '-';
  }
  while (!name.empty() && !small_or_digit(name.back())) name.pop_back();
  return starts_and_ends_well(name, "._-") ? name : "";
}

}  // namespace

bool is_job_name(std::string_view text) { return starts_and_ends_well(text, "._-"); }
bool is_stage_name(std::string_view text) { return starts_and_ends_well(text, "_-"); }

std::string job_name_problem(std::string_view text) {
  const std::string_view accepted = find_key("name")->accepted;
  if (text.empty()) return fmt::format("is missing ({})", accepted);
  if (is_job_name(text)) return {};
  const std::string other = near_job_name(text);
  return fmt::format("'{}' cannot be a job's name{} ({})", shown(text),
                     other.empty() ? ": it starts and ends with a small letter or digit"
                                   : fmt::format("; write '{}'", other),
                     accepted);
}

bool is_input_name(std::string_view text) {
  return !text.empty() && text.size() <= kJobNameMax &&
         std::ranges::all_of(text, [](char c) { return letter_or_digit(c) || c == '_'; });
}

bool is_variable_name(std::string_view text) {
  const auto first = [](char c) {
    return (letter_or_digit(c) && !(c >= '0' && c <= '9')) || c == '_';
  };
  return !text.empty() && text.size() <= 256 && first(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return first(c) || (c >= '0' && c <= '9'); });
}

bool may_be_job(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789._-";
  return text == "@last" || (!text.empty() && text.size() <= kJobNameMax &&
                             text.find_first_not_of(kLetters) == std::string_view::npos);
}

bool climbs(std::string_view path) {
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return false;
}

Source source_of(std::string_view text) {
  Source source;
  for (const std::string_view kind : {"stage", "job"})
    if (text.starts_with(kind) && text.substr(kind.size()).starts_with(':')) source.kind = kind;
  if (source.kind.empty()) return source;
  text.remove_prefix(source.kind.size() + 1);
  const std::size_t end = std::min(text.find('/'), text.size());
  source.name = text.substr(0, end);
  source.slash = end < text.size();
  source.below = text.substr(std::min(end + 1, text.size()));
  return source;
}

}  // namespace muster::spec
