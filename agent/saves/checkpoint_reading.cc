#include "agent/saves/checkpoint_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>
#include <vector>

#include "agent/launch/disk_view.h"
#include "common/digest/sha256.h"

namespace muster::agent {
namespace {

constexpr int kTornMost = 64;
constexpr std::size_t kFoundMost = 8;
constexpr std::size_t kNewestMost = 2;  // per attempt: as many as are reported while it runs

bool is_of_rank(const engine::FoundShard& shard) { return shard.name.starts_with("rank_"); }
bool is_own(const engine::FoundShard& shard, const v1::ResumeLinks& resume) {
  for (std::uint32_t i = 0; i < resume.ranks(); ++i)
    if (shard.name == fmt::format("rank_{}", resume.first_rank() + i)) return true;
  return false;
}

std::optional<engine::FoundCheckpoint> find_step(const engine::CheckpointLayout& layout,
                                                 const engine::FileView& files,
                                                 const v1::ResumeLinks& resume) {
  // It is normally one of the newest two, and each scan costs reads on a network file system.
  for (std::size_t newest = 2;; newest *= 4) {
    std::vector<engine::FoundCheckpoint> found = layout.scan(files, resume.source(), newest);
    for (engine::FoundCheckpoint& one : found) {
      if (one.step == resume.step()) return std::move(one);
    }
    if (found.size() < newest) return std::nullopt;
  }
}

v1::CheckpointReading reading_of(const std::vector<engine::FoundShard>& shards,
                                 std::size_t needed) {
  v1::CheckpointReading reading;
  std::vector<std::string> names;
  for (const engine::FoundShard& shard : shards) {
    names.push_back(shard.name + "\n");
    if (!shard.finished && reading.torn_size() < kTornMost) reading.add_torn(shard.name);
  }
  std::ranges::sort(names);
  std::string all;
  for (const std::string& name : names) all += name;
  reading.set_there(static_cast<std::uint32_t>(shards.size()));
  reading.set_needed(static_cast<std::uint32_t>(needed));
  reading.set_names_sha256(sha256_hex(all));
  return reading;
}

std::string torn_text(const v1::CheckpointReading& reading, std::size_t whole) {
  std::string text = fmt::format("torn: {} of its {} shards are whole", whole, reading.needed());
  if (!reading.torn().empty())
    text += fmt::format(
        "; short or damaged: {}{}", reading.torn(0),
        reading.torn_size() > 1 ? fmt::format(" and {} more", reading.torn_size() - 1) : "");
  if (reading.there() < reading.needed())
    text += fmt::format(
        "; not there: {}; keep checkpoints on a file system that every node sees, or say "
        "checkpoint.storage: local",
        reading.needed() - reading.there());
  return text;
}

bool is_whole(const engine::FoundCheckpoint& found) {
  return found.sealed && found.expected > 0 && found.shards.size() >= found.expected &&
         std::ranges::all_of(found.shards, &engine::FoundShard::finished);
}

// "attempt-3", as engine::save_dir makes it.
std::optional<std::uint32_t> attempt_of(const engine::FileView::Entry& entry) {
  constexpr std::string_view kPrefix = "attempt-";
  if (!entry.directory || !entry.name.starts_with(kPrefix)) return std::nullopt;
  std::uint32_t number = 0;
  const char* end = entry.name.data() + entry.name.size();
  const auto [rest, error] = std::from_chars(entry.name.data() + kPrefix.size(), end, number);
  return error == std::errc() && rest == end && number > 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

// The controller chose the step by an earlier reading. It may have been removed or damaged since,
// or be on a disk of another node. The tracker is not read: the attempt that ended may have torn it
// while it saved the next step.
Result<engine::LinkPlan> plan_resume_links(const v1::ResumeLinks& resume,
                                           v1::CheckpointReading& reading, const JobReach& reach) {
  // checkpoint.storage: local: a node has only some shards on its own disk
  const std::uint32_t all = resume.ranks() > 0 ? 0 : resume.shards();
  auto layout = engine::make_layout(
      resume.layout(), {.shards = all, .sealed_step = resume.given() ? -1 : resume.step()});
  if (!layout) return fail(std::move(layout).error().in("making the directory of links"));
  std::string trouble;
  const InReach in_reach(reach);
  if (auto have = in_reach.check(); !have) return fail(std::move(have.error()));
  const DiskView files(&trouble, &in_reach);
  const auto doing = [&] {
    return fmt::format("resuming from step {} in '{}'", resume.step(), resume.source());
  };
  const auto gone = [&]() -> std::unexpected<Error> {
    if (!trouble.empty())
      return fail(ErrorCode::Io,
                  fmt::format("{}: {}; this node cannot determine whether its checkpoint is whole",
                              doing(), trouble));
    if (resume.given()) {
      return fail(ErrorCode::NotFound,
                  fmt::format("start.from: '{}' holds no checkpoint of step {} on this node; name "
                              "a directory that every node sees, and a step that is in it (weights "
                              "alone, as in checkpoint_network, are no checkpoint: start.as: "
                              "weights takes them)",
                              resume.source(), resume.step()));
    }
    return fail(ErrorCode::DataLoss,
                fmt::format("{}: its checkpoint is not there on this node; keep checkpoints on a "
                            "file system that every node sees, and leave the newest two of a job "
                            "that runs",
                            doing()));
  };
  engine::LinkPlan plan = (*layout)->resume_links(files, resume.source(), resume.step());
  if (plan.links.empty()) return gone();
  std::optional<engine::FoundCheckpoint> step = find_step(**layout, files, resume);
  if (!step) return gone();
  // The count from when the checkpoint was complete comes before the count from the shards that
  // exist. A directory may be missing in all of them.
  std::size_t needed =
      std::max<std::size_t>({all > 0 ? all : step->expected, step->shards.size(), 1});
  // the shards of other ranks are on disks of other nodes
  if (resume.ranks() > 0 && std::ranges::any_of(step->shards, &is_of_rank)) {
    std::erase_if(step->shards,
                  [&](const engine::FoundShard& shard) { return !is_own(shard, resume); });
    needed = resume.ranks();
  }
  const auto finished =
      static_cast<std::size_t>(std::ranges::count_if(step->shards, &engine::FoundShard::finished));
  if (finished >= needed) return plan;
  if (!trouble.empty()) return gone();
  const v1::CheckpointReading read = reading_of(step->shards, needed);
  if (resume.given()) {
    return fail(ErrorCode::NotFound,
                fmt::format("start.from: the checkpoint of step {} in '{}' is {}; name a step that "
                            "is whole, or another directory",
                            resume.step(), resume.source(), torn_text(read, finished)));
  }
  reading = read;
  return fail(ErrorCode::DataLoss,
              fmt::format("{}: its checkpoint is {}", doing(), torn_text(read, finished)));
}

std::string find_newer(const v1::NodeLaunch& order, v1::CheckpointReading& reading,
                       const UserEntry* owner) {
  const v1::ScanFirst& first = order.scan_first();
  const v1::Watching& watching = order.watching();
  const auto layout = engine::make_layout(
      watching.layout(), {.world_size = watching.world_size(), .shards = watching.shards()});
  if (!layout) return {};
  const InReach reach(reach_of(order, owner));
  const DiskView files(nullptr, &reach);
  std::vector<v1::FoundStep> found;
  for (const engine::FileView::Entry& entry : files.list(first.dir())) {
    const auto attempt = attempt_of(entry);
    if (!attempt || *attempt >= order.attempt()) continue;
    for (const engine::FoundCheckpoint& one :
         (*layout)->scan(files, fmt::format("{}/{}", first.dir(), entry.name), kNewestMost)) {
      if ((first.has_beyond() && one.step <= first.beyond()) || !is_whole(one)) continue;
      v1::FoundStep& step = found.emplace_back();
      step.set_attempt(*attempt);
      step.set_step(one.step);
      step.set_path(one.path);
      step.set_shards(static_cast<std::uint32_t>(one.shards.size()));
      for (const engine::FoundShard& shard : one.shards) step.set_bytes(step.bytes() + shard.bytes);
    }
  }
  if (found.empty()) return {};
  std::ranges::sort(found, std::greater{},
                    [](const v1::FoundStep& one) { return std::tuple(one.step(), one.attempt()); });
  found.resize(std::min(found.size(), kFoundMost));
  for (const v1::FoundStep& one : found) *reading.add_found() = one;
  return fmt::format(
      "looking for checkpoints that the journal has lost: '{}' holds step {} of attempt {}, whole "
      "and newer than {}",
      first.dir(), found[0].step(), found[0].attempt(),
      first.has_beyond() ? fmt::format("step {}", first.beyond()) : "the beginning");
}

}  // namespace muster::agent
