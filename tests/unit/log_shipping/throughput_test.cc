// Not a test: it measures, on request (--gtest_also_run_disabled_tests
// --gtest_filter=*Throughput*). MUSTER_MIB sets the amount.
#include <sys/resource.h>

#include <cstdio>

#include "agent/logs/rank_reader.h"
#include "tests/unit/log_shipping/shipping.h"

namespace muster::test {
namespace {

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// Ten lines without progress for each line with progress.
std::string sample(std::size_t bytes) {
  std::string text;
  for (int step = 1; text.size() < bytes; ++step) {
    for (int line = 0; line < 10; ++line)
      text += "2025-06-18 14:02:11,123 - trainer - INFO - batch " +
              std::to_string(step * 10 + line) + " loaded in 12.5 ms, queue depth 4\n";
    text += " [2025-06-18 14:02:11] iteration " + std::to_string(step) +
            "/ 100000 | consumed samples: 25600 | elapsed time per iteration (ms): 8123.4 | lm "
            "loss: 8.134521E+00 | loss scale: 1.0 |\n";
  }
  return text;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(DISABLED_Throughput, reading_and_shipping) {
  const char* wanted = std::getenv("MUSTER_MIB");
  const std::size_t mib = wanted ? std::stoul(wanted) : 512;
  const std::string part = sample(8 << 20);
  Shipping both(1);
  const Appender rank(both.log(0));
  std::size_t bytes = 0;
  for (; bytes < mib << 20; bytes += part.size()) rank.write(part);
  const double gb = static_cast<double>(bytes) / 1e9;
  {
    auto file = agent::LogFile::open(both.log(0), both.dir_.path() / "cursor");
    v1::Watching watching;
    watching.set_grammar("megatron");
    auto patterns = agent::Patterns::make(watching);
    agent::RankReader reader(std::shared_ptr<agent::LogFile>(std::move(*file)), *patterns);
    std::vector<char> buffer(256 << 10);
    const double cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    std::size_t steps = 0;
    for (bool end = false; !end;) {
      auto round = reader.read(buffer, [] {});
      ASSERT_FALSE(round.trouble.has_value());
      steps += round.steps.size();
      end = round.at_end;
    }
    std::printf("parse alone: %.0f MB/s of wall, %.2f CPU-s a GB, %zu steps\n",
                gb * 1000 / seconds_since(start), (cpu_seconds() - cpu) / gb, steps);
  }
  both.start_controller();
  const double cpu = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  both.start_agent();
  both.watch_->run_swept(both.run());
  ASSERT_TRUE(both.eventually([&] { return both.complete(0); }, std::chrono::seconds(300)));
  std::printf("parse, ship, store: %.0f MB/s, %.2f CPU-s a GB, both ends together\n",
              gb * 1000 / seconds_since(start), (cpu_seconds() - cpu) / gb);
}

TEST(DISABLED_Throughput, latency_of_a_line) {
  Shipping both(1);
  both.start_controller();
  both.start_agent();
  const Appender rank(both.log(0));
  std::vector<double> took;
  for (int line = 0; line < 200; ++line) {
    const std::size_t before = both.store_->state(both.key(0))->end;
    const auto start = std::chrono::steady_clock::now();
    rank.write("a line of a log\n");
    ASSERT_TRUE(both.eventually([&] { return both.store_->state(both.key(0))->end > before; }));
    took.push_back(seconds_since(start) * 1000);
  }
  std::ranges::sort(took);
  std::printf("a line, written to stored: p50 %.1f ms, p99 %.1f ms\n", took[took.size() / 2],
              took[took.size() * 99 / 100]);
}

}  // namespace
}  // namespace muster::test
