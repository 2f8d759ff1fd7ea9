#include "agent/watch/evidence.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(Evidence, the_last_line_of_a_traceback_whatever_its_exception_is_called) {
  EXPECT_EQ(best_evidence("step 1\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    raise Oops('no')\nmy.Oops: no\nbye\n"),
            "my.Oops: no");
  EXPECT_EQ(best_evidence("[rank3]: Traceback (most recent call last):\n[rank3]:   File \"x.py\", line 1\n[rank3]: my.Oops: no\n"), "[rank3]: my.Oops: no");
}

TEST(Evidence, the_last_of_a_chain) {
  EXPECT_EQ(best_evidence("Traceback (most recent call last):\n  a\nKeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n"
                          "Traceback (most recent call last):\n  b\nValueError: bad config\n"),
            "ValueError: bad config");
}

TEST(Evidence, memory_is_a_better_cause_than_what_followed) {
  EXPECT_EQ(best_evidence("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\nConnection reset by peer\n"),
            "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB");
}

TEST(Evidence, a_quiet_log_tells_nothing) { EXPECT_EQ(best_evidence("step 1\nstep 2\n"), ""); }

TEST(Evidence, any_bytes_become_text_of_at_most_a_kibibyte) {
  const std::string line = "ValueError: \xff\xc3\x28 \xe4\xbd\xa0\x1b[0m" + std::string(4000, 'x');
  const std::string text = best_evidence(line);
  EXPECT_LE(text.size(), kEvidenceMost);
  EXPECT_TRUE(
      text.starts_with("ValueError: ?"
                       "?( \xe4\xbd\xa0[0mxxx"))
      << text.substr(0, 40);
}

}  // namespace
}  // namespace muster::agent
