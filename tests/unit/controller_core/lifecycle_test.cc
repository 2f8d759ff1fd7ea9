#include "controller/core/lifecycle.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "controller/core/model/job_phase.h"
#include "tests/support/checkout.h"

namespace muster::core {
namespace {

TEST(Lifecycle, PageIsMadeFromTheTable) {
  const std::string path = test::checkout("docs/lifecycle.md");
  if (std::getenv("MUSTER_REWRITE") != nullptr) std::ofstream(path) << lifecycle_page();
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(written, lifecycle_page())
      << "docs/lifecycle.md is not what the table says; MUSTER_REWRITE=1 writes it anew";
}

TEST(Lifecycle, MovesThatAreNotInTheTableAreNone) {
  EXPECT_EQ(next_phase(JobPhase::Queued, JobStep::Placed), JobPhase::Launching);
  EXPECT_EQ(next_phase(JobPhase::Queued, JobStep::Broke), std::nullopt);
  for (const JobPhase phase : kJobPhases) {
    if (is_final(phase)) {
      EXPECT_EQ(next_phase(phase, JobStep::Placed), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace muster::core
