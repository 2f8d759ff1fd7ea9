// What comes of one Bring of this node's order: written beside its place, and put there file by
// file when all of it has come; cut off, nothing is there. Blocking; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "agent/host/launch_record.h"
#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

class FilesIn {
 public:
  // `path` is Bring.path; `mark` and the attempt name the place beside it: what earlier attempts
  // left of the same mark goes. What is made is `owner`'s (nullptr: the agent's own user), and made
  // with that user's rights; but for the directories above, which the agent makes for him.
  static Result<FilesIn> begin(const std::string& path, const std::string& mark,
                               std::uint32_t attempt, const UserEntry* owner);
  ~FilesIn();  // takes away what is not in place
  FilesIn(FilesIn&&) = default;
  FilesIn(const FilesIn&) = delete;
  FilesIn& operator=(const FilesIn&) = delete;
  FilesIn& operator=(FilesIn&&) = delete;

  // In order of arrival. InvalidArgument: not as FilePart says it must be; ResourceExhausted: no
  // room.
  Result<void> take(const v1::FilePart& part);
  [[nodiscard]] bool whole() const { return whole_; }
  // After FilesEnd: into place, over what is there.
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
