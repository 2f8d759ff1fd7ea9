#include "common/store/selection.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/controls.h"
#include "common/base/utf8.h"

namespace muster::store {
namespace {

// RE2 goes through a name once, whatever the pattern is.
std::string expression_of(std::string_view pattern) {
  std::string expression = pattern.find('/') == std::string_view::npos ? "(?s)(?:.*/)?" : "(?s)";
  const bool below = pattern.ends_with('/');
  if (pattern.starts_with('/')) pattern.remove_prefix(1);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '*' && pattern.substr(i).starts_with("**")) {
      expression += ".*";
      ++i;
    } else if (c == '*') {
      expression += "[^/]*";
    } else if (c == '?') {
      expression += "[^/]";
    } else {
      if (c == '\\') ++i;
      expression += re2::RE2::QuoteMeta({&pattern[i], 1});
    }
  }
  return below ? expression + ".*" : expression;
}

constexpr std::string_view kRefused = "[]{}";

std::string problem_of(const std::string& pattern) {
  if (pattern.empty()) return "is empty";
  if (pattern.size() > kPatternBytesMost)
    return fmt::format("has {} bytes, at most {}", pattern.size(), kPatternBytesMost);
  if (!is_utf8(pattern)) return "is no UTF-8";
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      if (++i == pattern.size()) return "ends with a backslash that takes nothing";
    } else if (kRefused.contains(pattern[i])) {
      return fmt::format(
          "has '{}': only *, ** and ? stand for others; a backslash before it takes "
          "it as it is",
          pattern[i]);
    }
  }
  return {};
}

}  // namespace

struct Selection::Patterns {
  std::vector<std::unique_ptr<re2::RE2>> each;
};

Selection::Selection(std::unique_ptr<const Patterns> patterns) : patterns_(std::move(patterns)) {}
Selection::~Selection() = default;
Selection::Selection(Selection&&) noexcept = default;
Selection& Selection::operator=(Selection&&) noexcept = default;

Result<void> Selection::check(std::span<const std::string> patterns) {
  if (patterns.size() > kPatternsMost)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("has {} patterns, at most {}", patterns.size(), kPatternsMost));
  for (const std::string& pattern : patterns)
    if (const std::string wrong = problem_of(pattern); !wrong.empty())
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("'{}' {}", without_controls(pattern), wrong));
  return {};
}

Result<Selection> Selection::make(std::span<const std::string> patterns) {
  if (patterns.empty()) return Selection(nullptr);
  if (auto sound = check(patterns); !sound) return fail(std::move(sound.error()));
  auto made = std::make_unique<Patterns>();
  for (const std::string& pattern : patterns) {
    made->each.push_back(
        std::make_unique<re2::RE2>(expression_of(pattern), re2::RE2::CannedOptions::Quiet));
    if (!made->each.back()->ok())
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("'{}' is no pattern: {}", without_controls(pattern),
                              made->each.back()->error()));
  }
  return Selection(std::move(made));
}

bool Selection::has(std::string_view name) const {
  return patterns_ == nullptr || std::ranges::any_of(patterns_->each, [&](const auto& one) {
           return re2::RE2::FullMatch(name, *one);
         });
}

std::string exact_pattern(std::string_view name) {
  std::string pattern = "/";
  for (const char c : name) {
    if (c == '*' || c == '?' || c == '\\' || kRefused.contains(c)) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace muster::store
