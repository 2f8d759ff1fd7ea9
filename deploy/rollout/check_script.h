// The check of one host: a script for its `sh`, and the reader of what the script prints. Pure.
//
// The script changes nothing on the host. It prints lines "KEY VALUE", the last one "end". The
// output comes from a host, so nothing in it is believed without a bound and a form.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "deploy/rollout/wanted.h"

namespace muster::rollout {

inline constexpr std::size_t kCheckBytesMost = 64 << 10;

// What the way to the controller's address is like.
enum class WayState : std::uint8_t {
  Unknown,  // the host has nothing to try it with
  Open,
  Refused,   // the host answers, and nothing listens
  Silent,    // no answer within 5 s
  NoName,    // the host does not know the name
  Rejected,  // "No route to host": by a firewall, or on the way
  NoRoute,   // this host has no route, or there is another error
};

struct DiskCheck {
  std::string path;  // the nearest directory that exists
  std::uint64_t free_kb = 0;
  std::string type;     // of the file system: "ext2/ext3", "nfs", "tmpfs"
  std::string options;  // of the mount: "rw,noexec,relatime"
  bool writable = false;
  [[nodiscard]] bool has(std::string_view option) const;
};

// A directory on the way to the prefix or to the state directory.
struct WayDir {
  std::string path;
  std::uint32_t uid = 0, gid = 0;
  unsigned mode = 0;  // 12 bits
};

struct HostCheck {
  std::string arch, kernel, hostname, user, home;
  std::string machine;  // differs from machine to machine, also between containers
  std::uint32_t uid = 0;
  std::int64_t time = 0;  // seconds since 1970, by the host's clock
  bool systemd = false;   // it is process 1
  bool gzip = false, sha256sum = false;
  bool selinux_enforcing = false;
  bool cgroup2 = false;
  Places places;
  DiskCheck prefix_disk, state_disk;
  std::vector<WayDir> way_dirs;                 // those that exist
  std::optional<std::uint32_t> own_gid;         // of a group that has the user's name
  std::map<std::string, std::string> programs;  // in PREFIX/VERSION/bin: name -> sha256
  std::string current;                          // what the link names
  std::string config_sha;                       // of the config file; empty: there is none
  bool config_foreign = false;  // a unit of that name, also a package's, which is not ours
  bool running = false;
  std::string running_exe_sha;    // of the program that runs
  std::string running_words_sha;  // of its command line, each word with a NUL
  unsigned ports_from = 0;        // only root may listen at lower ones
  bool port_taken = false;        // controller: another program listens at its port
  bool enrol_port_taken = false;  // the same of its enrolment port
  std::string access_trouble;     // controller: "missing", "unreadable"; empty: none
  // Controller: of its state directory. None: no controller has run there; empty: it is not noted.
  std::optional<std::string> cluster;
  bool credentials_there = false;
  bool credentials_valid = false;
  std::string credentials_of;     // "node 'gpu-1'", as pki::text_of() writes it
  std::string credentials_until;  // a time, as utc_text() writes it
  std::string credentials_cluster;
  std::string credentials_key;  // SHA-256 of the public key; empty: `muster` there does not say
  WayState way = WayState::Unknown;
  WayState enrol_way = WayState::Unknown;  // to the enrolment port
};

struct CheckQuery {
  Wanted wanted;
  std::string version;
  std::string way_host;  // empty: no way is tried
  unsigned way_port = 0;
  std::string listen_host;   // of listen_port
  unsigned listen_port = 0;  // 0: no port is checked
  std::string enrol_host;    // agent: as way_host; controller: as listen_host
  unsigned enrol_port = 0;   // agent: of enrol_host; controller: as listen_port
};

std::string check_script(const CheckQuery& query);
// DataLoss: the output is not what the script prints.
Result<HostCheck> parse_check(std::string_view output);

}  // namespace muster::rollout
