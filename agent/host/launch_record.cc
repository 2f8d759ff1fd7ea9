#include "agent/host/launch_record.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <tuple>

namespace muster::agent {
namespace {

constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::int64_t to_ms(const google::protobuf::Duration& duration) { return duration.seconds() * 1'000 + duration.nanos() / 1'000'000; }

std::map<std::string, std::string> base_environment(const UserEntry& user, const std::string& path) {
  return {{"PATH", path.empty() ? kDefaultPath : path},
          {"HOME", user.home},
          {"USER", user.name},
          {"LOGNAME", user.name},
          {"LANG", "C.UTF-8"},
          {"PYTHONUNBUFFERED", "1"}};
}

// Access lists are left out: where they say something else, exec has the last word.
bool may_execute(const struct stat& info, const UserEntry& user) {
  if (user.uid == 0) return (info.st_mode & 0111U) != 0;
  if (info.st_uid == user.uid) return (info.st_mode & S_IXUSR) != 0;
  const bool in_group = info.st_gid == user.gid || std::ranges::find(user.groups, info.st_gid) != user.groups.end();
  return (info.st_mode & (in_group ? S_IXGRP : S_IXOTH)) != 0;
}

// Every directory on the way, those behind symbolic links too.
bool may_reach(const std::string& path, const UserEntry& user) {
  std::error_code error;
  for (const auto& way : {std::filesystem::path(path), std::filesystem::canonical(path, error)}) {
    for (auto above = way.parent_path(); above.has_relative_path(); above = above.parent_path()) {
      struct stat info{};
      if (::stat(above.c_str(), &info) != 0 || !may_execute(info, user)) return false;
    }
  }
  return true;
}

bool executable_file(const std::string& path, const UserEntry* user, bool& exists) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return false;
  exists = true;
  if (!S_ISREG(info.st_mode)) return false;
  return user == nullptr ? ::access(path.c_str(), X_OK) == 0 : may_execute(info, *user) && may_reach(path, *user);
}

std::string for_whom(const UserEntry* user) { return user == nullptr ? "" : fmt::format(" for user '{}'", user->name); }

std::string absolute_in(const std::string& cwd, const std::string& path) {
  return path.starts_with('/') ? path : (std::filesystem::path(cwd) / path).lexically_normal().string();
}

}  // namespace

Result<UserEntry> find_user(const std::string& name) {
  std::vector<char> buffer(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  const auto look = [&] {
    return name.empty() ? getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found)
                        : getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  };
  int rc = look();
  while (rc == ERANGE && buffer.size() < (1U << 20U)) {
    buffer.resize(buffer.size() * 2);
    rc = look();
  }
  if (found == nullptr) {
    // A number without a name may well be the agent's own user (a container's); it still may run its ranks.
    if (name.empty()) return UserEntry{.name = std::to_string(geteuid()), .home = "/", .uid = geteuid(), .gid = getegid()};
    return fail(ErrorCode::NotFound, fmt::format("there is no user '{}' on this node; create it here, or change runtime.user", name));
  }
  UserEntry user{.name = entry.pw_name, .home = entry.pw_dir, .uid = entry.pw_uid, .gid = entry.pw_gid};
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  if (getgrouplist(entry.pw_name, entry.pw_gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(count));
    getgrouplist(entry.pw_name, entry.pw_gid, groups.data(), &count);
  }
  groups.resize(static_cast<std::size_t>(count));
  user.groups.assign(groups.begin(), groups.end());
  return user;
}

Result<std::string> resolve_program(const std::string& program, const std::string& path, const std::string& cwd, const UserEntry* user) {
  bool exists = false;
  if (program.empty()) return fail(ErrorCode::NotFound, "its name is empty");
  if (program.find('/') != std::string::npos) {
    std::string absolute = absolute_in(cwd, program);
    if (executable_file(absolute, user, exists)) return absolute;
    if (exists) return fail(ErrorCode::NotAllowed, fmt::format("'{}' is not an executable file{}", absolute, for_whom(user)));
    return fail(ErrorCode::NotFound, fmt::format("there is no '{}'", absolute));
  }
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string dir = end == begin ? "." : path.substr(begin, end - begin);
    std::string absolute = absolute_in(cwd, dir + "/" + program);
    if (executable_file(absolute, user, exists)) return absolute;
    begin = end + 1;
  }
  if (exists) return fail(ErrorCode::NotAllowed, fmt::format("'{}' on PATH '{}' is not an executable file{}", program, path, for_whom(user)));
  return fail(ErrorCode::NotFound, fmt::format("there is no '{}' on PATH '{}'", program, path));
}

