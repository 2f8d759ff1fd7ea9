#include "agent/start/start_checks.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "agent/container/container_command.h"
#include "agent/launch/spec_keys.h"
#include "common/io/unique_fd.h"
#include "common/name_service/hosts.h"

namespace muster::agent {
namespace {

std::string text_of(int error) { return std::generic_category().message(error); }

Refusal launch_failure(std::string text) {
  return {.why = v1::START_FAILURE_LAUNCH, .text = std::move(text)};
}

// Another node may succeed, or this node later.
Refusal node_failure(std::string text) {
  return {.why = v1::START_FAILURE_NODE, .text = std::move(text)};
}

// An order does not distinguish these: launch.cwd also represents code.at, which has the scripts
// below it.
constexpr const char* kDirectoryKeys = "launch.cwd, or code.at";

Refusal not_there(const v1::NodeLaunch& order, std::string_view key,
                  const std::filesystem::path& path, int error) {
  if (error == ENOENT || error == ENOTDIR) return launch_failure(missing_file(order, key, path));
  const std::string text =
      fmt::format("looking for {}: '{}': {}", key, path.string(), text_of(error));
  if (error == EACCES || error == EPERM)
    return launch_failure(text + "; its directories are to be open to the agent's user");
  if (error == ELOOP || error == ENAMETOOLONG) return launch_failure(text);
  // a stale handle, or a disk that cannot be read
  return node_failure(text + "; is that file system sound on this node?");
}

// Returns 0, or the errno of a bind to the port. SO_REUSEADDR is on, because sockets of an ended
// attempt in TIME_WAIT do not stop a training framework either.
int try_bind(const std::string& address, std::uint32_t port) {
  const auto local = name_service::socket_address(address, static_cast<std::uint16_t>(port));
  if (!local) return EADDRNOTAVAIL;
  const io::UniqueFd fd(::socket(local->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*local), name_service::size_of(*local)) !=
      0)
    return errno;
  // Two sockets that both allow reuse may be bound to one port; only listen(2) detects the
  // conflict.
  return ::listen(fd.get(), 1) == 0 ? 0 : errno;
}

}  // namespace

v1::StartFailure failure_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::ResourceExhausted: return v1::START_FAILURE_DISK;
    case ErrorCode::InvalidArgument:
    case ErrorCode::NotAllowed:
    case ErrorCode::NotFound:
    case ErrorCode::Unsupported: return v1::START_FAILURE_LAUNCH;
    case ErrorCode::Unsatisfiable:
    case ErrorCode::Conflict:
    case ErrorCode::Unreachable:
    case ErrorCode::TimedOut:
    case ErrorCode::DataLoss:
    case ErrorCode::Io:
    case ErrorCode::Internal: return v1::START_FAILURE_NODE;
  }
  return v1::START_FAILURE_NODE;
}

Refusal refusal_of(const Error& error) { return {.why = failure_of(error), .text = error.message}; }

std::optional<Refusal> check_devices(const v1::NodeLaunch& order, const NodeFacts& node) {
  for (const v1::RankProcess& rank : order.ranks()) {
    for (const std::uint32_t device : rank.devices()) {
      if (node.devices.contains(device)) continue;
      const std::string there =
          node.devices.empty()
              ? "none"
              : fmt::format("{} to {}", *node.devices.begin(), *node.devices.rbegin());
      return launch_failure(
          fmt::format("starting rank {}: device {} is not on this node; there are {} devices: {}",
                      rank.rank(), device, node.devices.size(), there));
    }
  }
  return std::nullopt;
}

std::optional<Refusal> check_user(const v1::NodeLaunch& order, UserEntry& user, bool& set_user) {
  set_user = false;
  auto found = find_user(order.user());
  if (!found)
    return refusal_of(std::move(found.error())
                          .in(order.user().empty()
                                  ? "starting as the agent's own user"
                                  : fmt::format("starting as user '{}'", order.user())));
  user = std::move(*found);
  if (user.uid == ::geteuid()) return std::nullopt;
  if (::geteuid() != 0) {
    return launch_failure(
        fmt::format("starting as user '{}': the agent runs as user {} and only root may start "
                    "others' processes; run the agent as root, or leave runtime.user out",
                    user.name, ::geteuid()));
  }
  set_user = true;
  return std::nullopt;
}

std::string script_of(const std::vector<std::string>& argv) {
  if (argv.empty()) return {};
  const std::string program = std::filesystem::path(argv[0]).filename().string();
  const bool python = program.starts_with("python"),
             shell = program == "bash" || program == "sh" || program == "dash";
  if (!python && !shell) return {};
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    if (word.size() < 2 || word[0] != '-') return word == "-" ? "" : word;
    if (word == "--") return i + 1 < argv.size() ? argv[i + 1] : "";
    if (word.starts_with("--")) continue;
    // -c and -m take the rest of the command line. -W and -X (python) and -o (shells) take the next
    // word if their own word ends there.
    if (word.find('c') != std::string::npos || (python && word.find('m') != std::string::npos) ||
        (shell && word.find('s') != std::string::npos))
      return {};
    if ((python && (word == "-W" || word == "-X")) || (shell && (word == "-o" || word == "-O")))
      ++i;
  }
  return {};
}

