#include "agent/launch/nearest_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <system_error>

#include "common/compat/patch/document.h"
#include "common/text/words.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamesScanned = 4096, kNameBytesMost = 255;
constexpr std::size_t kAlikeLeast = 4;  // length of a common beginning

std::size_t alike(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::string_view ending(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view() : name.substr(dot);
}

void add_names(const fs::path& dir, std::vector<std::string>& names) {
  std::error_code error;
  for (fs::directory_iterator entry(dir, error), end;
       !error && entry != end && names.size() < kNamesScanned; entry.increment(error))
    if (std::string name = entry->path().filename().string(); name.size() <= kNameBytesMost)
      names.push_back(std::move(name));
}

}  // namespace

std::string nearest_name(std::string_view missing, const std::vector<std::string>& names) {
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (const std::string_view near = nearest(missing, known); !near.empty())
    return std::string(near);
  const std::size_t least = std::max(kAlikeLeast, (missing.size() - ending(missing).size()) / 2);
  std::string_view best;
  std::size_t most = 0;
  for (const std::string_view name : known) {
    const std::size_t same = alike(missing, name);
    if (ending(name) != ending(missing) || same < least || same <= most) continue;
    best = name;
    most = same;
  }
  return std::string(best);
}

fs::path nearest_file(const fs::path& missing) {
  fs::path dir = "/";
  std::error_code error;
  for (auto part = missing.begin(); part != missing.end(); ++part) {
    if (part->empty() || *part == "/") continue;
    if (fs::exists(dir / *part, error)) {
      dir /= *part;
      continue;
    }
    std::vector<std::string> names;
    add_names(dir, names);
    std::ranges::sort(names);  // so the answer is the same on every node
    const std::string near = nearest_name(part->string(), names);
    if (near.empty()) return {};
    fs::path found = dir / near;
    fs::path rest = found;
    for (auto behind = std::next(part); behind != missing.end(); ++behind) rest /= *behind;
    return fs::exists(rest, error) ? rest : found;
  }
  return {};
}

std::string nearest_program(std::string_view missing, std::string_view path) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= path.size() && names.size() < kNamesScanned;) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) add_names(path.substr(begin, end - begin), names);
    begin = end + 1;
  }
  std::ranges::sort(names);
  const std::vector<std::string_view> known(names.begin(), names.end());
  return std::string(nearest(missing, known));  // a common beginning is not enough here
}

std::string nearest_text(const fs::path& missing) {
  const fs::path near = nearest_file(missing);
  return near.empty() ? std::string()
                      : fmt::format("; nearest: '{}'", patch::shown_path(near.string()));
}

}  // namespace muster::agent
