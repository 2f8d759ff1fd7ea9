// tests/unit/patch/cases.txt: files, changes, and the results.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "common/compat/patch/patch.h"
#include "tests/support/checkout.h"

namespace muster::patch {
namespace {

struct Case {
  std::string title, file, name, result;
  std::vector<std::string> changes;  // as written
};
struct Cases {
  std::string head;
  std::vector<Case> cases;
};

const std::string kPath = test::checkout("tests/unit/patch/cases.txt");

Cases read_cases() {
  std::ifstream file(kPath);
  Cases all;
  std::string* to = &all.head;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("== ")) {
      all.cases.push_back({.title = line.substr(3)});
      to = &all.cases.back().file;
    } else if (line.starts_with("-- file ")) {
      all.cases.back().name = line.substr(8);
    } else if (line.starts_with("-- change ")) {
      all.cases.back().changes.push_back(line.substr(10));
    } else if (line == "-- becomes") {
      to = &all.cases.back().result;
    } else {
      *to += line + "\n";
    }
  }
  return all;
}

// "PLACE: value"; a place with blanks is in quotes.
Change change_of(const std::string& text) {
  const std::size_t cut = text.find(": ");
  std::string at = text.substr(0, cut);
  if (at.starts_with('\'')) at = at.substr(1, at.size() - 2);
  return {.at = at, .value = text.substr(cut + 2)};
}

std::string become(const Case& one) {
  std::vector<Change> changes;
  for (const std::string& text : one.changes) changes.push_back(change_of(text));
  const auto changed = changed_file(one.name, one.file, changes);
  return changed ? *changed : "refused: " + changed.error().message + "\n";
}

TEST(PatchCases, BecomeWhatIsWritten) {
  const Cases all = read_cases();
  ASSERT_GT(all.cases.size(), 30u);
  std::string rewritten = all.head;
  for (const Case& one : all.cases) {
    const std::string result = become(one);
    const std::string want = one.result.substr(0, one.result.find_last_not_of('\n') + 1) + "\n";
    if (std::getenv("MUSTER_REWRITE") == nullptr) {
      EXPECT_EQ(result, want) << "case: " << one.title;
    }
    rewritten += fmt::format("== {}\n{}-- file {}\n", one.title, one.file, one.name);
    for (const std::string& change : one.changes)
      rewritten += fmt::format("-- change {}\n", change);
    rewritten += fmt::format("-- becomes\n{}\n", result);
  }
  if (std::getenv("MUSTER_REWRITE") != nullptr) std::ofstream(kPath) << rewritten;
}

// A copy of a copy is the copy: writing adds nothing.
TEST(PatchCases, ACopyIsWrittenAsItWasRead) {
  for (const Case& one : read_cases().cases) {
    const auto changed = changed_file(one.name, one.file, {});
    if (!changed) continue;
    const auto again = changed_file(one.name, *changed, {});
    ASSERT_TRUE(again) << one.title << ": " << again.error().message;
    EXPECT_EQ(*again, *changed) << one.title;
  }
}

}  // namespace
}  // namespace muster::patch
