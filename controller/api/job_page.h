// A page of a list of jobs: newest first, ended by their number and by their bytes, so that
// whatever the jobs are, an answer fits into a message.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "controller/journal/journal.h"
#include "muster/v1/job_service.pb.h"

namespace muster::controller {

class JobPage {
 public:
  // The job that reaches it is the last, and has at most a megabyte: with it a page stays below 4
  // MiB, which is what gRPC's clients take unless told otherwise.
  static constexpr std::size_t kBytes = 3 << 20;

  explicit JobPage(std::size_t size) : size_(size) {}
  // Newest first; not to a full one.
  void add(v1::Job job);
  // Why some of them wait: a sentence each, short beside the job.
  void explain(const std::map<JobId, std::string>& why);
  [[nodiscard]] bool full() const { return jobs_.size() >= size_ || bytes_ >= kBytes; }
  bool more = false;  // there are jobs behind the last one

  // Of two pages that began at the same place. A job that is in both is taken from `live`: between
  // its event and the move of its rows it may be.
  static JobPage merged(JobPage live, JobPage archived);
  void fill(v1::ListJobsResponse& response);

 private:
  std::size_t size_;
  std::size_t bytes_ = 0;
  std::vector<v1::Job> jobs_;
};

// On the archive's thread.
Result<JobPage> archived_page(journal::Journal& journal, const std::string& page_token,
                              std::size_t size, const std::string& cluster_out);

}  // namespace muster::controller
