#include "agent/logs/scans.h"

#include <memory>
#include <semaphore>
#include <vector>

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
  Scan one(tools().scans, "/dead"), other(tools().scans, "/dead");
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
  Scan hung(tools().scans, "/dead"), waits(tools().scans, "/dead"),
      waits_too(tools().scans, "/dead");
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

// Regression: after a restart of the agent, many runs on one dead file system had every thread.
TEST_F(ScansTest, ScansOfUnknownFileSystemsWaitOnlyForThoseThatAreMountedAtTheSamePlace) {
  std::vector<std::unique_ptr<Scan>> hung;
  for (std::size_t i = 0; i < ScanThreads::kUnknownOfMount; ++i) {
    hung.push_back(std::make_unique<Scan>(tools().scans, "/dead"));
    ASSERT_TRUE(hung.back()->want());
    hung.back()->send(hanging());
    begun_->acquire();
  }
  Scan waits(tools().scans, "/dead"), mounted_elsewhere(tools().scans, "/proc/x");
  ASSERT_TRUE(waits.want());
  waits.send([] {});
  check(waits, waits.next_check());
  EXPECT_EQ(troubles_,
            std::vector<std::string>{"looking for x in '/dead' for job 'job' attempt 1: not begun "
                                     "for 2000 ms: 16 first scans of what is mounted there have no "
                                     "answer yet; it and others wait their turn, logs and progress "
                                     "go on"});
  ASSERT_TRUE(mounted_elsewhere.want());
  mounted_elsewhere.send([begun = begun_] { begun->release(); });
  begun_->acquire();  // it has begun
  server_->release(static_cast<std::ptrdiff_t>(hung.size()));
}

}  // namespace
}  // namespace muster::agent
