// Lines of `launches`, version 1, are read for ever: the launcher in shim/ is the worker's program
// as it is now, and the worker may be an older one (docs/compatibility.md). Folders of
// tests/dumps/rundir have such a file, and launches.txt: what the worker must read in it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <sstream>

#include "common/process/identity.h"
#include "tests/support/dumps.h"
#include "worker/launch_report.h"
#include "worker/shim/report.h"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// Every line that the launchers write. Pids and start times are replaced by fixed ones.
std::string every_line() {
  std::string pattern = (fs::temp_directory_path() / "muster-launches-XXXXXX").string();
  const fs::path dir = ::mkdtemp(pattern.data());
  const fs::path file = dir / "launches";
  std::ofstream(file) << "begin 4200 5\n";  // killed, and found gone by the next one
  shim::Report(file, {.first_rank = 8, .ranks = 2, .saves = "/data/a b", .logs = {{8, "/log/8"}}})
      .end({});
  shim::Report(file, {.first_rank = 8, .ranks = 2, .saves = "/data/c", .weights_alone = true})
      .end({.name = "rank 9", .code = -1, .signal = 9});
  const std::string text = test::read_dump(file);
  fs::remove_all(dir);
  const std::string pid = std::to_string(::getpid());
  const auto own = process::self();
  EXPECT_TRUE(own);
  return replaced(replaced(text, "begin " + pid + " " + std::to_string(own->start_time) + "\n",
                           "begin 4242 777\n"),
                  "\nend " + pid + " ", "\nend 4242 ");
}

std::string text_of(const fs::path& file) {
  const Launches launches = parse_launches(read_launches(file));
  std::ostringstream text;
  text << "launches " << launches.any << "\n";
  if (launches.saves)
    text << "saves " << launches.saves->first_rank << " " << launches.saves->ranks << " "
         << (launches.saves->weights_alone ? "alone " : "whole ") << launches.saves->dir << "\n";
  for (const LaunchLog& log : launches.logs) text << "log " << log.rank << " " << log.path << "\n";
  const LaunchEnd end = read_launch_report(file);
  text << "end " << end.launched << " " << end.code << " " << end.signal << " " << end.name << "\n";
  return text.str();
}

std::set<std::string> kinds_in(const std::string& text) {
  std::set<std::string> kinds;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) kinds.insert(line.substr(0, line.find(' ')));
  return kinds;
}

const test::DumpFiles kLaunches = {"launches.txt", "launches"};

TEST(FrozenLaunches, AreReadAndWrittenAsTheyWere) {
  const std::string today = every_line();
  std::set<std::string> missing = kinds_in(today);
  const auto reads = [&missing, &today](const fs::path& dump) {
    SCOPED_TRACE(dump.native());
    // An older worker reads what the launchers of today write.
    EXPECT_EQ(test::first_line_lost(test::read_dump(dump / "launches"), today), "");
    EXPECT_EQ(text_of(dump / "launches"), test::read_dump(dump / "launches.txt"));
    for (const std::string& kind : kinds_in(test::read_dump(dump / "launches")))
      missing.erase(kind);
  };
  for (const fs::path& dump : test::dumps_with("rundir", kLaunches)) reads(dump);
  if (missing.empty()) return;
  if (test::writes_dumps()) {
    const fs::path dump = test::next_dump("rundir", kLaunches);
    test::write_dump_file(dump / "launches", today);
    test::write_dump_file(dump / "launches.txt", text_of(dump / "launches"));
    reads(dump);
  }
  for (const std::string& kind : missing) {
    ADD_FAILURE() << "no `launches` in tests/dumps/rundir has this line: " << kind
                  << "; run: " << test::how_to_write("unit_worker");
  }
}

}  // namespace
}  // namespace muster::worker
