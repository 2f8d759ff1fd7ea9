// Lists an input at its store, and fetches the objects that the node does not have. Plain
// functions, on the thread of a start; they block.
//
// One rclone fetches one batch, into a private directory. What an ended or killed rclone has left
// there is believed only after it was read: a file of the full size may have a hole. So a start
// that is repeated fetches what is missing, object by object. An rclone ends with its agent.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "agent/launch/abandoned.h"
#include "agent/stage/input_cache.h"
#include "agent/store/rclone_run.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/store/manifest.h"

namespace muster::agent {

// How long a store may give nothing before a start is given up: it may be started again.
inline constexpr std::chrono::minutes kStoreAwayMost{10};

// What a fetch asks its start, on the start's thread.
struct FetchCalls {
  const Abandoned& abandoned;                         // set: any result will do, soon
  std::function<void(std::uint64_t bytes)> progress;  // of what is missing, so many have come
  std::function<WallTime()> now;
  std::chrono::milliseconds away_most = kStoreAwayMost;
};

// Of what `wanted` has. Errors: as of fetch_objects(); those of store::parse_listing().
Result<store::Manifest> list_input(process::ToolRunner& runner, const RcloneRun& rclone,
                                   const store::Url& url, const store::Selection& wanted,
                                   const FetchCalls& calls);

struct FetchPlace {
  std::string prefix;       // of the keys: in which bucket or host, and who answers for it
  std::string path;         // of the URL, in there; "" is all of it
  std::string unversioned;  // stands for the version of objects that have none; another each time
  bool is_file = false;
  std::filesystem::path partial;     // of this fetch alone; made and removed by it
  std::uint64_t min_free_bytes = 0;  // stay free on its disk, or the fetch ends
};
// The key of an object in the cache.
std::string cache_key(const FetchPlace& place, const store::Object& object);

// Puts them into the cache. Errors: NotAllowed, with what rclone says, when the store refuses;
// Unreachable after `away_most`; Io: the node's trouble; Conflict: an object is there no more;
// DataLoss: an object is not what the list says; ResourceExhausted: the disk is full.
Result<void> fetch_objects(process::ToolRunner& runner, const RcloneRun& rclone,
                           const std::vector<store::Object>& missing, const FetchPlace& place,
                           InputCache& cache, const FetchCalls& calls);

}  // namespace muster::agent
