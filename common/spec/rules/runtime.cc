// The rules of runtime: the environment, the setup, the container, the limits.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "common/spec/keys/key_table.h"
#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"

namespace muster::spec {
namespace {

constexpr std::string_view kFileScheme = "file://";
constexpr std::size_t kImageNameMax = 512, kPathMax = 4096;
constexpr int kMountsMax = 64;
// The limit is one argument of the shell that reads it, with space for the text around it.
constexpr std::size_t kSetupBytesMax = 64 * 1024;
// With less memory than the worker and the container's own start need, the kernel would kill them,
// and nobody would understand why. Docker's minimum is 6 MiB.
constexpr std::uint64_t kMemoryMin = 16ULL << 20U, kMemoryMax = 1ULL << 60U;
constexpr std::uint32_t kMillicpusMin = 100;

void complete_setup(Draft& draft, v1::RuntimeSpec& runtime) {
  std::size_t bytes = 0;
  for (int i = 0; i < runtime.setup_size(); ++i) {
    const std::string& text = runtime.setup(i);
    bytes += text.size() + 1;
    if (text.find_first_not_of(" \t\n") == std::string::npos)
      draft.problem(fmt::format("runtime.setup[{}]", i), "is empty: a command for a shell");
    else if (text.contains("${secret:"))
      draft.problem(fmt::format("runtime.setup[{}]", i),
                    "templates are not filled in here; name the secret in runtime.env, and use "
                    "the variable");
  }
  if (bytes > kSetupBytesMax)
    draft.problem("runtime.setup",
                  fmt::format("has {} bytes, at most {}; put it into a script and call that", bytes,
                              kSetupBytesMax));
  if (runtime.setup().empty()) {
    if (runtime.has_setup_timeout())
      draft.problem("runtime.setup.run", fmt::format("is missing, and there is a time for it ({})",
                                                     accepted_of("runtime.setup.run")));
    return;
  }
  if (!runtime.has_setup_timeout())
    runtime.mutable_setup_timeout()->set_seconds(
        std::chrono::seconds(std::chrono::minutes(30)).count());
  check_duration(draft, "runtime.setup.timeout", runtime.setup_timeout(), std::chrono::seconds(1),
                 std::chrono::hours(24));
}

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

void check_container(Draft& draft) {
  const v1::RuntimeSpec& runtime = draft.spec.runtime();
  if (runtime.image().empty()) {
    if (!runtime.mounts().empty())
      draft.problem("runtime.mounts",
                    "is of a container, and there is none: name one with runtime.image");
    return;
  }
  if (runtime.image().starts_with(kFileScheme)) {
    const std::string_view path = std::string_view(runtime.image()).substr(kFileScheme.size());
    if (const std::string trouble = path == "/" ? "is no file" : path_trouble(path);
        !trouble.empty())
      draft.problem("runtime.image",
                    fmt::format("'{}' {} (file:///x.tar: an absolute path that every node sees)",
                                shown(path), trouble));
  } else if (!is_image_name(runtime.image())) {
    draft.problem("runtime.image",
                  fmt::format("'{}' is no name of an image (registry/name:tag, or file:///x.tar)",
                              shown(runtime.image())));
  }
  std::string_view code = draft.spec.code().at();
  while (code.ends_with('/')) code.remove_suffix(1);
  if (!code.empty()) {
    if (const std::string trouble = path_trouble(code); !trouble.empty())
      draft.problem("code.at", fmt::format("'{}' {}; it is where it is in the container, too",
                                           shown(code), trouble));
  }
  if (runtime.mounts_size() > kMountsMax)
    return draft.problem("runtime.mounts", fmt::format("has {} entries, at most {}",
                                                       runtime.mounts_size(), kMountsMax));
  std::set<std::string> targets;
  for (int i = 0; i < runtime.mounts_size(); ++i) {
    const std::string key = fmt::format("runtime.mounts[{}]", i);
    const v1::MountSpec& mount = runtime.mounts(i);
    if (const std::string trouble = path_trouble(mount.source()); !trouble.empty()) {
      draft.problem(key, fmt::format("'{}' {} (an absolute path of the node)",
                                     shown(mount.source()), trouble));
    } else if (const std::string wrong = path_trouble(mount.target()); !wrong.empty()) {
      draft.problem(key, fmt::format("'{}' {} (an absolute path in the container)",
                                     shown(mount.target()), wrong));
    } else if (mount.target() == "/" || mount.target() == "/dev" ||
               is_or_below(mount.target(), "/proc") || is_or_below(mount.target(), "/sys")) {
      draft.problem(key, fmt::format("'{}' is the container's own: mount it elsewhere",
                                     shown(mount.target())));
    } else if (!targets.insert(mount.target()).second) {
      draft.problem(key,
                    fmt::format("there is another mount at '{}' already", shown(mount.target())));
    }
  }
}

// Memory and processors can be limited only in a container. The cgroups that muster makes for other
// runs need no controllers; only few agents get controllers delegated.
void check_limits(Draft& draft) {
  const bool container = !draft.spec.runtime().image().empty();
  const v1::LimitSpec& limits = draft.spec.runtime().limits();
  if (limits.nofile() > kNofileMax)
    draft.problem("runtime.limits.nofile", fmt::format("{} is out of range ({})", limits.nofile(),
                                                       accepted_of("runtime.limits.nofile")));
  const auto needs_container = [&](const char* key) {
    draft.problem(key, "is of a container, and there is none: name one with runtime.image");
  };
  if (limits.memory_bytes() != 0 && !container)
    needs_container("runtime.limits.memory");
  else if (limits.memory_bytes() != 0 &&
           (limits.memory_bytes() < kMemoryMin || limits.memory_bytes() > kMemoryMax))
    draft.problem("runtime.limits.memory",
                  fmt::format("{} bytes are out of range ({})", limits.memory_bytes(),
                              accepted_of("runtime.limits.memory")));
  if (limits.millicpus() != 0 && !container)
    needs_container("runtime.limits.cpus");
  else if (limits.millicpus() != 0 &&
           (limits.millicpus() < kMillicpusMin || limits.millicpus() > kMillicpusMax))
    draft.problem("runtime.limits.cpus",
                  fmt::format("{} thousandths are out of range ({})", limits.millicpus(),
                              accepted_of("runtime.limits.cpus")));
}

}  // namespace

void complete_runtime(Draft& draft) {
  v1::RuntimeSpec& runtime = *draft.spec.mutable_runtime();
  if (runtime.python().empty()) runtime.set_python("auto");
  check_environment(draft, "runtime.env", runtime.env());
  complete_setup(draft, runtime);
  check_container(draft);
  if (runtime.user().empty()) runtime.set_user("submitter");
  if (runtime.user() != "submitter")
    draft.problem("runtime.user",
                  fmt::format("'{}' is not accepted: another user is not in this release ({})",
                              shown(runtime.user()), accepted_of("runtime.user")));
  v1::LimitSpec& limits = *runtime.mutable_limits();
  if (!limits.has_nofile()) limits.set_nofile(kNofileMax);
  if (!limits.has_memlock()) limits.set_memlock(std::numeric_limits<std::uint64_t>::max());
  check_limits(draft);
}

}  // namespace muster::spec
