#include "agent/logs/scans.h"

#include <semaphore>

#include "tests/unit/agent_logs/subject_ground.h"

namespace muster::agent {
namespace {

using namespace std::chrono_literals;

class ScansTest : public SubjectTest {
 protected:
  // A piece of work that begins, and hangs until `server_` releases it.
  ScanThreads::Work hanging() {
    return [begun = begun_, server = server_] {
      begun->release();
      server->acquire();
    };
  }
  void check(Scan& scan, BootTime at) {
    scan.check(at, "looking for x in", "/dead", {JobId("job"), AttemptNo(1)});
  }

  // Shared with threads that may outlive the test.
  using Signal = std::counting_semaphore<>;
  const std::shared_ptr<Signal> begun_ = std::make_shared<Signal>(0);
  const std::shared_ptr<Signal> server_ = std::make_shared<Signal>(0);
};

TEST_F(ScansTest, AHangIsReportedOnceForItsFileSystemAndAgainAfterAnAnswer) {
  Scan one(tools().scans), other(tools().scans);
  for (Scan* scan : {&one, &other}) {
    ASSERT_TRUE(scan->want());
    scan->send([] {});
    scan->returned(42);  // both are on one file system
  }
  EXPECT_EQ(one.next_check(), BootTime::max());
  ASSERT_TRUE(one.want());
  one.send(hanging());
  begun_->acquire();
  const BootTime due = one.next_check();
  check(one, due - 1ms);
  EXPECT_TRUE(troubles_.empty());
  check(one, due);
  EXPECT_TRUE(one.hangs());
  EXPECT_EQ(troubles_,
            std::vector<std::string>{"looking for x in '/dead' for job 'job' attempt 1: no answer "
                                     "for 2000 ms; runs of that file system wait for it, all else "
                                     "goes on; is its server there?"});
  ASSERT_TRUE(other.want());
  other.send([] {});
  check(other, other.next_check());
  EXPECT_TRUE(other.hangs());
  EXPECT_EQ(troubles_.size(), 1U);

  server_->release();
  one.returned(42);
  EXPECT_FALSE(one.under_way());
  ASSERT_TRUE(one.want());
  one.send(hanging());
  begun_->acquire();
  EXPECT_FALSE(one.hangs());
  check(one, one.next_check());
  EXPECT_EQ(troubles_.size(), 2U);
  server_->release();
}

TEST_F(ScansTest, AScanWithoutAThreadSaysWhy) {
  options_.scan_threads = 1;
  Scan hung(tools().scans), waits(tools().scans), waits_too(tools().scans);
  ASSERT_TRUE(hung.want());
  hung.send(hanging());
  begun_->acquire();
  for (Scan* scan : {&waits, &waits_too}) {
    ASSERT_TRUE(scan->want());
    EXPECT_FALSE(scan->want()) << "one is under way";
    EXPECT_TRUE(scan->due());
    scan->send([] {});
    check(*scan, scan->next_check());
  }
  EXPECT_EQ(troubles_,
            std::vector<std::string>{"looking for x in '/dead' for job 'job' attempt 1: not begun "
                                     "for 2000 ms: all 1 threads for such scans wait for file "
                                     "systems that do not answer; it and others wait their turn, "
                                     "logs and progress go on"});
  server_->release();
}

}  // namespace
}  // namespace muster::agent
