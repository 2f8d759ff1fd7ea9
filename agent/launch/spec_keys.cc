#include "agent/launch/spec_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/launch/nearest_file.h"
#include "common/compat/patch/document.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScriptKey = "launch.script";

// True if `path` is the script of launch.script. If each rank has its own script (a template), any
// of them counts.
bool is_the_script(const v1::NodeLaunch& order, const fs::path& path) {
  return std::ranges::any_of(order.needed(), [&](const v1::NeededFile& file) {
    return file.key() == kScriptKey && file.source() == path.native();
  });
}

fs::path normal_in(const std::string& cwd, const std::string& path) {
  return (fs::path(cwd) / path).lexically_normal();
}

bool is_below(const std::string& path, const std::string& dir) {
  return !dir.empty() && path.starts_with(dir) && path.substr(dir.size()).starts_with('/');
}

}  // namespace

std::string key_of_script(const v1::NodeLaunch& order, const fs::path& path) {
  return is_the_script(order, path.lexically_normal()) ? std::string(kScriptKey) : "launch.run";
}

std::string key_of_program(const v1::NodeLaunch& order, const v1::RankProcess& rank) {
  if (rank.argv().empty()) return "launch.run";
  if (rank.argv(0).find('/') != std::string::npos &&
      is_the_script(order, normal_in(rank.cwd(), rank.argv(0))))
    return std::string(kScriptKey);
  // An engine puts its interpreter before launch.script.
  const bool interpreter = rank.argv_size() > 2 && rank.argv(1) == "-u" &&
                           is_the_script(order, normal_in(rank.cwd(), rank.argv(2)));
  return interpreter ? "runtime.python" : "launch.run";
}

std::string missing_file(const v1::NodeLaunch& order, std::string_view key, const fs::path& path) {
  const fs::path near = nearest_file(path);
  if (order.has_code() && is_below(path.native(), order.code().path())) {
    const auto name = [&](const fs::path& whole) {
      return patch::shown_path(whole.native().substr(order.code().path().size() + 1));
    };
    const std::string nearest = is_below(near.native(), order.code().path())
                                    ? fmt::format("; nearest: '{}'", name(near))
                                    : "";
    return fmt::format("{}: '{}' is not in the code '{}' with its patches{}", key, name(path),
                       patch::shown_path(order.code().source()), nearest);
  }
  const std::string what =
      fmt::format("{}: '{}' is not there on this node", key, patch::shown_path(path.native()));
  if (near.empty())
    return what + "; name one that is, or put it on a file system that every node sees";
  return fmt::format("{}; nearest: '{}'", what, patch::shown_path(near.native()));
}

}  // namespace muster::agent
