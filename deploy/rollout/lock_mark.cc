#include "deploy/rollout/lock_mark.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "common/base/time.h"
#include "common/process/identity.h"

namespace muster::rollout {
namespace {

constexpr std::size_t kMarkFields = 7;

std::string own_host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

// "0": it is not known.
std::string own_pid_namespace() {
  struct stat info{};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? std::to_string(info.st_ino) : "0";
}

}  // namespace

std::string operator_name() {
  const char* user = std::getenv("USER");
  return fmt::format("{}@{}", user != nullptr && *user != '\0' ? user : std::to_string(::geteuid()),
                     own_host_name());
}

std::string own_lock_mark() {
  const auto boot = process::boot_id();
  const auto self = process::self();
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", operator_name(), utc_text(system_clock().now().wall),
                     boot ? boot->str() : "", self ? self->pid : 0, self ? self->start_time : 0,
                     own_pid_namespace(), ::geteuid());
}

LockOwner parse_lock_mark(const std::string& mark) {
  std::vector<std::string> parts(1);
  for (const char c : mark) {
    if (c == '|') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (parts.size() < 2) return {};
  LockOwner owner{.who = parts[0], .since = parts[1]};
  if (parts.size() < kMarkFields) return owner;
  const auto boot = process::boot_id();
  const std::string space = own_pid_namespace();
  if (!boot || boot->str() != parts[2] || space == "0" || space != parts[5] ||
      std::to_string(::geteuid()) != parts[6])
    return owner;
  const process::ProcessId process{
      .pid = static_cast<pid_t>(std::strtol(parts[3].c_str(), nullptr, 10)),
      .start_time = std::strtoull(parts[4].c_str(), nullptr, 10)};
  owner.gone = !process::alive(process);
  return owner;
}

}  // namespace muster::rollout
