// The mutex of a LogFile is locked while this lives. The class is private to log_file*.cc.
#pragma once

#include "agent/logs/log_file.h"

namespace muster::agent {

class MUSTER_SCOPED_CAPABILITY LogFile::Use {
 public:
  explicit Use(LogFile& file) MUSTER_ACQUIRE(file.mutex_) : file_(file) { file_.mutex_.lock(); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() MUSTER_RELEASE() {
    if (!file_.kept_) {
      file_.fd_.reset();
      file_.cursor_.close();
    }
    file_.mutex_.unlock();
  }

 private:
  LogFile& file_;
};

}  // namespace muster::agent
