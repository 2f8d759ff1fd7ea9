#include "agent/saves/checkpoint_watch.h"

#include <algorithm>

namespace muster::agent {
namespace {

constexpr Duration kUnknownFor = std::chrono::seconds(5);

bool same(const engine::FoundCheckpoint& left, const engine::FoundCheckpoint& right) {
  return left.path == right.path && left.expected == right.expected &&
         left.sealed == right.sealed &&
         std::ranges::equal(left.shards, right.shards,
                            [](const engine::FoundShard& one, const engine::FoundShard& other) {
                              return one.name == other.name && one.bytes == other.bytes &&
                                     one.finished == other.finished;
                            });
}

std::ptrdiff_t finished(const engine::FoundCheckpoint& checkpoint) {
  return std::ranges::count_if(checkpoint.shards, &engine::FoundShard::finished);
}

}  // namespace

Result<std::unique_ptr<CheckpointWatch>> CheckpointWatch::make(const v1::Watching& watching) {
  if (watching.save_dir().empty() || watching.layout().empty() || watching.layout() == "none")
    return nullptr;
  auto layout = engine::make_layout(
      watching.layout(), {.world_size = watching.world_size(), .shards = watching.shards()});
  if (!layout) return fail(std::move(layout.error()));
  return std::unique_ptr<CheckpointWatch>(
      new CheckpointWatch({std::move(*layout), watching.save_dir()}));
}

std::set<std::string> SaveDir::dirs(const engine::FileView& files,
                                    const std::vector<engine::FoundCheckpoint>& found) const {
  std::set<std::string> dirs{path};
  for (const engine::FoundCheckpoint& checkpoint : found) {
    dirs.insert(checkpoint.path);
    for (const auto& entry : files.list(checkpoint.path)) {
      if (dirs.size() >= kDirsMost) return dirs;
      if (entry.directory) dirs.insert(checkpoint.path + "/" + entry.name);
    }
  }
  return dirs;
}

bool CheckpointWatch::accept(std::vector<engine::FoundCheckpoint> found, std::uint64_t mark) {
  bool news = false;
  std::map<std::int64_t, Known> now;
  for (engine::FoundCheckpoint& checkpoint : found) {
    const auto before = known_.find(checkpoint.step);
    const bool changed = before == known_.end() || !same(before->second.checkpoint, checkpoint);
    const bool was_sealed = before != known_.end() && before->second.checkpoint.sealed;
    const std::ptrdiff_t were_finished =
        before == known_.end() ? 0 : finished(before->second.checkpoint);
    news = news || finished(checkpoint) > were_finished || (checkpoint.sealed && !was_sealed);
    const std::uint64_t step_mark = changed ? mark : before->second.mark;
    now[checkpoint.step] = Known{std::move(checkpoint), step_mark};
  }
  known_ = std::move(now);
  return news;
}

void CheckpointWatch::accept_unknown(std::string file, BootTime now, bool last) {
  if (file.empty()) {
    unknown_.clear();
    unknown_since_.reset();
    return;
  }
  if (!unknown_since_) unknown_since_ = now;
  if (last || now - *unknown_since_ >= kUnknownFor) unknown_ = std::move(file);
}

void CheckpointWatch::fill(v1::AttemptReading& reading, std::uint64_t since) const {
  if (!unknown_.empty()) reading.set_unknown_file(unknown_);
  for (const auto& [step, known] : known_) {
    if (known.mark <= since) continue;
    for (const engine::FoundShard& shard : known.checkpoint.shards) {
      v1::ShardReading& to = *reading.add_shards();
      to.set_step(step);
      to.set_shard(shard.name);
      to.set_bytes(shard.bytes);
      to.set_finished(shard.finished);
      to.set_expected(known.checkpoint.expected);
      to.set_sealed(known.checkpoint.sealed);
      to.set_path(known.checkpoint.path);
    }
  }
}

}  // namespace muster::agent
