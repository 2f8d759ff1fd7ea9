#include "agent/launch/shim_dir.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string_view>

#include "common/rundir/records.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr auto kLaunchers = std::to_array<std::string_view>({"torchrun", "msrun"});
constexpr std::size_t kDirectoriesMost = 256;  // of a PATH

bool is_python(std::string_view name) {
  if (name == "python" || name == "python3") return true;
  constexpr std::string_view kThree = "python3.";
  return name.size() > kThree.size() && name.starts_with(kThree) &&
         name.find_first_not_of("0123456789", kThree.size()) == std::string_view::npos;
}

// Also searches the last directories of PATH: a script may ask for each Python by name.
std::set<std::string> pythons_on(std::string_view path) {
  std::set<std::string> found;
  for (std::size_t count = 0; !path.empty() && count < kDirectoriesMost; ++count) {
    const std::size_t end = std::min(path.find(':'), path.size());
    const std::string dir(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
    if (!dir.starts_with('/')) continue;
    std::error_code error;
    for (fs::directory_iterator at(dir, error), last; !error && at != last; at.increment(error)) {
      if (std::string name = at->path().filename().string(); is_python(name))
        found.insert(std::move(name));
    }
  }
  return found;
}

std::set<std::string> names_for(const v1::NodeLaunch& order, const std::string& agent_path) {
  std::set<std::string> names = {"python", "python3"};
  const auto own = order.env().find("PATH");
  const std::string& path = own == order.env().end() ? agent_path : own->second;
  if (!order.has_setup() && !order.has_container() && !path.empty()) names = pythons_on(path);
  names.insert(kLaunchers.begin(), kLaunchers.end());
  return names;
}

}  // namespace

Result<void> make_shim_dir(const rundir::RunLayout& layout, const fs::path& worker,
                           const v1::NodeLaunch& order, const std::string& agent_path) {
  const std::string doing = "making the launcher shim's directory";
  const auto run = rundir::open_run(layout);
  if (!run) return fail(Error(run.error()).in(doing));
  const std::string name_of_dir = layout.shim_dir().filename().string();
  if (auto made = run->make_dir(name_of_dir, 0700); !made)
    return fail(std::move(made.error()).in(doing));
  const auto dir = run->below(name_of_dir);
  if (!dir) return fail(Error(dir.error()).in(doing));
  std::error_code error;
  const std::string program = fs::absolute(worker, error).string();
  for (const std::string& name : names_for(order, agent_path)) {
    if (::symlinkat(program.c_str(), dir->fd(), name.c_str()) == 0) continue;
    const int why = errno;
    if (why != EEXIST || ::unlinkat(dir->fd(), name.c_str(), 0) != 0 ||
        ::symlinkat(program.c_str(), dir->fd(), name.c_str()) != 0)
      return fail_errno(
          fmt::format("making the launcher shim's link '{}'", (layout.shim_dir() / name).string()),
          why);
  }
  return {};
}

std::map<std::string, std::string> shim_environment(const rundir::RunLayout& layout,
                                                    const v1::NodeLaunch& order) {
  std::map<std::string, std::string> environment = {
      {"MUSTER_SHIM_DIR", layout.shim_dir().string()},
      {"MUSTER_SHIM_REPORT", layout.shim_report().string()}};
  if (!order.ranks().empty())
    environment["MUSTER_SHIM_NODE_LOG"] = layout.rank_log(order.ranks(0).rank()).string();
  // There is no function for python, because `command -v` must show a path for it. In a subshell
  // (`&`) the shim ends together with the subshell, whose number the script has as $!.
  for (const std::string_view name : kLaunchers) {
    environment[fmt::format("BASH_FUNC_{}%%", name)] = fmt::format(
        "() {{  [ \"$BASHPID\" = \"$$\" ] || local -x MUSTER_SHIM_PARENT=\"$BASHPID\"\n "
        "\"$MUSTER_SHIM_DIR/{}\" \"$@\"\n}}",
        name);
  }
  return environment;
}

}  // namespace muster::agent