namespace {

// argv[0] of a rank, as a path. A Python that nobody named is looked for on PATH first and then where systems have it.
Result<std::string> resolve_argv0(const std::string& program, const std::string& path, const std::string& cwd, const LaunchContext& context) {
  const UserEntry* user = context.set_user ? &context.user : nullptr;
  auto found = resolve_program(program, path, cwd, user);
  if (found || program != engine::kPythonAuto) return found;
  if (auto system = resolve_program(context.python_system, path, cwd, user)) return system;
  return fail(found.error().code, fmt::format("{}, and no '{}' either; install Python on this node, or name one with runtime.python", found.error().message,
                                              context.python_system));
}

}  // namespace

Result<rundir::v1::Launch> make_launch(const v1::NodeLaunch& order, const LaunchContext& context) {
  rundir::v1::Launch launch;
  launch.set_version(1);
  launch.set_job_id(context.run.first.str());
  launch.set_attempt(context.run.second.value);
  launch.set_node(context.node.str());
  launch.set_boot_id(context.boot.str());
  launch.set_cookie(context.cookie);
  launch.set_stop_grace_ms(to_ms(order.stop_grace()));
  launch.set_nofile(order.nofile());
  launch.set_memlock(order.memlock());
  launch.set_cgroup(context.cgroup);
  if (context.set_user) {
    launch.set_set_user(true);
    launch.set_uid(context.user.uid);
    launch.set_gid(context.user.gid);
    for (const std::uint32_t group : context.user.groups) launch.add_groups(group);
  }
  std::map<std::string, std::string> common = base_environment(context.user, context.path);
  for (const auto& [name, value] : order.env()) common[name] = value;
  common[rundir::kCookieVariable] = context.cookie;
  for (const auto& [name, value] : common) launch.add_env(name + "=" + value);

  std::map<std::tuple<std::string, std::string, std::string>, std::string> resolved;  // 64 ranks are the same program
  for (const v1::RankProcess& process : order.ranks()) {
    rundir::v1::RankLaunch* rank = launch.add_ranks();
    rank->set_rank(process.rank());
    rank->set_local_rank(process.local_rank());
    rank->set_cwd(process.cwd());
    rank->set_log(context.layout->rank_log(process.rank()).string());
    for (const auto& [name, value] : process.env()) {
      if (name != rundir::kCookieVariable) rank->add_env(name + "=" + value);
    }
    if (process.argv().empty()) return fail(ErrorCode::InvalidArgument, fmt::format("starting rank {}: its command line is empty", process.rank()));
    const auto own_path = process.env().find("PATH");
    const std::string& path = own_path == process.env().end() ? common["PATH"] : own_path->second;
    std::string& program = resolved[{process.argv(0), path, process.cwd()}];
    if (program.empty()) {
      auto found = resolve_argv0(process.argv(0), path, process.cwd(), context);
      if (!found)
        return fail(ErrorCode::InvalidArgument, fmt::format("starting rank {}: executing '{}': {}", process.rank(), process.argv(0), found.error().message));
      program = *found;
    }
    rank->add_argv(program);
    for (int i = 1; i < process.argv_size(); ++i) rank->add_argv(process.argv(i));
  }
  std::string bytes;
  order.SerializeToString(&bytes);
  launch.set_order(std::move(bytes));
  return launch;
}

}  // namespace muster::agent
