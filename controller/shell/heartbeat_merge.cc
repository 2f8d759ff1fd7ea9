#include "controller/shell/heartbeat_merge.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace muster::controller {
namespace {

void take_over_samples(v1::AttemptReading& newest, v1::AttemptReading& earlier) {
  auto& samples = *earlier.mutable_samples();
  samples.MergeFrom(newest.samples());
  if (samples.size() > kSamplesKept) samples.DeleteSubrange(0, samples.size() - kSamplesKept);
  newest.mutable_samples()->Swap(&samples);
}

void take_over_shards(v1::AttemptReading& newest, v1::AttemptReading& earlier) {
  std::set<std::pair<std::int64_t, std::string>> known;
  std::set<std::int64_t> steps;
  for (const v1::ShardReading& shard : newest.shards()) {
    known.emplace(shard.step(), shard.shard());
    steps.insert(shard.step());
  }
  for (const v1::ShardReading& shard : earlier.shards()) steps.insert(shard.step());
  while (steps.size() > kStepsKept) steps.erase(steps.begin());
  for (v1::ShardReading& shard : *earlier.mutable_shards()) {
    if (steps.contains(shard.step()) && !known.contains({shard.step(), shard.shard()}))
      *newest.add_shards() = std::move(shard);
  }
}

}  // namespace

void take_over(v1::Heartbeat& newest, v1::Heartbeat earlier) {
  if (newest.ByteSizeLong() + earlier.ByteSizeLong() > kBytesMost) return;
  if (newest.devices().empty()) newest.mutable_devices()->Swap(earlier.mutable_devices());
  if (earlier.has_host() && !newest.has_host())
    newest.mutable_host()->Swap(earlier.mutable_host());
  else if (earlier.host().has_outputs() && !newest.host().has_outputs())
    newest.mutable_host()->mutable_outputs()->Swap(earlier.mutable_host()->mutable_outputs());
  std::map<std::pair<std::string, std::uint32_t>, int> places;
  for (int i = 0; i < newest.readings_size(); ++i)
    places.emplace(std::pair(newest.readings(i).job_id(), newest.readings(i).attempt()), i);
  for (v1::AttemptReading& reading : *earlier.mutable_readings()) {
    const auto place = places.find({reading.job_id(), reading.attempt()});
    if (place == places.end()) {
      *newest.add_readings() = std::move(reading);
      continue;
    }
    v1::AttemptReading& counts = *newest.mutable_readings(place->second);
    take_over_samples(counts, reading);
    take_over_shards(counts, reading);
  }
}

}  // namespace muster::controller