std::optional<Refusal> check_files(const v1::NodeLaunch& order) {
  if (order.has_setup()) return std::nullopt;  // the setup may provide them
  std::set<std::string> made(order.make_dirs().begin(), order.make_dirs().end());
  for (const v1::PatchedFile& copy : order.patched()) made.insert(copy.path());
  std::set<std::pair<std::string, std::string>> checked;  // 64 ranks usually name the same files
  for (const v1::RankProcess& rank : order.ranks()) {
    const std::string script = script_of({rank.argv().begin(), rank.argv().end()});
    if (!checked.emplace(rank.cwd(), script).second) continue;
    struct stat info{};
    // In a container only files that come from the node are checked.
    if (order.has_container() && !made.contains(rank.cwd()) && !is_nodes_own(order, rank.cwd()))
      continue;
    if (!made.contains(rank.cwd())) {
      if (!rank.cwd().starts_with('/'))
        return launch_failure(
            fmt::format("starting rank {}: its working directory '{}' is not an absolute path",
                        rank.rank(), rank.cwd()));
      if (::stat(rank.cwd().c_str(), &info) != 0)
        return not_there(order, kDirectoryKeys, rank.cwd(), errno);
      if (!S_ISDIR(info.st_mode))
        return launch_failure(
            fmt::format("{}: '{}' is not a directory", kDirectoryKeys, rank.cwd()));
    }
    if (script.empty()) continue;
    const std::filesystem::path path = script.starts_with('/')
                                           ? std::filesystem::path(script)
                                           : std::filesystem::path(rank.cwd()) / script;
    if (order.has_container() && !is_nodes_own(order, path)) continue;
    if (!made.contains(path.string()) && ::stat(path.c_str(), &info) != 0)
      return not_there(order, key_of_script(order, path), path, errno);
  }
  return std::nullopt;
}

std::optional<Refusal> check_room(const v1::NodeLaunch& order, const NodeFacts& node) {
  std::vector<std::filesystem::path> places{node.state_dir};
  places.insert(places.end(), order.make_dirs().begin(), order.make_dirs().end());
  std::set<unsigned long> checked;
  for (std::filesystem::path place : places) {
    struct statvfs info{};
    // For a directory that does not exist yet, the nearest existing parent counts.
    while (::statvfs(place.c_str(), &info) != 0) {
      if (errno != ENOENT || !place.has_relative_path()) {
        return node_failure(
            fmt::format("looking for room at '{}': {}", place.string(), text_of(errno)));
      }
      place = place.parent_path();
    }
    if (!checked.insert(info.f_fsid).second && info.f_fsid != 0) continue;
    // Some FUSE file systems count no blocks; there only the first write shows whether space is
    // free.
    if (info.f_blocks == 0) continue;
    // The files of a run directory: its records and logs, and three files per rank.
    const auto inodes = static_cast<std::uint64_t>(32 + 3 * order.ranks_size());
    if (info.f_files != 0 && info.f_favail < inodes) {
      return Refusal{
          .why = v1::START_FAILURE_DISK,
          .text = fmt::format("disk full: '{}' has {} inodes left (df -i), a start takes {}, "
                              "however many bytes are free; remove files that nobody needs",
                              place.string(), static_cast<std::uint64_t>(info.f_favail), inodes)};
    }
    const std::uint64_t free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
    if (free < node.min_free_bytes) {
      return Refusal{.why = v1::START_FAILURE_DISK,
                     .text = fmt::format("disk full: '{}' has {} MiB free, a run is not started "
                                         "below {} MiB; remove old outputs or logs",
                                         place.string(), free >> 20U, node.min_free_bytes >> 20U)};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> check_ports(const v1::NodeLaunch& order) {
  if (order.ports().empty()) return std::nullopt;
  const auto addresses =
      name_service::addresses_of(order.address().empty() ? "0.0.0.0" : order.address());
  if (!addresses) {
    return node_failure(fmt::format(
        "probing ports on this node's address '{}': {}; restart the agent with the right --address",
        order.address(), addresses.error().message));
  }
  for (const std::uint32_t port : order.ports()) {
    const int error = try_bind(addresses->front(), port);
    if (error == EADDRINUSE) {
      return Refusal{
          .why = v1::START_FAILURE_PORT,
          .text = fmt::format("port {} on '{}' is taken by another process; 'ss -ltnp' shows whose",
                              port, order.address())};
    }
    if (error == EADDRNOTAVAIL) {
      return node_failure(
          fmt::format("probing port {}: '{}' is not an address of this node; restart the agent "
                      "with the right --address",
                      port, order.address()));
    }
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM)
      return node_failure(fmt::format("probing port {}: {}", port, text_of(error)));
    if (error != 0)
      return Refusal{.why = v1::START_FAILURE_PORT,
                     .text = fmt::format("probing port {} on '{}': {}", port, order.address(),
                                         text_of(error))};
  }
  return std::nullopt;
}

}  // namespace muster::agent
