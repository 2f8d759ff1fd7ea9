// tests/fixtures/logs: lines of every release, and what the grammars find in them. MUSTER_REWRITE=1
// writes the golden files anew; read the difference before you keep it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "agent/logs/line_scanner.h"
#include "tests/support/checkout.h"
#include "tests/unit/engine/line_text.h"

namespace muster::engine {
namespace {

const std::filesystem::path kLogs = test::checkout("tests/fixtures/logs");

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::unique_ptr<Grammar> row(const std::string& name) {
  v1::Watching watching;
  watching.set_grammar(name);
  return std::move(make_grammar(watching).value());
}

std::vector<std::string> cut(std::string_view text) {
  std::vector<std::string> lines;
  agent::LineScanner scanner;
  const auto line = [&](std::string_view one) { lines.emplace_back(one); };
  scanner.feed(text, line);
  scanner.finish(line);
  return lines;
}

// Every log in the fixtures, and its grammar.
std::map<std::string, std::string> logs() {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(kLogs)) {
    if (entry.path().extension() != ".log") continue;
    const std::string name = entry.path().stem();
    found[name] = name.starts_with("mindformers")    ? "mindformers"
                  : name.starts_with("megatron")     ? "megatron"
                  : name.starts_with("mindspeed-mm") ? "mindspeed-mm"
                  : name.starts_with("deepspeed")    ? "deepspeed"
                                                     : "auto";
  }
  return found;
}

TEST(Fixtures, SayWhatTheirGoldenFilesSay) {
  const auto automatic = row("auto");
  const auto all = logs();
  ASSERT_GE(all.size(), 13u);
  for (const auto& [name, grammar_name] : all) {
    const auto grammar = row(grammar_name);
    std::string text_read;
    for (const std::string& line : cut(read_text(kLogs / (name + ".log")))) {
      const Evidence evidence = evidence_in(line);
      const std::string text = line_text(grammar->read(line));
      text_read += name.starts_with("failures")
                       ? fmt::format("{}\n    {}\n", line, evidence_text(evidence))
                       : fmt::format("{}\n    {}\n", line, text);
      // `auto` knows every engine's lines; a line of no engine is no evidence of a death either.
      EXPECT_EQ(line_text(automatic->read(line)), text) << name << ": " << line;
      if (!name.starts_with("failures") && !line.starts_with("ValueError")) {
        EXPECT_EQ(evidence.rank, 0) << name << ": " << line;
      }
    }
    const auto golden = kLogs / (name + ".golden");
    if (std::getenv("MUSTER_REWRITE") != nullptr)
      std::ofstream(golden, std::ios::binary) << text_read;
    EXPECT_EQ(text_read, read_text(golden)) << golden;
  }
}

// Another engine's grammar finds no step lines in them.
TEST(Fixtures, OtherGrammarsReadNothingOfThem) {
  for (const auto& [name, own] : logs()) {
    for (const std::string other : {"mindformers", "megatron", "deepspeed"}) {
      if (other == own || own == "mindspeed-mm" || own == "auto") continue;
      const auto grammar = row(other);
      for (const std::string& line : cut(read_text(kLogs / (name + ".log"))))
        EXPECT_FALSE(grammar->step(line)) << other << " on " << name << ": " << line;
    }
  }
}

std::string everything() {
  std::string corpus;
  for (const auto& [name, grammar] : logs()) corpus += read_text(kLogs / (name + ".log"));
  return corpus;
}

// Everything that is found in a stream, cut into pieces of these sizes (again and again).
std::string read_in_pieces(std::string_view text, const Grammar& grammar,
                           const std::vector<std::size_t>& pieces) {
  std::string text_read;
  agent::LineScanner scanner;
  const auto line = [&](std::string_view one) {
    const LogLine found = grammar.read(one);
    const Evidence evidence = evidence_in(one);
    if (found.kind != LineKind::Nothing || evidence.rank > 0)
      text_read += line_text(found) + " " + evidence_text(evidence) + "\n";
  };
  for (std::size_t i = 0; !text.empty(); ++i) {
    const std::string_view piece = text.substr(0, pieces[i % pieces.size()]);
    scanner.feed(piece, line);
    text.remove_prefix(piece.size());
  }
  scanner.finish(line);
  return text_read;
}

TEST(Fixtures, CutAtAnyByteTheySayTheSame) {
  const auto grammar = row("auto");
  const std::string corpus =
      read_text(kLogs / "mindformers-r0.8.log") + read_text(kLogs / "noise.log");
  const std::string whole = read_in_pieces(corpus, *grammar, {corpus.size()});
  EXPECT_NE(whole.find("step step=6400"), std::string::npos) << whole;
  for (std::size_t at = 1; at < corpus.size(); ++at)
    ASSERT_EQ(read_in_pieces(corpus, *grammar, {at, corpus.size()}), whole) << "cut at " << at;
}

TEST(Fixtures, CutIntoAnyPiecesTheySayTheSame) {
  const auto grammar = row("auto");
  const std::string corpus = everything();
  const std::string whole = read_in_pieces(corpus, *grammar, {corpus.size()});
  EXPECT_GT(std::ranges::count(whole, '\n'), 80);
  for (const std::size_t size : {1, 2, 3, 7, 64, 1000, 4096})
    EXPECT_EQ(read_in_pieces(corpus, *grammar, {size}), whole) << size;
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::size_t> pieces;
    for (int i = 0; i < 50; ++i) pieces.push_back(1 + random() % 300);
    EXPECT_EQ(read_in_pieces(corpus, *grammar, pieces), whole) << round;
  }
}

// \r, \n and \r\n end a line; the result of a line does not depend on which.
TEST(Fixtures, AnyEndOfLineSaysTheSame) {
  const auto grammar = row("auto");
  const std::string corpus = everything();
  const std::string whole = read_in_pieces(corpus, *grammar, {corpus.size()});
  for (const std::string_view end : {"\r", "\r\n"}) {
    std::string other;
    for (const char c : corpus) {
      if (c == '\n')
        other += end;
      else
        other += c;
    }
    EXPECT_EQ(read_in_pieces(other, *grammar, {other.size()}), whole);
  }
}

}  // namespace
}  // namespace muster::engine
