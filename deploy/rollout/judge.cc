#include "deploy/rollout/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/time.h"
#include "common/digest/sha256.h"
#include "deploy/hosts/values.h"

namespace muster::rollout {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kStateKb = 512 << 10;  // an agent starts no rank below 256 MiB
constexpr std::uint64_t kProgramSlackKb = 16 << 10;
constexpr auto kClockNoted = 60s;
// A certificate that ends before is replaced. One that its agent renews lives for 30 days, and is
// renewed when a third of them is left.
constexpr auto kCertificateLeft = 30 * 24h, kRenewedLeft = 7 * 24h;
constexpr auto kClockStops = 12h;  // certificates begin 24 hours before they are made

bool is_network_disk(std::string_view type) {
  return type.starts_with("nfs") || type.starts_with("smb") || type == "cifs" || type == "lustre" ||
         type == "gpfs" || type == "ceph" || type == "fuseblk";
}

std::uint64_t mib(std::uint64_t kb) { return kb >> 10U; }

class Judge {
 public:
  explicit Judge(const JudgeInput& input) : in_(input), check_(input.check) {}

  std::vector<Finding> all() {
    if (check_.kernel != "Linux" && !check_.kernel.empty())
      stop(fmt::format("it runs {}; muster runs on Linux", check_.kernel));
    if (!in_.same_machine_as.empty())
      stop(
          fmt::format("it is the same machine as node '{}', by another name; one agent a host: "
                      "take one of the two out of hosts.yaml",
                      in_.same_machine_as));
    programs();
    disks();
    clock();
    if (!check_.sha256sum) stop("there is no 'sha256sum' on PATH (coreutils or busybox)");
    if (check_.config_foreign)
      stop(
          fmt::format("it has a unit '{0}', and muster deploy did not write it; remove it first (a "
                      "package's: 'apt remove muster'), for two daemons cannot share '{0}'",
                      unit_name(in_.wanted.role)));
    if (in_.wanted.role == Role::Controller && in_.with_agent && check_.uid == 0)
      note(
          "the controller and an agent both run as root on it: a job there may do everything to "
          "the cluster; give the controller a host of its own, or set controller: {user: NAME}");
    if (in_.wanted.role == Role::Controller) {
      port(check_.port_taken, "the controller's port", in_.wanted.address, "listen");
      port(check_.enrol_port_taken, "the enrolment port", enrol_address(in_.wanted), "enrol");
    }
    if (check_.access_trouble == "missing")
      stop(
          fmt::format("there is no file '{}', which 'access' names, and without it the controller "
                      "does not start; put it there, or correct 'access'",
                      access_file(in_.wanted)));
    if (check_.access_trouble == "unreadable")
      stop(
          fmt::format("'{}' may not read the file '{}', which 'access' names, and without it the "
                      "controller does not start; correct it with chown and chmod",
                      check_.user, access_file(in_.wanted)));
    owners();
    if (in_.wanted.role == Role::Agent) {
      way(check_.way, "the controller's address", in_.wanted.address, "listen", "address");
      if (const std::string_view enrol = enrol_address(in_.wanted); !enrol.empty())
        way(check_.enrol_way, "the controller's enrolment port", enrol, "enrol", "address");
      if (!check_.cgroup2)
        note("no cgroup v2: what a run leaves behind is found by its process tag alone");
    }
    if (check_.selinux_enforcing && check_.places.systemd)
      note(
          fmt::format("SELinux is enforcing: if the daemon does not start, run 'restorecon -R "
                      "{}' and see 'ausearch -m avc'",
                      check_.places.prefix));
    if (!check_.places.systemd)
      note(check_.uid == 0 ? "systemd is not process 1: muster's own supervisor restarts the "
                             "daemon; after a reboot of the host run 'muster deploy up' again"
                           : fmt::format("not root: the daemon runs as '{}' under muster's own "
                                         "supervisor; after a reboot of the host run 'muster "
                                         "deploy up' again",
                                         check_.user));
    return std::move(out_);
  }

 private:
  void stop(std::string text) { out_.push_back({.stops = true, .text = std::move(text)}); }
  void note(std::string text) { out_.push_back({.stops = false, .text = std::move(text)}); }

  void programs() {
    if (in_.programs != nullptr) return;
    stop(
        fmt::format("its architecture is {}, and there are programs for {} only; name a release "
                    "for it with --bundle FILE.tar.gz",
                    check_.arch, in_.architectures.empty() ? "none" : in_.architectures));
  }

