// JobPage is a page of a list of jobs, newest first. ListJobs creates one for each request. It is
// filled on the shell's strand, and merged with a page of the archive on the archive's thread.
//
// A page is limited by its number of jobs and by its bytes. So an answer fits into a message,
// whatever the jobs are.
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
  // The job that reaches this limit is the last one. It has at most a megabyte, so a page stays
  // below 4 MiB. gRPC's clients take that much unless they are configured otherwise.
  static constexpr std::size_t kBytes = 3 << 20;

  explicit JobPage(std::size_t size) : size_(size) {}
  // Call it with the newest job first, and not on a full page.
  void add(v1::Job job);
  // Adds why some of the jobs wait: a sentence each, short compared with the job.
  void explain(const std::map<JobId, std::string>& why);
  [[nodiscard]] bool full() const { return jobs_.size() >= size_ || bytes_ >= kBytes; }
  bool more = false;  // there are jobs behind the last one

  // Merges two pages that began at the same job. A job that is in both is taken from `live`. A job
  // can be in both between its event and the move of its rows.
  static JobPage merged(JobPage live, JobPage archived);
  void fill(v1::ListJobsResponse& response);

 private:
  std::size_t size_;
  std::size_t bytes_ = 0;
  std::vector<v1::Job> jobs_;
};

// Runs on the archive's thread.
Result<JobPage> archived_page(journal::Journal& journal, const std::string& page_token,
                              std::size_t size, const std::string& cluster_out);

}  // namespace muster::controller
