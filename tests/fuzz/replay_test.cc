// Runs every kept input of every target (corpus/TARGET/*) in the ordinary suite, with the ordinary
// compiler. Each file is one test: if one crashes, the last line of gtest names it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <vector>

#include "tests/fuzz/target.h"
#include "tests/support/checkout.h"

namespace muster::fuzz {
namespace {

struct Broken : std::runtime_error {
  using runtime_error::runtime_error;
};

}  // namespace

void broken(const std::string& what) { throw Broken(what); }

namespace {

const std::filesystem::path kCorpus = test::checkout("tests/fuzz/corpus");
const std::map<std::string, void (*)(std::string_view)> kTargets = {{"access", access},
                                                                    {"agents", agents},
                                                                    {"checkpoint", checkpoint},
                                                                    {"config", config},
                                                                    {"diff", diff},
                                                                    {"enrol", enrol},
                                                                    {"frames", frames},
                                                                    {"hosts", hosts},
                                                                    {"known_hosts", known_hosts},
                                                                    {"listing", listing},
                                                                    {"log", log},
                                                                    {"patch", patch},
                                                                    {"probe", probe},
                                                                    {"ranktable", ranktable},
                                                                    {"spec", spec}};

std::vector<std::filesystem::path> kept() {
  std::vector<std::filesystem::path> files;
  for (const auto& [name, target] : kTargets) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(kCorpus / name, none))
      files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Kept : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Kept, HoldsWhatIsPromised) {
  const std::string bytes = bytes_of(GetParam());
  ASSERT_FALSE(bytes.empty()) << GetParam();
  try {
    kTargets.at(GetParam().parent_path().filename())(bytes);
  } catch (const std::exception& error) {
    FAIL() << GetParam() << ": " << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Kept, testing::ValuesIn(kept()), [](const auto& test) {
  std::string name =
      test.param.parent_path().filename().string() + "_" + test.param.filename().string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

TEST(Corpus, HasInputsOfEveryTargetAndOfNothingElse) {
  for (const auto& [name, target] : kTargets) {
    EXPECT_TRUE(std::filesystem::is_directory(kCorpus / name) &&
                !std::filesystem::is_empty(kCorpus / name))
        << name;
  }
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus))
    EXPECT_TRUE(kTargets.contains(entry.path().filename())) << entry.path();
}

TEST(Corpus, NoBytesAtAllAreAnswered) {
  for (const auto& [name, target] : kTargets) EXPECT_NO_THROW(target("")) << name;
}

// The targets' own helper functions.
TEST(Properties, Texts) {
  EXPECT_TRUE(is_message("a\nb"));
  for (const char* bad : {"", "a\tb", "\x1b[31m", "a\x7f", "\xff"})
    EXPECT_FALSE(is_message(bad)) << bad;
  EXPECT_TRUE(is_plain("NVIDIA H200"));
  EXPECT_FALSE(is_plain("\xc3\xa9"));
}

TEST(Properties, OneThatDoesNotHoldFailsTheInput) {
  EXPECT_THROW(require(false, "two is one"), Broken);
}

}  // namespace
}  // namespace muster::fuzz