  void disk(const DiskCheck& disk, std::string_view what, const std::string& path,
            std::uint64_t need_kb) {
    if (disk.has("ro")) {
      stop(fmt::format("{} '{}' is on a disk that is mounted read-only", what, path));
      return;
    }
    if (!disk.writable)
      stop(
          fmt::format("'{}' may not write to '{}', where {} '{}' is to be; log in as root, set "
                      "sudo: true, or name another directory",
                      check_.user, disk.path, what, path));
    if (disk.free_kb < need_kb)
      stop(fmt::format("{} '{}' has {} MiB free, and needs {} MiB; make room", what, path,
                       mib(disk.free_kb), mib(need_kb)));
  }

  void disks() {
    std::uint64_t need = 0;
    if (in_.programs != nullptr) {
      for (const std::string_view name : programs_of(in_.wanted.role)) {
        const auto at = in_.programs->find(std::string(name));
        const auto there = check_.programs.find(std::string(name));
        if (at == in_.programs->end() ||
            (there != check_.programs.end() && there->second == at->second.sha256))
          continue;
        need += at->second.bytes / 1024 + 1;
      }
    }
    disk(check_.prefix_disk, "the prefix", check_.places.prefix,
         need == 0 ? 0 : need + kProgramSlackKb);
    if (check_.prefix_disk.has("noexec"))
      stop(
          fmt::format("the prefix '{}' is on a disk that is mounted noexec, so no program runs "
                      "there; name another directory with prefix:",
                      check_.places.prefix));
    disk(check_.state_disk, "the state directory", check_.places.state_dir,
         check_.running ? 0 : kStateKb);
    // What runs goes on. But a full disk may let nothing be written, and nobody deploy.
    if (check_.running && !check_.state_disk.has("ro") && check_.state_disk.free_kb < kStateKb)
      note(
          fmt::format("the state directory '{}' has {} MiB free, and should have {} MiB; make room "
                      "before the {} cannot write and 'up' fails",
                      check_.places.state_dir, mib(check_.state_disk.free_kb), mib(kStateKb),
                      program_of(in_.wanted.role)));
    if (is_network_disk(check_.state_disk.type))
      stop(
          fmt::format("the state directory '{}' is on a network disk ({}); it must be on a disk "
                      "of the host: set state_dir:",
                      check_.places.state_dir, check_.state_disk.type));
  }

  // Whoever owns a directory on the way, or may write to it, can put another one in the place of
  // what root runs and of the CA's key. In a directory with the sticky bit only owners rename.
  void owners() {
    constexpr unsigned kSticky = 01000, kOthersWrite = 0002, kGroupWrites = 0020;
    const auto text = [&](const WayDir& dir, std::string_view trouble) {
      return fmt::format(
          "'{}', on the way to the prefix or the state directory, {}, who could replace what runs "
          "there; name another directory, or correct it with chown and chmod",
          dir.path, trouble);
    };
    for (const WayDir& dir : check_.way_dirs) {
      const bool own_group = dir.gid == 0 || dir.gid == check_.own_gid;
      if (dir.uid != 0 && dir.uid != check_.uid)
        return stop(text(dir, fmt::format("belongs to user {}", dir.uid)));
      if ((dir.mode & kSticky) != 0) continue;
      if ((dir.mode & kOthersWrite) != 0) return stop(text(dir, "may be written by everybody"));
      if ((dir.mode & kGroupWrites) != 0 && !own_group)
        return stop(text(dir, fmt::format("may be written by group {}", dir.gid)));
    }
  }

  // A port of the controller. With a wrong one it would end at its start, when the old one is
  // stopped. `key` of hosts.yaml changes it.
  void port(bool taken, std::string_view what, std::string_view address, std::string_view key) {
    const unsigned number = hosts::split_address(address).port;
    if (taken)
      stop(
          fmt::format("another program listens at {} ({}); stop it, or set another one with "
                      "controller: {{{}: HOST:PORT}}",
                      what, address, key));
    if (number != 0 && number < check_.ports_from && check_.uid != 0)
      stop(
          fmt::format("'{}' may not listen at {} ({}), which is below {}; log in as root, or set "
                      "another one with controller: {{{}: HOST:PORT}}",
                      check_.user, what, address, check_.ports_from, key));
  }

