#include "client/render/health_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "client/render/device_text.h"
#include "client/render/node_text.h"
#include "client/render/text.h"
#include "common/proto/proto_time.h"

namespace muster::render {
namespace {

// Beyond the first, times of logs and events are hard to compare. Beyond the second, certificates
// and deadlines go wrong, too.
constexpr Duration kClockWarn = std::chrono::seconds(5), kClockBad = std::chrono::minutes(1);
// The agent's own default below which it starts nothing (--min-free).
constexpr std::uint64_t kBytesLeast = 256ULL << 20U;
constexpr std::uint64_t kBytesFew = 2ULL << 30U;
constexpr std::uint64_t kInodesLeast = 128, kInodesFew = 10'000;

std::string clock_text_of(Duration ahead) {
  const bool behind = ahead < Duration::zero();
  return fmt::format("{} {} the controller's clock", duration_text(behind ? -ahead : ahead),
                     behind ? "behind" : "ahead of");
}

Check clock_check(std::string subject, Duration ahead) {
  const Duration off = ahead < Duration::zero() ? -ahead : ahead;
  Check check{.subject = std::move(subject), .what = "clock", .text = clock_text_of(ahead)};
  if (off < kClockWarn) {
    check.text = fmt::format("within {} of the controller's", duration_text(kClockWarn));
    return check;
  }
  check.level = off < kClockBad ? Level::Warn : Level::Bad;
  check.advice = "let a time service set it there (chrony, systemd-timesyncd)";
  return check;
}

Check connection_check(const v1::Node& node, const std::string& subject, WallTime now) {
  Check check{.subject = subject, .what = "connection"};
  if (node.dead()) {
    check.level = Level::Warn;
    check.text = "declared dead";
    check.advice = fmt::format("if it is gone for good: muster node rm {}", node.name());
    return check;
  }
  const std::string heard =
      node.has_last_heard() ? ", heard " + ago_text(node.last_heard(), now) : "";
  if (node.connected() && !node.silent()) {
    check.text = "connected" + heard;
    return check;
  }
  check.level = Level::Bad;
  check.text = (node.silent() ? "silent" : "not connected") + heard;
  check.advice =
      "is the machine on, and its agent running? Its log says what it waits for "
      "(journalctl -u muster-agent; of 'muster deploy': STATE_DIR/muster-agent.log on that host)";
  return check;
}

std::string room_text(const v1::HostReading& host) {
  std::string text = fmt::format("{} of {} free", bytes_text(host.disk_bytes_free()),
                                 bytes_text(host.disk_bytes()));
  if (host.inodes() > 0) text += fmt::format(", {} inodes", host.inodes_free());
  return text;
}

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::Ok: return "ok";
    case Level::Warn: return "warn";
    case Level::Bad: return "bad";
  }
  return "";
}

Tint tint_of(Level level) {
  switch (level) {
    case Level::Ok: return Tint::Good;
    case Level::Warn: return Tint::Warn;
    case Level::Bad: return Tint::Bad;
  }
  return Tint::Plain;
}

std::optional<Check> disk_check(const v1::Node& node) {
  Check check{.subject = "node " + node.name(), .what = "disk"};
  const v1::HostReading& host = node.host();
  const std::string where = host.state_dir().empty() ? "its state directory" : host.state_dir();
  if (!node.disk_trouble().empty()) {
    check.level = Level::Bad;
    check.text = "takes no writes: " + node.disk_trouble();
    check.advice = "make room there, or mount it writable: ends of ranks are not seen before";
    return check;
  }
  if (!node.has_host()) return std::nullopt;
  check.text = fmt::format("{}: {}", where, room_text(host));
  if (!host.disk_error().empty()) {
    check.level = Level::Bad;
    check.text = fmt::format("{} cannot be checked: {}", where, host.disk_error());
    check.advice = "look at the disk and its mount there";
  } else if (host.read_only()) {
    check.level = Level::Bad;
    check.text = where + " is mounted read-only";
    check.advice = "look for errors of the disk there (dmesg), and mount it writable";
  } else if (host.disk_bytes() > 0 && host.disk_bytes_free() < kBytesLeast) {
    check.level = Level::Bad;
    check.advice = "make room there: no job is started on a disk that is this full";
  } else if (host.inodes() > 0 && host.inodes_free() < kInodesLeast) {
    check.level = Level::Bad;
    check.advice = "remove files there that nobody needs (df -i): each new file needs an inode";
  } else if ((host.disk_bytes() > 0 && host.disk_bytes_free() < kBytesFew) ||
             (host.inodes() > 0 && host.inodes_free() < kInodesFew)) {
    check.level = Level::Warn;
    check.advice = "make room there soon";
  }
  return check;
}

