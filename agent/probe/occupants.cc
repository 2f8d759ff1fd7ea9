#include "agent/probe/occupants.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "common/engine/ranktable/words.h"
#include "common/io/file.h"

namespace muster::agent::probe {
namespace {

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Tools cut names (npu-smi at 13 or 15 bytes) or give the program's path (nvidia-smi); the kernel keeps 15 bytes.
bool same_name(std::string_view said, pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto begins = [](std::string_view one, std::string_view other) {
    const std::size_t shorter = std::min(one.size(), other.size());
    return shorter > 0 && one.substr(0, shorter) == other.substr(0, shorter);
  };
  said = last_part(said);
  if (const auto comm = io::read_file(folder + "/comm", 64); comm && begins(said, ranktable::trimmed(*comm))) return true;
  std::array<char, 4096> program{};  // not its command line: reading that waits for a process that the kernel holds
  const ssize_t size = ::readlink((folder + "/exe").c_str(), program.data(), program.size());
  return size > 0 && begins(said, last_part(std::string_view(program.data(), static_cast<std::size_t>(size))));
}

std::string user_of(pid_t pid) {
  struct stat info{};
  if (::stat(("/proc/" + std::to_string(pid)).c_str(), &info) != 0) return {};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/etc/passwd", "re"), std::fclose);
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  while (file && ::fgetpwent_r(file.get(), &entry, buffer.data(), buffer.size(), &found) == 0) {
    if (found->pw_uid == info.st_uid) return found->pw_name;
  }
  return "uid " + std::to_string(info.st_uid);
}

}  // namespace

void keep_strangers(std::vector<Occupant>& occupants, const std::function<bool(pid_t)>& ours) {
  std::erase_if(occupants, [&](Occupant& one) {
    std::array<std::optional<pid_t>, 2> here = {one.pid, one.pid_in_container};
    for (const auto& pid : here) {
      if (!pid || *pid <= 0) continue;
      const bool named = !one.name.empty();
      if (named && !same_name(one.name, *pid)) continue;
      if (ours && ours(*pid)) return true;
      if (named && one.user.empty()) one.user = user_of(*pid);
    }
    return false;
  });
}

}  // namespace muster::agent::probe
