// How fast one core reads logs: cutting lines, the grammar, the evidence. The corpus is mixed from
// tests/fixtures/logs: every line of every file over and over, with lines of a megabyte, progress
// bars that redraw themselves by carriage returns, lines without any step, and pieces that end in
// the middle of lines.
//   grammar_bench [MIB]                 default 64
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "agent/logs/line_scanner.h"
#include "common/engine/evidence.h"
#include "common/engine/model/grammar.h"
#include "tests/support/checkout.h"

namespace {

using muster::engine::Grammar;

std::vector<std::string> fixture_lines() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(muster::test::checkout("tests/fixtures/logs")))
    if (entry.path().extension() == ".log") paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> lines;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
  }
  return lines;
}

// A log of this many bytes. Failures are as rare as they are: one line in a thousand.
std::string corpus(std::size_t bytes, std::mt19937& random) {
  const std::vector<std::string> lines = fixture_lines();
  std::vector<std::string> usual, failures;
  for (const std::string& line : lines)
    (muster::engine::evidence_rank(line) > 0 ? failures : usual).push_back(line);
  std::string text;
  text.reserve(bytes + (2 << 20));
  while (text.size() < bytes) {
    const auto chance = random() % 10'000;
    if (chance < 2) {
      for (std::size_t i = 0; i < (1 << 20); ++i) text += static_cast<char>(' ' + random() % 95);
    } else if (chance < 40) {
      for (int percent = 0; percent <= 100; percent += 2) {
        text += "\rEvaluating: " + std::to_string(percent) + "%|";
        for (int cell = 0; cell < percent / 10; ++cell) text += "█";
        text += "| " + std::to_string(percent * 12) + "/1200 [00:01<00:09, 120.10it/s]";
      }
    } else if (chance < 50) {
      text += failures[random() % failures.size()];
    } else if (chance < 4000) {
      text += "2026-01-01 00:00:00,123 INFO [dataset.py:118] worker " +
              std::to_string(random() % 64) + " read shard /data/pile/" + std::to_string(random()) +
              ".bin in 0.123 s, 4096 samples, queue 17";
    } else {
      text += usual[random() % usual.size()];
    }
    text += '\n';
  }
  return text;
}

struct Count {
  std::size_t lines = 0, bytes = 0, steps = 0, evidence = 0;
};

template <class Visit>
void measure(const char* what, std::string_view text, std::size_t piece, Visit&& visit) {
  double best = 1e9;
  Count count;
  for (int round = 0; round < 7; ++round) {
    count = {};
    muster::agent::LineScanner scanner;
    const auto line = [&](std::string_view one) {
      ++count.lines;
      count.bytes += one.size();
      visit(one, count);
    };
    // this process's own time: other work on the machine counts for less
    const std::clock_t start = std::clock();
    for (std::size_t at = 0; at < text.size(); at += piece)
      scanner.feed(text.substr(at, piece), line);
    scanner.finish(line);
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  // Of a line of a megabyte only the first 64 KiB are handed on: the second figure counts what was.
  std::printf(
      "%-24s pieces of %7zu  %6.0f MB/s read, %6.0f MB/s looked at; %zu lines, %zu steps, %zu "
      "evidence\n",
      what, piece, static_cast<double>(text.size()) / best / 1e6,
      static_cast<double>(count.bytes) / best / 1e6, count.lines, count.steps, count.evidence);
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937 random(17);
  const std::string text =
      corpus((argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64) << 20, random);
  std::printf("%.1f MiB, one core, the best of seven, processor time\n",
              static_cast<double>(text.size()) / (1 << 20));
  const auto row = [](const char* name) {
    muster::v1::Watching watching;
    watching.set_grammar(name);
    return std::move(muster::engine::make_grammar(watching).value());
  };
  measure("lines", text, 1 << 20, [](std::string_view, Count&) {});
  for (const char* name : {"megatron", "mindformers", "auto"}) {
    const auto grammar = row(name);
    measure((std::string("lines, ") + name).c_str(), text, 1 << 20,
            [&](std::string_view line, Count& count) {
              count.steps += grammar->step(line).has_value() ? 1 : 0;
            });
  }
  measure("lines, evidence", text, 1 << 20, [](std::string_view line, Count& count) {
    count.evidence += muster::engine::evidence_rank(line) > 0 ? 1 : 0;
  });
  const auto automatic = row("auto");
  for (const std::size_t piece : {std::size_t{1} << 20, std::size_t{4099}, std::size_t{61}}) {
    measure("lines, auto, evidence", text, piece, [&](std::string_view line, Count& count) {
      count.steps += automatic->step(line).has_value() ? 1 : 0;
      count.evidence += muster::engine::evidence_rank(line) > 0 ? 1 : 0;
    });
  }
  return 0;
}
