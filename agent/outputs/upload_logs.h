// Uploads the logs of a run, as segments (log_segments.h): the logs of its processes on this node,
// and the files of their process logs. Plain functions, on the thread of an upload; they block.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "agent/launch/abandoned.h"
#include "agent/logs/log_source.h"
#include "agent/outputs/send_files.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct LogUploadWork {
  const v1::LogUpload& upload;
  const std::string& key;  // as in UploadWork
  std::uint64_t rate_limit;
  const Abandoned& abandoned;
  std::chrono::milliseconds away_most = kUploadAwayMost;
};

struct RunLogs {
  RunKey run;
  std::filesystem::path run_dir;
  std::filesystem::path dir;  // that of log_segments.h
  LogSource& logs;
  bool has_ended = false;  // no process of the run writes any more: everything is uploaded
};

// `files` and `bytes`: segments of the run that are there, and the text in them. A log whose end is
// not read yet is waited for; one from which nothing comes for `away_most` is a problem.
Uploaded upload_logs(const LogUploadWork& work, const RunLogs& run);

}  // namespace muster::agent
