#include "tests/unit/log_shipping/shipping.h"

#include <algorithm>
#include <random>

namespace muster::test {
namespace {

// MUSTER_SEEDS=100 for a longer run, MUSTER_SEED=17 to repeat one.
unsigned from_environment(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text ? static_cast<unsigned>(std::stoul(text)) : otherwise;
}
unsigned first_seed() { return from_environment("MUSTER_SEED", 0); }
unsigned seeds() { return from_environment("MUSTER_SEEDS", std::getenv("MUSTER_SEED") ? 1 : 4); }

std::string lines(int& next, int count, std::mt19937& random) {
  std::string text;
  for (; count > 0; --count)
    text += "[" + std::to_string(next++) + "]" + std::string(random() % 80, '.') + "\n";
  return text;
}

TEST(LogShipping, bytes_arrive_and_the_end_after_them) {
  Shipping both(3);
  both.start_controller();
  both.start_agent();
  const Appender zero(both.log(0)), one(both.log(1));
  std::mt19937 random(1);
  int next = 0;
  const std::string long_text = lines(next, 30000, random);
  zero.write("hello\n");
  ASSERT_TRUE(both.eventually([&] { return both.kept(0) == "hello\n"; }));
  one.write(long_text);
  zero.write("bye\n");
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(
      both.eventually([&] { return both.complete(0) && both.complete(1) && both.complete(2); }));
  EXPECT_EQ(both.kept(0), "hello\nbye\n");
  EXPECT_EQ(both.kept(1), long_text);
  EXPECT_EQ(both.kept(2), "");
  ASSERT_TRUE(both.eventually([&] { return both.watch_->logs_complete(both.run()); }));
}

// The program renames its log and begins a new one. Only the agent's descriptors lead to the bytes
// of the old files, which the controller gets when it is back.
TEST(LogShipping, a_log_that_is_rotated_while_the_controller_is_away_arrives_whole) {
  Shipping both(1);
  both.start_controller();
  both.start_agent();
  std::string truth = "one\n";
  Appender(both.log(0)).write(truth);
  ASSERT_TRUE(both.eventually([&] { return both.kept(0) == truth; }));
  both.stop_controller();
  for (const char* text : {"two\n", "three\n"}) {
    Appender(both.log(0)).write(text);
    truth += text;
    ASSERT_TRUE(
        both.eventually([&] { return both.watch_->bytes_read(both.run()) == truth.size(); }));
    std::filesystem::rename(both.log(0), both.log(0).string() + "." + text[1]);
  }
  Appender(both.log(0)).write("four\n");
  truth += "four\n";
  both.start_controller();
  int gaps = 0;
  EXPECT_TRUE(both.eventually([&] { return both.kept(0, &gaps) == truth; })) << both.kept(0);
  EXPECT_EQ(gaps, 0);
  both.watch_->run_swept(both.run());
  EXPECT_TRUE(both.eventually([&] { return both.complete(0); }));
}

TEST(LogShipping, a_log_that_is_complete_is_not_sent_again_by_an_agent_that_was_restarted) {
  Shipping both(1);
  both.start_controller();
  both.start_agent();
  Appender(both.log(0)).write("all\n");
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(both.eventually([&] { return both.watch_->logs_complete(both.run()); }));
  both.stop_agent();
  both.start_agent();
  ASSERT_TRUE(both.eventually([&] { return both.watch_->logs_complete(both.run()); }));
  EXPECT_EQ(both.kept(0), "all\n");
}

// Regression: "complete" was sent when the bytes were in the page cache. The node deleted its own
// copy, and a power cut of the controller's host removed the last two seconds of a log for ever.
TEST(LogShipping, a_log_is_complete_when_the_disk_has_it) {
  Shipping both(1);
  both.start_controller();
  std::unique_lock slow(both.store_->disk_);
  both.start_agent();
  Appender(both.log(0)).write("all\n");
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(both.eventually([&] { return both.store_->state(both.key(0))->complete; }));
  // The sync begins when everything that needs no sync has been answered.
  ASSERT_TRUE(both.eventually([&] { return both.store_->syncs_ > 0; }));
  EXPECT_EQ(both.kept(0), "all\n") << "who follows it has it all the same";
  EXPECT_FALSE(both.complete(0));
  EXPECT_FALSE(both.watch_->logs_complete(both.run()));
  slow.unlock();
  ASSERT_TRUE(
      both.eventually([&] { return both.complete(0) && both.watch_->logs_complete(both.run()); }));
}

// Regression: a failed sync was retried with the next bytes; after an end there are none.
TEST(LogShipping, a_sync_that_fails_is_tried_again) {
  Shipping both(1);
  both.start_controller();
  both.store_->failures_ = 1;
  both.start_agent();
  Appender(both.log(0)).write("all\n");
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(
      both.eventually([&] { return both.complete(0) && both.watch_->logs_complete(both.run()); }));
  EXPECT_GE(both.store_->syncs_, 2);
  const auto times_logged = [&](const std::string& text) {
    const std::scoped_lock lock(both.mutex_);
    return std::ranges::count(both.troubles_, text);
  };
  ASSERT_TRUE(
      both.eventually([&] { return times_logged("making logs durable: works again") == 1; }));
  EXPECT_EQ(
      times_logged(
          "making logs durable: syncing: Input/output error; agents keep theirs, trying again"),
      1);
}

// Both sides are notified of a durable log at the same time; what the agent had sent by then is no
// violation of the order.
TEST(LogShipping, the_end_of_a_durable_log_may_be_reported_again) {
  Shipping both(1);
  both.start_controller();
  both.start_agent();
  Appender(both.log(0)).write("all\n");
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(both.eventually([&] { return both.complete(0); }));
  const auto stub = v1::AgentService::NewStub(grpc::CreateChannel(
      "unix:" + (both.dir_.path() / "s").string(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto stream = stub->PushLogs(&context);
  v1::PushLogsRequest hello, open, end;
  hello.mutable_hello();
  open.mutable_open()->set_job_id("job");
  open.mutable_open()->set_attempt(1);
  open.mutable_open()->set_rank(0);
  end.mutable_end()->set_job_id("job");
  end.mutable_end()->set_attempt(1);
  end.mutable_end()->set_rank(0);
  end.mutable_end()->set_size(4);
  for (const auto& request : {hello, open, end}) ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->WritesDone());
  v1::PushLogsResponse response;
  bool complete = true;
  int answers = 0;
  while (stream->Read(&response)) {
    for (const v1::LogHave& have : response.have())
      complete = complete && have.complete() && ++answers > 0;
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(complete);
  EXPECT_GE(answers, 1);
}

TEST(LogShipping, an_attempt_nobody_knows_is_left_alone_until_the_next_connection) {
  Shipping both(1);
  both.known_ = false;
  both.start_controller();
  both.start_agent();
  Appender(both.log(0)).write("hello\n");
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(both.eventually([&] { return both.watch_->logs().at(0).ended; }));
  EXPECT_EQ(both.kept(0), "");
  both.known_ = true;
  both.stop_controller();
  both.start_controller();
  ASSERT_TRUE(both.eventually([&] { return both.complete(0); }));
  EXPECT_EQ(both.kept(0), "hello\n");
}

TEST(LogShipping, a_disk_that_fails_is_waited_for) {
  Shipping both(1);
  both.start_controller();
  const std::filesystem::path in_the_way = both.dir_.path() / "store" / "job";
  std::ofstream(in_the_way) << "a file where the folder must be";
  both.start_agent();
  Appender(both.log(0)).write("hello\n");
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(both.eventually([&] { return both.watch_->logs().at(0).ended; }));
  EXPECT_FALSE(both.complete(0));
  std::filesystem::remove(in_the_way);
  ASSERT_TRUE(both.eventually([&] { return both.complete(0); }));
  EXPECT_EQ(both.kept(0), "hello\n");
}

TEST(LogShipping, a_stream_that_does_not_keep_the_order_is_refused) {
  Shipping both(1);
  both.start_controller();
  const auto channel = grpc::CreateChannel("unix:" + (both.dir_.path() / "s").string(),
                                           grpc::InsecureChannelCredentials());
  const auto stub = v1::AgentService::NewStub(channel);
  const auto refused = [&](const std::vector<v1::PushLogsRequest>& requests) {
    grpc::ClientContext context;
    const auto stream = stub->PushLogs(&context);
    for (const auto& request : requests) stream->Write(request);
    v1::PushLogsResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish().error_code();
  };
  v1::PushLogsRequest hello, open, climb, chunk;
  hello.mutable_hello();
  open.mutable_open()->set_job_id("job");
  open.mutable_open()->set_attempt(1);
  open.mutable_open()->set_rank(0);
  climb.mutable_open()->set_job_id("../up");
  climb.mutable_open()->set_rank(0);
  chunk.mutable_chunk()->set_job_id("job");
  chunk.mutable_chunk()->set_attempt(1);
  chunk.mutable_chunk()->set_rank(0);
  chunk.mutable_chunk()->set_offset(100);
  chunk.mutable_chunk()->set_data("x");
  EXPECT_EQ(refused({open}), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused({hello, climb}), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused({hello, chunk}), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused({hello, open, chunk}), grpc::StatusCode::ABORTED);
}

// Ranks write all the time. Agent and controller are cut off at any moment and made anew over what
// is on the disk. In the end, the controller's bytes equal the ranks'.
TEST(LogShipping, no_byte_is_lost_or_doubled_by_cuts) {
  for (unsigned seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    SCOPED_TRACE(seed);
    Shipping both(3);
    both.chunk_ = 3000;
    std::mt19937 random(seed);
    std::vector<std::unique_ptr<Appender>> ranks;
    std::vector<std::string> truth(3);
    std::vector<int> next(3);
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      ranks.push_back(std::make_unique<Appender>(both.log(rank)));
    both.start_controller();
    both.start_agent();
    for (int round = 0; round < 25; ++round) {
      for (std::size_t rank = 0; rank < 3; ++rank) {
        const std::string text = lines(next[rank], static_cast<int>(random() % 300), random);
        ranks[rank]->write(text);
        truth[rank] += text;
      }
      switch (random() % 4) {
        case 0:
          both.stop_agent();
          both.start_agent();
          break;
        case 1:
          both.stop_controller();
          both.start_controller();
          break;
        case 2: {
          // Waits until something has progressed, whatever it is.
          const std::size_t before = both.kept(0).size();
          (void)both.eventually([&] { return both.kept(0).size() > before; },
                                std::chrono::seconds(1));
          break;
        }
        default: break;
      }
    }
    both.watch_->run_swept(both.run());
    ASSERT_TRUE(
        both.eventually([&] { return both.complete(0) && both.complete(1) && both.complete(2); }));
    for (std::uint32_t rank = 0; rank < 3; ++rank) ASSERT_EQ(both.kept(rank), truth[rank]);
  }
}

// The program truncates its file in between. What arrives is in order and whole; what does not was
// removed by a truncation, and a gap records this.
TEST(LogShipping, truncations_and_cuts) {
  for (unsigned seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    SCOPED_TRACE(seed);
    Shipping both(1);
    both.chunk_ = 3000;
    std::mt19937 random(seed);
    const Appender rank(both.log(0));
    int next = 0;
    int truncations = 0;
    int kept_from = 0;  // first line of the current segment
    both.start_controller();
    both.start_agent();
    for (int round = 0; round < 20; ++round) {
      rank.write(lines(next, static_cast<int>(random() % 200), random));
      switch (random() % 6) {
        case 0:
          both.stop_agent();
          if (random() % 2 == 0) {
            rank.truncate();
            ++truncations;
            kept_from = next;
            rank.write(lines(next, static_cast<int>(random() % 200), random));
          }
          both.start_agent();
          break;
        case 1:
          both.stop_controller();
          both.start_controller();
          break;
        case 2:
          rank.truncate();
          ++truncations;
          kept_from = next;
          break;
        case 3: {
          const std::size_t before = both.kept(0).size();
          (void)both.eventually([&] { return both.kept(0).size() > before; },
                                std::chrono::seconds(1));
          break;
        }
        default: break;
      }
    }
    // So that a line that the last truncation cut is followed by another one.
    rank.write(lines(next, 5, random));
    both.watch_->run_swept(both.run());
    ASSERT_TRUE(both.eventually([&] { return both.complete(0); }));
    int gaps = 0;
    const std::string text = both.kept(0, &gaps);
    EXPECT_LE(gaps, truncations);
    int last = -1, missing = 0;
    std::set<int> seen;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t stop = text.find('\n', at);
      ASSERT_NE(stop, std::string::npos);
      // A truncation may have cut a line: its part is before the next line.
      const std::string line = text.substr(at, stop - at);
      ASSERT_NE(line.rfind('['), std::string::npos);
      const int number = std::stoi(line.substr(line.rfind('[') + 1));
      ASSERT_GT(number, last) << "doubled or out of order";
      // What was written and truncated before any agent read the file leaves no trace; what is
      // missing between lines that arrived does.
      if (last >= 0) missing += number - last - 1;
      last = number;
      seen.insert(number);
      at = stop + 1;
    }
    for (int line = kept_from; line < next; ++line) ASSERT_TRUE(seen.contains(line)) << line;
    if (missing > 0) {
      EXPECT_GE(gaps, 1);
    }
  }
}

}  // namespace
}  // namespace muster::test
