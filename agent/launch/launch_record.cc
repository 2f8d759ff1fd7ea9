#include "agent/launch/launch_record.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <tuple>

#include "agent/launch/nearest_file.h"
#include "agent/launch/shim_dir.h"
#include "agent/launch/spec_keys.h"
#include "common/engine/ascend/plog.h"
#include "common/proto/proto_time.h"

namespace muster::agent {
namespace {

// Which shells an image has is found out inside the container.
constexpr const char* kContainerShell =
    "if [ -x /bin/bash ]; then exec /bin/bash -e \"$0\"; fi; exec /bin/sh -e \"$0\"";
constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::int64_t to_ms(const google::protobuf::Duration& duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(to_duration(duration)).count();
}

std::map<std::string, std::string> base_environment(const UserEntry& user,
                                                    const std::string& path) {
  return {{"PATH", path.empty() ? kDefaultPath : path},
          {"HOME", user.home},
          {"USER", user.name},
          {"LOGNAME", user.name},
          {"LANG", "C.UTF-8"},
          {"PYTHONUNBUFFERED", "1"}};
}

std::map<std::string, std::string> base_environment(const LaunchContext& context) {
  if (!context.image_env) return base_environment(context.user, context.path);
  auto base = base_environment(context.user, "");
  base["HOME"] = context.user.uid == 0 ? "/root" : "/tmp";
  for (const std::string& variable : *context.image_env) {
    const std::size_t equals = variable.find('=');
    if (equals != std::string::npos && equals > 0)
      base[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  return base;
}

// Access lists are ignored: if they say something else, exec decides.
bool may_execute(const struct stat& info, const UserEntry& user) {
  if (user.uid == 0) return (info.st_mode & 0111U) != 0;
  if (info.st_uid == user.uid) return (info.st_mode & S_IXUSR) != 0;
  const bool in_group =
      info.st_gid == user.gid || std::ranges::find(user.groups, info.st_gid) != user.groups.end();
  return (info.st_mode & (in_group ? S_IXGRP : S_IXOTH)) != 0;
}

// Checks every directory in the path, also those behind symbolic links.
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
  return user == nullptr ? ::access(path.c_str(), X_OK) == 0
                         : may_execute(info, *user) && may_reach(path, *user);
}

std::string for_whom(const UserEntry* user) {
  return user == nullptr ? "" : fmt::format(" for user '{}'", user->name);
}

std::string absolute_in(const std::string& cwd, const std::string& path) {
  return path.starts_with('/') ? path
                               : (std::filesystem::path(cwd) / path).lexically_normal().string();
}

}  // namespace

Result<std::string> resolve_program(const std::string& program, const std::string& path,
                                    const std::string& cwd, const UserEntry* user) {
  bool exists = false;
  if (program.empty()) return fail(ErrorCode::NotFound, "its name is empty");
  if (program.find('/') != std::string::npos) {
    std::string absolute = absolute_in(cwd, program);
    if (executable_file(absolute, user, exists)) return absolute;
    if (exists)
      return fail(ErrorCode::NotAllowed,
                  fmt::format("'{}' is not an executable file{}", absolute, for_whom(user)));
    return fail(ErrorCode::NotFound, fmt::format("there is no '{}'", absolute));
  }
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string dir = end == begin ? "." : path.substr(begin, end - begin);
    std::string absolute = absolute_in(cwd, dir + "/" + program);
    if (executable_file(absolute, user, exists)) return absolute;
    begin = end + 1;
  }
  if (exists)
    return fail(ErrorCode::NotAllowed, fmt::format("'{}' on PATH '{}' is not an executable file{}",
                                                   program, path, for_whom(user)));
  return fail(ErrorCode::NotFound, fmt::format("there is no '{}' on PATH '{}'", program, path));
}

namespace {

// Resolves argv[0] of a rank to a path. If the job names no Python, PATH is searched first, then
// the system's usual path.
Result<std::string> resolve_argv0(const std::string& program, const std::string& path,
                                  const std::string& cwd, const LaunchContext& context) {
  const UserEntry* user = context.set_user ? &context.user : nullptr;
  auto found = resolve_program(program, path, cwd, user);
  if (found || program != engine::kPythonAuto) return found;
  if (auto system = resolve_program(context.python_system, path, cwd, user)) return system;
  return fail(found.error().code,
              fmt::format("{}, and no '{}' either", found.error().message, context.python_system));
}

using Variables = google::protobuf::Map<std::string, std::string>;

struct Base {
  const v1::NodeLaunch& order;
  const LaunchContext& context;
  std::map<std::string, std::string> variables;

