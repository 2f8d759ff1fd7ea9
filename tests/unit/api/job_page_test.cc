#include "controller/api/job_page.h"

#include <gtest/gtest.h>

namespace muster::controller {
namespace {

v1::Job job(const std::string& id, std::size_t bytes = 0) {
  v1::Job made;
  made.set_id(id);
  made.mutable_spec()->set_name(std::string(bytes, 'n'));
  return made;
}
JobPage page(std::size_t size, const std::vector<v1::Job>& jobs, bool more) {
  JobPage made(size);
  for (const v1::Job& one : jobs) made.add(one);
  made.more = more;
  return made;
}
// "9 8 7 +": ids, and "+" if there is a token.
std::string shown(JobPage page) {
  v1::ListJobsResponse response;
  page.fill(response);
  std::string text;
  for (const v1::Job& one : response.jobs()) text += one.id() + " ";
  if (response.next_page_token().empty()) return text + ".";
  EXPECT_EQ(response.next_page_token(), response.jobs(response.jobs_size() - 1).id());
  return text + "+";
}

// Regression: only the number of jobs ended a page, and a hundred large jobs did not fit a message
// any more.
TEST(JobPage, EndsByBytesAsWell) {
  JobPage large(100);
  int added = 0;
  for (; !large.full(); ++added) large.add(job("1", 1 << 20));
  EXPECT_EQ(added, 3);
  JobPage small(3);
  for (added = 0; !small.full(); ++added) small.add(job("1"));
  EXPECT_EQ(added, 3);
}

TEST(JobPage, MergesByIdAndShowsAJobOnce) {
  EXPECT_EQ(shown(JobPage::merged(page(9, {job("9"), job("6")}, false),
                                  page(9, {job("8"), job("6"), job("3")}, false))),
            "9 8 6 3 .");
  EXPECT_EQ(shown(JobPage::merged(page(2, {job("9"), job("6")}, false),
                                  page(2, {job("8"), job("5")}, true))),
            "9 8 +");
  EXPECT_EQ(shown(JobPage::merged(page(9, {}, false), page(9, {}, false))), ".");
}

TEST(JobPage, EndsWhereOneOfTheTwoWasCut) {
  const std::size_t most = JobPage::kBytes;
  EXPECT_EQ(
      shown(JobPage::merged(page(9, {job("9", most)}, true), page(9, {job("8"), job("7")}, false))),
      "9 +");
  EXPECT_EQ(shown(JobPage::merged(page(3, {job("9"), job("4")}, false),
                                  page(3, {job("9"), job("8"), job("7")}, true))),
            "9 8 7 +");
  EXPECT_EQ(shown(JobPage::merged(page(4, {job("9"), job("4")}, false),
                                  page(4, {job("9"), job("8"), job("7")}, true))),
            "9 8 7 +")
      << "6 may be archived";
}

}  // namespace
}  // namespace muster::controller
