#include "common/compat/patch/shell_vars.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "common/compat/patch/document.h"
#include "common/engine/ranktable/words.h"
#include "common/text/shell_lexer.h"
#include "common/text/shell_word.h"
#include "common/text/words.h"

namespace muster::patch {
namespace {

using ranktable::shown;

struct Assignment {
  std::string_view name;
  std::size_t from = 0, to = 0;  // positions of the value
  bool array = false;
};

void add_assignment(const ShellToken& token, std::vector<Assignment>& found) {
  if (!token.assigning) return;
  const std::string_view name = shell_assignment(token.text).name;
  if (name.empty() || token.text[name.size()] != '=') return;  // NAME+=VALUE stays
  const std::size_t from = name.size() + 1;
  found.push_back({.name = name,
                   .from = token.at + from,
                   .to = token.at + token.text.size(),
                   .array = token.text.substr(from).starts_with('(')});
}

}  // namespace

Result<std::string> replaced_assignments(std::string_view name, std::string_view script,
                                         const Variables& values) {
  const auto no = [name](std::string_view variable, const std::string& why) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("replacing '{}=' in '{}': {}", shown(variable), shown_path(name), why));
  };
  if (script.size() > kFileBytesMax)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("changing script '{}': it has {} bytes, at most {}", shown_path(name),
                            script.size(), kFileBytesMax));
  std::vector<Assignment> found;
  ShellLexer lexer(script);
  while (const auto token = lexer.next()) add_assignment(*token, found);
  if (const auto& open = lexer.open())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("changing script '{}': a {} opened in line {} is never closed",
                            shown_path(name), open->what, open->line));
  std::set<std::string, std::less<>> left;
  for (const auto& [variable, value] : values) left.insert(variable);
  std::string out;
  std::size_t done = 0;
  for (const Assignment& one : found) {
    const auto value = values.find(std::string(one.name));
    if (value == values.end()) continue;
    if (one.array) {
      const auto line = std::ranges::count(script.substr(0, one.from), '\n') + 1;
      return no(one.name,
                fmt::format("line {} makes it a list; only single values are replaced", line));
    }
    left.erase(value->first);
    out += script.substr(done, one.from - done);
    out += shell_word(value->second);
    done = one.to;
  }
  if (!left.empty()) {
    std::set<std::string_view> names;
    for (const Assignment& one : found)
      if (one.name.size() <= 128 && names.size() < 2000) names.insert(one.name);
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string_view near = nearest(*left.begin(), known);
    return no(*left.begin(),
              "nothing in it assigns that" +
                  (near.empty() ? std::string() : fmt::format("; nearest: '{}'", near)));
  }
  out += script.substr(done);
  return out;
}

}  // namespace muster::patch