  // All variables of a process. If a setup has the base, only those that the order sets for the
  // process.
  [[nodiscard]] std::map<std::string, std::string> over(const Variables& wanted) const {
    auto all = order.has_setup() ? std::map<std::string, std::string>() : variables;
    for (const auto& [name, value] : wanted) all[name] = value;
    all[rundir::kProcessTagVariable] = context.process_tag;
    return all;
  }
};

// The base is passed on the command line of env(1). The record's common environment is over what
// the setup leaves, and the base is below it.
void add_setup(rundir::v1::Launch& launch, const Base& base) {
  rundir::v1::SetupLaunch& setup = *launch.mutable_setup();
  setup.add_argv(kEnvProgram);
  const auto is_secret = [&](const std::string& name) {
    return std::ranges::any_of(base.order.secrets(), [&](const v1::SecretVariable& one) {
      return one.variable() == name;
    });
  };
  for (const auto& [name, value] : base.variables) {
    if (!base.order.env().contains(name) && !is_secret(name)) setup.add_argv(name + "=" + value);
  }
  if (base.context.image_env) {
    for (const char* word : {"/bin/sh", "-c", kContainerShell}) setup.add_argv(word);
  } else {
    bool exists = false;
    const auto* shell = std::ranges::find_if(
        kSetupShells, [&](const char* path) { return executable_file(path, nullptr, exists); });
    setup.add_argv(shell == std::end(kSetupShells) ? std::end(kSetupShells)[-1] : *shell);
    setup.add_argv("-e");
  }
  setup.add_argv(base.context.layout->setup_script().string());
  setup.set_cwd(base.order.setup().cwd());
  setup.set_log(base.context.layout->setup_log().string());
  setup.set_env_file(base.context.layout->setup_environment().string());
  setup.set_timeout_ms(to_ms(base.order.setup().timeout()));
}

// Says why a rank has no program: the key that names it, and what would help.
std::string no_program(const v1::NodeLaunch& order, const v1::RankProcess& process,
                       const std::string& path, const Error& error) {
  const std::string key = key_of_program(order, process);
  const std::string& program = process.argv(0);
  const bool named = program.find('/') != std::string::npos;
  if (error.code == ErrorCode::NotFound && named)
    return missing_file(order, key, absolute_in(process.cwd(), program));
  struct stat info{};
  if (error.code == ErrorCode::NotAllowed && named &&
      ::stat(absolute_in(process.cwd(), program).c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return fmt::format("{}: '{}' is a directory; name the file in it", key,
                       absolute_in(process.cwd(), program));
  if (error.code == ErrorCode::NotAllowed)
    return fmt::format("{}: {}; make it one (chmod +x), or name its interpreter before it", key,
                       error.message);
  if (error.code != ErrorCode::NotFound || program.empty())
    return fmt::format("{}: {}", key, error.message);
  if (program == engine::kPythonAuto)
    return fmt::format("{}: {}; install Python on this node, or name one {}", key, error.message,
                       key == "launch.run" ? "by its path" : "with runtime.python");
  const std::string near = nearest_program(program, path);
  return fmt::format(
      "{}: {}; {}install it on this node, name it by its path, or set PATH in runtime.env", key,
      error.message, near.empty() ? "" : fmt::format("nearest: '{}'; ", near));
}

Result<void> add_ranks(rundir::v1::Launch& launch, const Base& base,
                       const std::map<std::string, std::string>& common) {
  // 64 ranks usually have the same program
  std::map<std::tuple<std::string, std::string, std::string>, std::string> resolved;
  for (const v1::RankProcess& process : base.order.ranks()) {
    rundir::v1::RankLaunch* rank = launch.add_ranks();
    rank->set_rank(process.rank());
    rank->set_cwd(process.cwd());
    rank->set_log(base.context.layout->rank_log(process.rank()).string());
    for (const auto& [name, value] : process.env()) {
      if (name != rundir::kProcessTagVariable) rank->add_env(name + "=" + value);
    }
    // Another user could not reach this directory.
    if (!process.plog_dir().empty() && !base.context.set_user)
      rank->add_env(fmt::format("{}={}", engine::kProcessLogPath,
                                base.context.layout->plog_dir(process.rank()).string()));
    if (process.argv().empty())
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("starting rank {}: its command line is empty", process.rank()));
    for (const std::string& word : process.argv()) rank->add_argv(word);
    if (base.order.has_setup() || base.context.image_env) continue;
    const auto own_path = process.env().find("PATH");
    std::string path = own_path == process.env().end() ? common.at("PATH") : own_path->second;
    if (base.order.script().intercept())
      path = base.context.layout->shim_dir().string() + ":" + path;
    std::string& program = resolved[{process.argv(0), path, process.cwd()}];
    if (program.empty()) {
      auto found = resolve_argv0(process.argv(0), path, process.cwd(), base.context);
      if (!found)
        return fail(ErrorCode::InvalidArgument,
                    no_program(base.order, process, path, std::move(found).error()));
      program = *found;
    }
    rank->set_argv(0, program);
  }
  return {};
}

Result<void> add_auxiliaries(rundir::v1::Launch& launch, const Base& base) {
  std::set<std::string> names;
  for (const v1::AuxiliaryProcess& process : base.order.auxiliaries()) {
    const auto no = [&](const std::string& why) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("starting auxiliary process '{}': {}", process.name(), why));
    };
    // The name is part of the path of its log.
    if (!rundir::is_auxiliary_name(process.name()))
      return no("its name may have 1 to 64 letters, digits, '-' and '_'");
    if (!names.insert(process.name()).second) return no("there is another one of that name");
    if (process.argv().empty()) return no("its command line is empty");
    rundir::v1::AuxiliaryLaunch* auxiliary = launch.add_auxiliaries();
    auxiliary->set_name(process.name());
    auxiliary->set_cwd(process.cwd());
    auxiliary->set_log(base.context.layout->auxiliary_log(process.name()).string());
    const auto environment = base.over(process.env());
    for (const auto& [name, value] : environment) auxiliary->add_env(name + "=" + value);
    for (const std::string& word : process.argv()) auxiliary->add_argv(word);
    if (base.order.has_setup() || base.context.image_env) continue;
    auto found =
        resolve_argv0(process.argv(0), environment.at("PATH"), process.cwd(), base.context);
    if (!found) {
      const bool python =
          process.argv(0) == engine::kPythonAuto && found.error().code == ErrorCode::NotFound;
      return no(fmt::format(
          "executing '{}': {}{}", process.argv(0), found.error().message,
          python ? "; install Python on this node, or name one with runtime.python" : ""));
    }
    auxiliary->set_argv(0, *found);
  }
  return {};
}

}  // namespace

