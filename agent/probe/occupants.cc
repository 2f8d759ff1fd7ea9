#include "agent/probe/occupants.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "agent/probe/text.h"
#include "common/engine/ranktable/words.h"
#include "common/io/file.h"
#include "common/name_service/entries.h"
#include "common/name_service/getent.h"
#include "common/process/identity.h"

namespace muster::agent::probe {
namespace {

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Tools cut names (npu-smi at 13 or 15 bytes) or report the program's path (nvidia-smi). The kernel
// keeps 15 bytes.
bool same_name(std::string_view reported, pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto begins = [](std::string_view one, std::string_view other) {
    const std::size_t shorter = std::min(one.size(), other.size());
    return shorter > 0 && one.substr(0, shorter) == other.substr(0, shorter);
  };
  reported = last_part(reported);
  if (const auto comm = io::read_file(folder + "/comm", 64);
      comm && begins(reported, ranktable::trimmed(*comm)))
    return true;
  // The command line is not read: that would wait for a process that hangs in the kernel.
  std::array<char, 4096> program{};
  const ssize_t size = ::readlink((folder + "/exe").c_str(), program.data(), program.size());
  return size > 0 && begins(reported, last_part(std::string_view(program.data(),
                                                                 static_cast<std::size_t>(size))));
}

std::string user_of(pid_t pid) {
  struct stat info{};
  if (::stat(("/proc/" + std::to_string(pid)).c_str(), &info) != 0) return {};
  const auto passwd = name_service::read_table("/etc/passwd");
  if (const auto user = name_service::user_in(passwd.value_or(""), info.st_uid))
    return clean(user->name, 60);
  return "uid " + std::to_string(info.st_uid);
}

bool has_ended(pid_t pid) {
  const auto stat = process::read_stat(pid);
  return !stat && stat.error().code == ErrorCode::NotFound;
}

}  // namespace

bool sees_all_processes() {
  // include/linux/proc_ns.h: PROC_PID_INIT_INO = 0xEFFFFFFC is the first pid namespace of every
  // kernel.
  std::array<char, 64> name{};
  const ssize_t size = ::readlink("/proc/self/ns/pid", name.data(), name.size());
  return size > 0 &&
         std::string_view(name.data(), static_cast<std::size_t>(size)) == "pid:[4026531836]";
}

void keep_strangers(std::vector<Occupant>& occupants, const std::function<bool(pid_t)>& ours,
                    bool on_device, bool sees_all) {
  std::erase_if(occupants, [&](Occupant& one) {
    bool known = sees_all;
    for (const bool in_container : {false, true}) {
      const std::optional<pid_t> pid = in_container ? one.pid_in_container : one.pid;
      if (!pid || *pid <= 0) continue;
      // One of muster's processes may have ended after the tool's answer. Its card is then not a
      // stranger's.
      if (has_ended(*pid)) {
        if (sees_all || (ours && ours(*pid))) return true;
        continue;
      }
      const bool named = sees_all || !one.name.empty();
      if (!sees_all && named && !same_name(one.name, *pid)) continue;
      if (ours && ours(*pid)) return true;
      if (named && one.user.empty()) one.user = user_of(*pid);
      // This side has a process with the pid in its own container and with its name, which is not
      // muster's. The host's pid may be the number of another process here.
      known = known || (in_container && named);
    }
    return on_device && !known;
  });
}

}  // namespace muster::agent::probe
