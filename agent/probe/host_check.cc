#include "agent/probe/host_check.h"

#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "common/process/tool.h"

namespace muster::agent::probe {
namespace {

struct Needed {
  std::array<std::string_view, 2> programs;  // one of them is enough; empty: there is one only
  std::string_view what;                     // "podman or docker: runtime.image"
};
constexpr std::array kNeeded = {
    Needed{{"podman", "docker"}, "podman or docker: runtime.image"},
    Needed{{"git", ""}, "git: code.patches"},
    Needed{{"python3", ""}, "python3: runtime.python: auto"},
    Needed{{"getent", ""}, "getent: names of users and hosts"},
};

bool is_there(const Needed& needed, std::string_view path) {
  for (const std::string_view program : needed.programs) {
    if (!program.empty() && process::find_program(program, path)) return true;
  }
  return false;
}

void check_disk(const std::filesystem::path& dir, v1::HostReading& reading) {
  struct statvfs about{};
  if (::statvfs(dir.c_str(), &about) != 0) {
    reading.set_disk_error(std::strerror(errno));
    return;
  }
  reading.set_disk_bytes(static_cast<std::uint64_t>(about.f_blocks) * about.f_frsize);
  reading.set_disk_bytes_free(static_cast<std::uint64_t>(about.f_bavail) * about.f_frsize);
  reading.set_inodes(about.f_files);
  reading.set_inodes_free(about.f_favail);
  reading.set_read_only((about.f_flag & ST_RDONLY) != 0);
}

}  // namespace

v1::HostReading check_host(const HostCheck& check) {
  v1::HostReading reading;
  reading.set_state_dir(check.state_dir.string());
  check_disk(check.state_dir, reading);
  reading.set_cgroup_trouble(check.cgroup_trouble);
  for (const Needed& needed : kNeeded) {
    if (!is_there(needed, check.path)) reading.add_missing_tools(std::string(needed.what));
  }
  return reading;
}

}  // namespace muster::agent::probe
