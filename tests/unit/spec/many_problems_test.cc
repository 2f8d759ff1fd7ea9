// Regression: a spec from the API (no YAML reader has bounded it) had a byte 0 in each of its
// 300,000 arguments. Every problem was compared with all before it, and the controller's answer
// took minutes. Now the reported problems are bounded, and so is the time.
#include <gtest/gtest.h>

#include "common/spec/parse.h"
#include "common/spec/yaml_tree.h"

namespace muster::spec {
namespace {

TEST(ManyProblems, AreBoundedInASpecOfTheApi) {
  v1::JobSpec spec;
  spec.set_name("many");
  spec.set_engine("torch");
  spec.mutable_launch()->set_script("train.py");
  for (int i = 0; i < 300'000; ++i) spec.mutable_launch()->add_args(std::string(1, '\0'));
  ASSERT_LT(spec.ByteSizeLong(), kSpecBytesMax);
  EXPECT_EQ(complete(spec).size(), kProblemsMax);
}

}  // namespace
}  // namespace muster::spec