  // An agent's way to one of the controller's ports. `listen` and `address` are the keys that
  // change it.
  void way(WayState state, std::string_view what, std::string_view address, std::string_view listen,
           std::string_view key) {
    const auto finding = [&](bool stops, std::string_view why) {
      out_.push_back({.stops = stops, .text = fmt::format("{} {} {}", what, address, why)});
    };
    switch (state) {
      case WayState::Open: return;
      case WayState::Unknown:
        return finding(false, "was not tried: there is no bash, python3 or nc");
      case WayState::Refused:
        if (!in_.controller_runs) return;  // the way is free as far as the controller's machine
        return finding(
            true,
            fmt::format("refuses connections from this host, though the controller runs: a "
                        "firewall, or it listens at another address (controller: {{{}: ...}})",
                        listen));
      case WayState::Silent:
        return finding(true, "does not answer this host within 5 s: open the port in the firewall");
      case WayState::NoName:
        return finding(true,
                       fmt::format("has a name that this host does not know; give one that "
                                   "it knows, or a number, with controller: {{{}: HOST:PORT}}",
                                   key));
      case WayState::Rejected:
        return finding(
            true, fmt::format(
                      "cannot be reached from this host ('No route to host'): most likely a "
                      "firewall on the controller's host rejects it; open TCP port {} there "
                      "(firewalld: 'firewall-cmd --permanent --add-port={}/tcp', then "
                      "'firewall-cmd --reload'). Or there is no route between the two: give an "
                      "address in a network of both, with controller: {{{}: HOST:PORT}}",
                      hosts::split_address(address).port, hosts::split_address(address).port, key));
      case WayState::NoRoute:
        return finding(true,
                       fmt::format("cannot be reached from this host: there is no route; give an "
                                   "address in a network of both, with controller: {{{}: "
                                   "HOST:PORT}}",
                                   key));
    }
  }

  void clock() {
    const auto off = in_.clock_ahead < 0s ? -in_.clock_ahead : in_.clock_ahead;
    if (off <= kClockNoted + in_.clock_slack) return;
    const std::string text =
        fmt::format("its clock is {} s {} the clock here; run NTP or chrony on it", off.count(),
                    in_.clock_ahead < 0s ? "behind" : "ahead of");
    if (off > kClockStops) {
      stop(text + ": certificates would not count there");
    } else {
      note(text);
    }
  }

  const JudgeInput& in_;
  const HostCheck& check_;
  std::vector<Finding> out_;
};

// The agent's certificate is of this node, and does not end soon. Texts of utc_text() sort by time.
bool credentials_serve(const Wanted& wanted, const HostCheck& check) {
  const auto left = enrol_address(wanted).empty() ? kCertificateLeft : kRenewedLeft;
  const WallTime least(std::chrono::seconds(check.time) + left);
  return check.credentials_valid && check.credentials_of == "node '" + wanted.name + "'" &&
         check.credentials_until > utc_text(least);
}

std::string words_sha(const std::vector<std::string>& words) {
  std::string bytes;
  for (const std::string& word : words) {
    bytes += word;
    bytes += '\0';
  }
  return sha256_hex(bytes);
}

}  // namespace

std::vector<Finding> judge(const JudgeInput& input) { return Judge(input).all(); }

Steps steps_for(const Wanted& wanted, const HostCheck& check, const ProgramSet& programs,
                const std::string& version) {
  Steps steps;
  for (const std::string_view name : programs_of(wanted.role)) {
    const auto at = programs.find(std::string(name));
    const auto there = check.programs.find(std::string(name));
    if (at == programs.end()) continue;
    if (there == check.programs.end() || there->second != at->second.sha256)
      steps.upload.emplace_back(name);
  }
  steps.set_current = check.current != version;
  steps.write_config = check.config_sha != sha256_hex(config_text(wanted, check.places));
  steps.issue = wanted.role == Role::Agent && !credentials_serve(wanted, check);
  const auto program = programs.find(std::string(program_of(wanted.role)));
  steps.start = !check.running || program == programs.end() ||
                check.running_exe_sha != program->second.sha256 ||
                check.running_words_sha != words_sha(command_words(wanted, check.places));
  return steps;
}

std::string text_of(const Steps& steps, const HostCheck& check) {
  std::vector<std::string> words;
  if (!steps.upload.empty())
    words.push_back(fmt::format("upload {}", fmt::join(steps.upload, ", ")));
  if (steps.set_current) words.emplace_back("make it the current version");
  if (steps.write_config) words.emplace_back("write its configuration");
  if (steps.issue)
    words.emplace_back(check.credentials_there ? "issue new credentials" : "issue credentials");
  if (steps.start) words.emplace_back(check.running ? "start it again" : "start it");
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace muster::rollout
