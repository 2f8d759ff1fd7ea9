// FilesIn receives the files of one Fetch of this node's order. FileStreams::fetch() creates one
// per transfer and destroys it afterwards. It blocks, on the thread of a start.
//
// The files are written to a directory next to their final path. When all of them have arrived,
// each is moved to its final path. If the transfer is cut off, no file is moved.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "agent/launch/launch_record.h"
#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

class FilesIn {
 public:
  // `path` is Fetch.path. `mark` and the attempt name the directory next to it. What earlier
  // attempts left with the same mark is removed. The files belong to `owner` (nullptr: the agent's
  // own user) and are made with that user's rights. Only the parent directories are made by the
  // agent, for that user.
  static Result<FilesIn> begin(const std::string& path, const std::string& mark,
                               std::uint32_t attempt, const UserEntry* owner);
  ~FilesIn();  // removes files that were not moved
  FilesIn(FilesIn&&) = default;
  FilesIn(const FilesIn&) = delete;
  FilesIn& operator=(const FilesIn&) = delete;
  FilesIn& operator=(FilesIn&&) = delete;

  // Takes the parts in order of arrival. InvalidArgument: not as FilePart requires;
  // ResourceExhausted: no space.
  Result<void> take(const v1::FilePart& part);
  [[nodiscard]] bool whole() const { return whole_; }
  // Call it after FilesEnd. Moves the files to their final paths and replaces what is there.
  Result<void> put();

 private:
  FilesIn(std::filesystem::path path, std::filesystem::path staging, const UserEntry* owner);
  Result<void> begin_file(const v1::FileBegin& file);
  Result<void> end_file();
  [[nodiscard]] std::unexpected<Error> wrong(const std::string& what) const;

  std::filesystem::path path_, staging_;
  const UserEntry* owner_;
  std::vector<std::string> files_;
  io::UniqueFd file_;
  std::uint64_t left_ = 0, bytes_ = 0;
  std::uint32_t mode_ = 0;
  bool whole_ = false;
};

}  // namespace muster::agent