std::optional<Check> outputs_check(const v1::Node& node) {
  if (!node.has_outputs()) return std::nullopt;
  const v1::NodeOutputs& outputs = node.outputs();
  Check check{.subject = "node " + node.name(), .what = "outputs"};
  if (!outputs.trouble().empty()) {
    check.level = Level::Warn;
    check.text = "jobs cannot save there: " + outputs.trouble();
    check.advice =
        "mount it, or let the agent's user write there; jobs may name an outputs.dir of their own";
  } else if (outputs.storage().empty()) {
    check.text = fmt::format("{}: not known yet which nodes share it", outputs.root());
  } else if (outputs.nodes() < 2) {
    check.text = fmt::format("{}: no other node sees the files there", outputs.root());
  } else {
    check.text = fmt::format("{}: shared by {} nodes (storage {})", outputs.root(), outputs.nodes(),
                             outputs.storage());
  }
  return check;
}

std::optional<Check> shared_outputs_check(
    const google::protobuf::RepeatedPtrField<v1::Node>& nodes) {
  std::map<std::string, std::vector<std::string>> by_storage;
  std::string root;
  std::size_t connected = 0, unknown = 0;
  for (const v1::Node& node : nodes) {
    if (!node.connected()) continue;
    ++connected;
    if (!node.outputs().root().empty()) root = node.outputs().root();
    if (node.outputs().storage().empty())
      ++unknown;
    else
      by_storage[node.outputs().storage()].push_back(node.name());
  }
  if (by_storage.empty()) return std::nullopt;
  Check check{.subject = "cluster", .what = "outputs"};
  if (by_storage.size() == 1) {
    const std::size_t share = by_storage.begin()->second.size();
    check.text =
        connected == 1
            ? fmt::format("{}, on the only node", root)
            : fmt::format("{}: {} of {} connected nodes share it{}", root, share, connected,
                          unknown == 0 ? "" : ", of the others it is not known");
    return check;
  }
  std::string groups;
  for (const auto& [storage, names] : by_storage)
    groups += fmt::format("{}{}{}", groups.empty() ? "" : "; ", names.front(),
                          names.size() == 1 ? "" : fmt::format(" and {} more", names.size() - 1));
  check.level = Level::Warn;
  check.text = fmt::format("{}: the nodes have {} different storages there ({})", root,
                           by_storage.size(), groups);
  check.advice =
      "a job over several nodes loses checkpoints with a node: mount shared storage there, give "
      "the "
      "controller an --outputs-root that is shared, or use checkpoint.storage: local";
  return check;
}

namespace {

Check judged_end(std::string subject, WallTime ends, WallTime now, Duration soon,
                 std::string renewal) {
  const Duration left = ends - now;
  Check check{.subject = std::move(subject),
              .what = "certificate",
              .text = fmt::format("ends in {}, at {}", duration_text(left), utc_text(ends))};
  if (left <= Duration::zero()) {
    check.level = Level::Bad;
    check.text = "has ended, at " + utc_text(ends);
  } else if (left < soon) {
    check.level = Level::Warn;
  }
  if (check.level != Level::Ok) check.advice = std::move(renewal);
  return check;
}

}  // namespace

Check certificate_check(std::string subject, WallTime ends, WallTime now, std::string renewal) {
  return judged_end(std::move(subject), ends, now, kEndsSoon, std::move(renewal));
}

Check client_certificate_check(WallTime begins, WallTime ends, WallTime now) {
  return judged_end("this client", ends, now, std::min<Duration>(kEndsSoon, (ends - begins) / 8),
                    "log in again ('muster login'), or 'muster cert issue --user NAME' on the "
                    "controller's machine makes a new one");
}

Check client_clock_check(Duration ahead) { return clock_check("this machine", ahead); }

