// JobReach is what a job can reach on this node's disks: where agent and worker read what the job
// has written, links of the job lead no further than the job itself could go. Plain value. InReach
// applies it on one thread, which creates, uses and destroys it. Blocking.
//
//   - Another user's job: files are read with that user's rights. Where the agent cannot take them,
//     nothing is read.
//   - A job in a container: only what lies in one of the container's mounts is read. The open file
//     shows where it lies, however fast somebody replaces a part of its path. Where the mounts are
//     is looked up once, before the container starts: later the job may replace what is above one.
//   - Any other job has the agent's own rights. Its links are followed wherever they lead.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/launch/user_entry.h"
#include "agent/launch/with_rights.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

struct JobReach {
  std::optional<UserEntry> user{};    // none: the agent's own
  bool container = false;             // only what is in one of `mounts` is read
  std::vector<std::string> mounts{};  // absolute paths on the node, as mount_roots() makes them
};

// The places of directories, which need not exist, without links, as far as they exist now.
std::vector<std::string> mount_roots(const std::vector<std::string>& sources);

// For a start, whose container does not exist yet. `owner` as in StartWork.
JobReach reach_of(const v1::NodeLaunch& order, const UserEntry* owner);

class InReach {
 public:
  explicit InReach(JobReach reach)
      : reach_(std::move(reach)), rights_(reach_.user ? &*reach_.user : nullptr) {}

  // NotAllowed: it does not have the user's rights, so the job reaches nothing.
  [[nodiscard]] Result<void> check() const { return rights_.check(); }
  // False: links of the job may lead anywhere.
  [[nodiscard]] bool confined() const { return reach_.container; }
  // Whether the job can reach the open file. Any kind of descriptor, O_PATH included.
  [[nodiscard]] bool allows(int fd) const;
  // Whether a file of any kind exists there. It is not opened for reading.
  [[nodiscard]] bool exists(const std::string& path) const;

 private:
  const JobReach reach_;
  const WithRightsOf rights_;
};

}  // namespace muster::agent
