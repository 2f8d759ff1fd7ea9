#include "common/spec/complete_container.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "common/spec/values.h"

namespace muster::spec {
namespace {

constexpr std::string_view kFileScheme = "file://";
constexpr std::size_t kImageNameMax = 512, kPathMax = 4096;
constexpr int kMountsMax = 64;

// Returns what is wrong with the path, or an empty text. A container tool gets it as one of
// comma-separated values.
std::string path_trouble(std::string_view path) {
  if (!path.starts_with('/')) return "is not absolute";
  if (path.size() > kPathMax) return fmt::format("has {} bytes, at most {}", path.size(), kPathMax);
  if (std::ranges::any_of(path,
                          [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }))
    return "has control characters in it";
  if (path.find_first_of(",\"") != std::string_view::npos)
    return "has a ',' or '\"' in it, which podman and docker do not accept";
  for (std::size_t at = 1; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == ".." || part == "." || part.empty()) return "has '..', '.' or '//' in it";
    at = end + 1;
  }
  return path.size() > 1 && path.ends_with('/') ? "ends with '/'" : "";
}

bool is_image_name(std::string_view name) {
  const auto alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return name.size() <= kImageNameMax && alnum(name.front()) &&
         name.find("://") == std::string_view::npos && std::ranges::all_of(name, [&](char c) {
           return alnum(c) || std::string_view("._-/:@").find(c) != std::string_view::npos;
         });
}

bool is_or_below(std::string_view path, std::string_view dir) {
  return path == dir || (path.starts_with(dir) && path.substr(dir.size()).starts_with('/'));
}

}  // namespace

void check_container(const v1::JobSpec& spec, const SayProblem& problem) {
  const v1::RuntimeSpec& runtime = spec.runtime();
  if (runtime.image().empty()) {
    if (!runtime.mounts().empty())
      problem("runtime.mounts",
              "is of a container, and there is none: name one with runtime.image");
    return;
  }
  if (runtime.image().starts_with(kFileScheme)) {
    const std::string_view path = std::string_view(runtime.image()).substr(kFileScheme.size());
    if (const std::string trouble = path == "/" ? "is no file" : path_trouble(path);
        !trouble.empty())
      problem("runtime.image",
              fmt::format("'{}' {} (file:///x.tar: an absolute path that every node sees)",
                          shown(path), trouble));
  } else if (!is_image_name(runtime.image())) {
    problem("runtime.image",
            fmt::format("'{}' is no name of an image (registry/name:tag, or file:///x.tar)",
                        shown(runtime.image())));
  }
  std::string_view code = spec.code().at();
  while (code.ends_with('/')) code.remove_suffix(1);
  if (!code.empty()) {
    if (const std::string trouble = path_trouble(code); !trouble.empty())
      problem("code.at", fmt::format("'{}' {}; it is where it is in the container, too",
                                     shown(code), trouble));
  }
  if (runtime.mounts_size() > kMountsMax)
    return problem("runtime.mounts",
                   fmt::format("has {} entries, at most {}", runtime.mounts_size(), kMountsMax));
  std::set<std::string> targets;
  for (int i = 0; i < runtime.mounts_size(); ++i) {
    const std::string key = fmt::format("runtime.mounts[{}]", i);
    const v1::MountSpec& mount = runtime.mounts(i);
    if (const std::string trouble = path_trouble(mount.source()); !trouble.empty()) {
      problem(key, fmt::format("'{}' {} (an absolute path of the node)", shown(mount.source()),
                               trouble));
    } else if (const std::string wrong = path_trouble(mount.target()); !wrong.empty()) {
      problem(key, fmt::format("'{}' {} (an absolute path in the container)", shown(mount.target()),
                               wrong));
    } else if (mount.target() == "/" || mount.target() == "/dev" ||
               is_or_below(mount.target(), "/proc") || is_or_below(mount.target(), "/sys")) {
      problem(key, fmt::format("'{}' is the container's own: mount it elsewhere",
                               shown(mount.target())));
    } else if (!targets.insert(mount.target()).second) {
      problem(key, fmt::format("there is another mount at '{}' already", shown(mount.target())));
    }
  }
}

}  // namespace muster::spec