std::vector<Check> node_checks(const v1::Node& node, const std::string& version, WallTime now) {
  const std::string subject = "node " + node.name();
  std::vector<Check> checks = {connection_check(node, subject, now)};
  if (node.has_drain())
    checks.push_back({.subject = subject,
                      .what = node.drain().drained() ? "drained" : "draining",
                      .text = drain_text(node.drain(), now)});
  // What an agent that is away has reported may be old.
  if (node.dead() || !node.connected()) return checks;
  if (!node.version().empty() && node.version() != version)
    checks.push_back(
        {.level = Level::Warn,
         .subject = subject,
         .what = "version",
         .text = fmt::format("its agent is {}, the controller {}", node.version(), version),
         .advice = "upgrade the older one; agents may be restarted while jobs run"});
  if (node.has_clock_ahead())
    checks.push_back(clock_check(subject, to_duration(node.clock_ahead())));
  if (auto disk = disk_check(node)) checks.push_back(*std::move(disk));
  if (auto outputs = outputs_check(node)) checks.push_back(*std::move(outputs));
  const v1::HostReading& host = node.host();
  if (!host.cgroup_trouble().empty())
    checks.push_back({.level = Level::Warn,
                      .subject = subject,
                      .what = "cgroups",
                      .text = host.cgroup_trouble(),
                      .advice = "run the agent as a service with Delegate=yes, or give --cgroup"});
  else if (node.has_host())
    checks.push_back(
        {.subject = subject, .what = "cgroups", .text = "runs get control groups of their own"});
  if (!host.missing_tools().empty())
    checks.push_back({.level = Level::Warn,
                      .subject = subject,
                      .what = "programs",
                      .text = fmt::format("missing: {}", fmt::join(host.missing_tools(), "; ")),
                      .advice = "install what your jobs use"});
  if (host.has_certificate_ends())
    checks.push_back(certificate_check(
        subject, to_wall(host.certificate_ends()), now,
        fmt::format("muster cert issue --node {0}, on the controller's machine, makes a new one; "
                    "put it in the place of the agent's --credentials",
                    node.name())));
  std::size_t troubled = 0;
  std::string first;
  for (const v1::DeviceReading& reading : node.readings()) {
    if (reading.health() != v1::DEVICE_HEALTH_BAD) continue;
    if (troubled++ == 0) first = trouble_text(reading);
  }
  if (troubled > 0)
    checks.push_back({.level = Level::Bad,
                      .subject = subject,
                      .what = "devices",
                      .text = fmt::format("{} bad{}{}", troubled, first.empty() ? "" : ": ", first),
                      .advice = fmt::format("muster node show {} has all of them", node.name())});
  if (!node.unknown_attempts().empty())
    checks.push_back(
        {.level = Level::Bad,
         .subject = subject,
         .what = "unknown runs",
         .text = fmt::format("{} that this controller does not know", node.unknown_attempts_size()),
         .advice = fmt::format("muster node show {} names them; end their "
                               "muster-worker there",
                               node.name())});
  return checks;
}

std::vector<Check> controller_checks(const v1::GetClusterStatusResponse& status, WallTime now) {
  const std::string subject = "controller";
  std::vector<Check> checks;
  if (!status.paused().empty())
    checks.push_back(
        {.level = Level::Bad, .subject = subject, .what = "paused", .text = status.paused()});
  if (!status.disk_shortage().empty()) {
    checks.push_back({.level = Level::Bad,
                      .subject = subject,
                      .what = "disk",
                      .text = status.disk_shortage(),
                      .advice = "make room on the controller's disk: no new job is accepted"});
  } else if (status.disk_bytes() > 0) {
    const bool few = status.disk_bytes_free() < kBytesFew;
    checks.push_back(
        {.level = few ? Level::Warn : Level::Ok,
         .subject = subject,
         .what = "disk",
         .text = fmt::format("{}: {} of {} free", status.state_dir(),
                             bytes_text(status.disk_bytes_free()), bytes_text(status.disk_bytes())),
         .advice = few ? "make room there soon" : ""});
  }
  if (status.has_certificate_ends())
    checks.push_back(certificate_check(subject, to_wall(status.certificate_ends()), now,
                                       "the cluster's CA ends with it: make a new one"));
  return checks;
}

}  // namespace muster::render
