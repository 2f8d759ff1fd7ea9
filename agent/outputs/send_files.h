// Sends files of a directory to the store of a job's outputs. Plain functions, on the thread of an
// upload; they block. rclone has the rights of the agent's user, who is the job's.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "agent/core/reconcile.h"
#include "agent/launch/abandoned.h"
#include "agent/launch/user_entry.h"
#include "agent/outputs/sent_files.h"
#include "common/base/error.h"
#include "common/store/sums.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// How long the store may take nothing before an upload is given up.
inline constexpr std::chrono::minutes kUploadAwayMost{30};

struct Uploaded {
  std::uint64_t files = 0, bytes = 0;  // that are there
  std::string problem;                 // a sentence; empty: all are
  store::Sums sums = {};               // of those; of a checkpoint until its list is there
  std::string sums_sha256 = {};        // of a checkpoint's list that is there
  // Of checkpoints that were to be removed.
  std::vector<RunSeen::Removed> removed = {};
  std::string not_removed = {};  // a sentence; empty: all are
  static Uploaded failed(const Error& error) {
    return {.files = 0, .bytes = 0, .problem = error.message};
  }
};

struct UploadWork {
  const v1::OutputUpload& upload;  // without a `node` no sums are wanted
  const std::string& key;          // what the store's secret has
  const UserEntry* owner;          // whose files they are; nullptr: the agent's own user's
  std::string job;
  std::filesystem::path sent;  // where sent_files.h remembers them
  std::uint64_t rate_limit;    // bytes a second; 0: none
  const Abandoned& abandoned;  // when it is set, any result will do
  std::chrono::milliseconds away_most = kUploadAwayMost;
};

struct FilesToSend {
  std::string dir;  // absolute; its file a/b goes to URL/a/b
  // Files that were sent before are sent again if they are not there any more.
  bool checks = true;
  // They are files of the job: each is remembered, and its sum is wanted.
  bool remembers = true;
  // What they are at this moment.
  std::function<Result<SentFiles>()> list;
  // Those that are sent when all others are there; nullptr: none.
  std::function<bool(const std::string&)> is_last;
  // Called before such are written that the store does not have, as far as is known.
  std::function<void(const std::vector<std::string>& names)> before_fresh = nullptr;
};

// Sends each file that was not sent before, or is not there any more. It waits for a store that is
// away. A file that is written meanwhile is sent again, and is a problem in the end if that does
// not stop.
Uploaded send_files(const UploadWork& work, const FilesToSend& files);

}  // namespace muster::agent