Result<rundir::v1::Launch> make_launch(const v1::NodeLaunch& order, const LaunchContext& context) {
  rundir::v1::Launch launch;
  // A worker that knows no secrets must not go on without them.
  launch.set_version(order.secrets().empty() ? 1 : 2);
  launch.set_attempt(context.run.second.value);
  launch.set_boot_id(context.boot.str());
  launch.set_process_tag(context.process_tag);
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
  const Base base{.order = order, .context = context, .variables = base_environment(context)};
  if (order.has_setup()) add_setup(launch, base);
  std::map<std::string, std::string> common = base.over(order.env());
  launch.set_scripts(order.has_script());
  if (order.script().intercept()) {
    launch.set_shim_dir(context.layout->shim_dir().string());
    for (auto& [name, value] : shim_environment(*context.layout, order))
      common[name] = std::move(value);
  }
  for (const auto& [name, value] : common) launch.add_env(name + "=" + value);
  for (const v1::SecretVariable& one : order.secrets()) {
    rundir::v1::SecretVariable& secret = *launch.add_secrets();
    secret.set_variable(one.variable());
    secret.set_secret(one.secret());
  }
  if (auto added = add_ranks(launch, base, common); !added) return fail(std::move(added).error());
  if (auto added = add_auxiliaries(launch, base); !added) return fail(std::move(added).error());
  // This is for the agent that adopts the run. It leaves out the files, which are already on disk:
  // a rank table has megabytes, and the worker keeps its whole record in memory.
  std::string bytes;
  if (order.files().empty()) {
    order.SerializeToString(&bytes);
  } else {
    v1::NodeLaunch kept = order;
    kept.clear_files();
    kept.SerializeToString(&bytes);
  }
  launch.set_order(std::move(bytes));
  return launch;
}

}  // namespace muster::agent
