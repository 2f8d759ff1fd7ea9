#include "client/render/launch_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::render {

std::string shell_quote(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string command_text(const v1::RankLaunch& launch) {
  std::string out;
  for (const auto& word : launch.argv()) out += (out.empty() ? "" : " ") + shell_quote(word);
  return out;
}

std::string launch_text(const v1::RankLaunch& launch, const Style& style) {
  std::string out = style.paint(Tint::Dim, fmt::format("# rank {} on {}", launch.rank(), launch.node())) + "\n";
  out += fmt::format("cd {}\n", shell_quote(launch.cwd()));
  std::size_t width = 0;
  for (const auto& value : launch.env()) width = std::max(width, value.name().size() + shell_quote(value.value()).size() + 1);
  width = std::min<std::size_t>(width, 64);
  for (const auto& value : launch.env()) {
    out += fmt::format("export {:<{}}  {}\n", value.name() + "=" + shell_quote(value.value()), width, style.paint(Tint::Dim, "# " + value.source()));
  }
  return out + command_text(launch) + "\n";
}

}  // namespace muster::render
