#include "common/compat/patch/path.h"

#include <fmt/format.h>

#include <charconv>

#include "common/compat/patch/document.h"
#include "common/engine/ranktable/words.h"

namespace muster::patch {
namespace {

using ranktable::shown;

constexpr std::string_view kAccepted = "a.b.c | list[2] | list[type=NAME].key";

// Reads up to one of `ends` that has no backslash before it, and moves `text` to it.
std::string take(std::string_view& text, std::string_view ends) {
  std::string out;
  while (!text.empty() && ends.find(text.front()) == std::string_view::npos) {
    if (text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

// Parses the text after '['. False: it is not an item.
bool take_item(std::string_view& text, Step& step) {
  step.name = take(text, "=]");
  if (text.starts_with('=')) {
    text.remove_prefix(1);
    step.kind = Step::Kind::Match;
    step.value = take(text, "]");
    if (step.name.empty()) return false;
  } else {
    step.kind = Step::Kind::Index;
    const char* end = step.name.data() + step.name.size();
    const auto [at, error] = std::from_chars(step.name.data(), end, step.index);
    if (step.name.empty() || error != std::errc{} || at != end) return false;
    step.name.clear();
  }
  if (!text.starts_with(']')) return false;
  text.remove_prefix(1);
  return true;
}

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

Result<std::vector<Step>> parse_path(std::string_view text) {
  const std::string_view whole = text;
  const auto no = [whole](std::string_view why) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'{}' {} ({})", shown(whole), why, kAccepted));
  };
  if (text.empty()) return no("is empty: it has to say which key");
  if (text.size() > kPathBytesMax)
    return no(fmt::format("has {} bytes, at most {}", text.size(), kPathBytesMax));
  std::vector<Step> steps;
  bool key = true;  // a key may be at this position
  while (!text.empty()) {
    if (steps.size() >= kDepthMax) return no(fmt::format("has more than {} parts", kDepthMax));
    Step step;
    if (text.front() == '[') {
      text.remove_prefix(1);
      if (!take_item(text, step))
        return no("has a '[' that neither a number nor KEY=NAME and a ']' follow");
      key = false;
    } else {
      if (!key) {
        if (text.front() != '.') return no("has something between ']' and the next '.'");
        text.remove_prefix(1);
      }
      step.name = take(text, ".[");
      if (step.name.empty()) return no("has an empty part");
      key = false;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::string path_text(const std::vector<Step>& steps, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count && i < steps.size(); ++i) {
    const Step& step = steps[i];
    switch (step.kind) {
      case Step::Kind::Key: out += (out.empty() ? "" : ".") + escaped(step.name, ".[]\\"); break;
      case Step::Kind::Index: out += fmt::format("[{}]", step.index); break;
      case Step::Kind::Match:
        out += fmt::format("[{}={}]", escaped(step.name, "=]\\"), escaped(step.value, "]\\"));
        break;
    }
  }
  return out;
}

}  // namespace muster::patch
