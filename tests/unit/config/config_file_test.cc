#include "common/config/config_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/config/checks.h"
#include "common/io/file.h"

namespace muster::config {
namespace {

// A program with some options, and a file for them.
class Options : public testing::Test {
 protected:
  Options() {
    std::string pattern = (std::filesystem::temp_directory_path() / "config-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    path_ = (dir_ / "d.yaml").string();
    app_.add_option("--level", level_, "how much")->envname("MUSTER_TEST_LEVEL");
    app_.add_option("--count", count_, "how many")->capture_default_str();
    app_.add_option("--address", addresses_, "where; may be repeated")->type_name("ADDRESS");
    app_.add_option("--port", port_, "where")->type_name("HOST:PORT");
    app_.add_option("--slots", slots_, "how many")->check(CLI::Range(0, 9));
    app_.add_flag("--once", once_, "for one start")->configurable(false);
  }
  ~Options() override {
    ::unsetenv("MUSTER_TEST_LEVEL");
    std::filesystem::remove_all(dir_);
  }

  void write(const std::string& text) const { std::ofstream(path_) << text; }
  // Returns the sentence about what is wrong; an empty text if nothing is.
  std::string parse(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"--config", path_};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<const char*> argv{"d"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    try {
      app_.parse(static_cast<int>(argv.size()), argv.data());
    } catch (const CLI::ParseError& error) {
      std::string text = file_.explain(error);
      return text.empty() ? std::string("no place: ") + error.what() : text;
    }
    return {};
  }
  std::string at(const std::string& place) const { return path_ + ":" + place + ": "; }

  std::filesystem::path dir_;
  std::string path_;
  std::string level_ = "info";
  int count_ = 1;
  int slots_ = 0;
  bool once_ = false;
  std::string port_;
  std::vector<std::string> addresses_;
  CLI::App app_{"a daemon", "d"};
  ConfigFile file_{app_};
};

TEST_F(Options, AreReadFromTheFile) {
  write("# comment\nlevel: 'debug'\ncount: 7\naddress: [a:1, 'unix:/s']\n");
  EXPECT_EQ(parse(), "");
  EXPECT_EQ(level_, "debug");
  EXPECT_EQ(count_, 7);
  EXPECT_EQ(addresses_, (std::vector<std::string>{"a:1", "unix:/s"}));
  EXPECT_EQ(file_.place_of("--count"), at("3:8"));
  EXPECT_EQ(file_.nothing_wrong(), path_ + ": nothing wrong\n");
  write("address: a:1\n");
  EXPECT_EQ(parse(), "");
  EXPECT_EQ(addresses_, std::vector<std::string>{"a:1"});
}

TEST_F(Options, OfTheCommandLineAndOfVariablesWin) {
  write("level: debug\ncount: 7\naddress: [a:1, a:2]\n");
  ::setenv("MUSTER_TEST_LEVEL", "warn", 1);
  EXPECT_EQ(parse({"--count", "8", "--address", "b:1"}), "");
  EXPECT_EQ(level_, "warn");
  EXPECT_EQ(count_, 8);
  EXPECT_EQ(addresses_, std::vector<std::string>{"b:1"});
  EXPECT_EQ(file_.place_of("--count"), "");
  EXPECT_EQ(parse({"--level", "off"}), "");
  EXPECT_EQ(level_, "off");
}

TEST_F(Options, AnEmptyFileHasNone) {
  for (const char* text : {"", "# only a comment\n", "---\n"}) {
    write(text);
    EXPECT_EQ(parse(), "") << text;
  }
}

TEST_F(Options, EveryProblemOfAFileHasItsPlace) {
  write("levle: debug\ncount: [1]\nonce: true\nconfig: x\naddress: {a: 1}\nlevel:\nzzz: 1\n");
  EXPECT_EQ(parse(), at("1:1") + "levle: unknown key; did you mean 'level'?\n" + at("2:8") +
                         "count: expected one value\n" + at("3:1") +
                         "once: this is for the command line alone\n" + at("4:1") +
                         "config: this is for the command line alone\n" + at("5:10") +
                         "address: expected a value, or a list of values\n" + at("6:1") +
                         "level: no value; comment the line out to leave the default\n" +
                         at("7:1") + "zzz: unknown key; --print-config shows what there is");
  write("count: 1\ncount: 2\n");
  EXPECT_EQ(parse(), at("2:1") + "key 'count' is there twice, first in line 1");
  write("- level\n");
  EXPECT_EQ(parse(), at("1:1") + "expected options, one a line: 'log-level: debug'");
}

// The parser of the command line reports these.
TEST_F(Options, AValueOfTheWrongTypeHasItsPlace) {
  write("level: debug\ncount: many\n");
  EXPECT_EQ(parse(), at("2:8") + "Could not convert: --count = many");
  EXPECT_EQ(parse({"--count", "few"}), "no place: Could not convert: --count = few");
}

TEST_F(Options, AValueThatIsNoneOfTheWordsHasItsPlace) {
  app_.get_option("--level")->check(one_of({"debug", "info"}));
  write("level: loud\n");
  EXPECT_EQ(parse(), at("1:8") + "--level: 'loud' is none of debug, info");
  write("level: debug\n");
  EXPECT_EQ(parse(), "");
}

TEST_F(Options, APathIsWritten) {
  app_.get_option("--level")->check(path());
  write("level: ~/x\n");
  EXPECT_EQ(parse(), at("1:8") + "--level: '~/x': '~' is not expanded here; write the whole path");
  EXPECT_NE(parse({"--level=~ann/x"}).find("write the whole path"), std::string::npos);
  EXPECT_EQ(parse({"--level", "x~"}), "");
}

// -1 was 2^64 - 1 bytes.
TEST_F(Options, ASizeIsNotNegative) {
  std::uint64_t plain = 0, unit = 0;
  app_.add_option("--plain", plain, "")->check(size());
  app_.add_option("--unit", unit, "")->transform(CLI::AsSizeValue(false))->transform(size());
  write("plain: 5\nunit: 1kb\n");
  EXPECT_EQ(parse(), "");
  EXPECT_EQ(plain + unit, 5 + 1024U);
  for (const char* bad : {"-1", " -1", "-1kb"}) {
    write(std::string("plain: '") + bad + "'\n");
    EXPECT_EQ(parse(),
              at("1:8") + "--plain: '" + bad + "' is no size; give a number of bytes, 0 or more");
    write(std::string("unit: '") + bad + "'\n");
    EXPECT_EQ(parse(),
              at("1:7") + "--unit: '" + bad + "' is no size; give a number of bytes, 0 or more");
  }
}

// A pipe was opened, and waited for.
TEST_F(Options, AFileIsARegularOne) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(parse(), "no place: --config: '" + path_ + "' is not a regular file");
  EXPECT_NE(parse({"--level", "x"}), "");
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  path_ = "~/d.yaml";
  EXPECT_NE(parse().find("write the whole path"), std::string::npos);
}

// It ended the program by an exception within the sentence.
TEST_F(Options, AFileIsNamedOnce) {
  write("level: debug\n");
  EXPECT_NE(parse({"--config", path_}).find("--config"), std::string::npos);
}

TEST_F(Options, AFileThatCannotBeReadIsNamed) {
  EXPECT_EQ(parse(), "--config: opening '" + path_ + "': No such file or directory");
  write(std::string(kFileBytesMax + 1, '#'));
  EXPECT_EQ(parse(), path_ + ": more than 65536 bytes; is this the right file?");
  write(std::string("level: \0", 8));
  EXPECT_NE(parse().find(at("1:8")), std::string::npos);
}

TEST_F(Options, TheSampleHasEveryKeyAndIsAnEmptyFile) {
  const std::string sample = file_.sample();
  EXPECT_NE(sample.find("\n# how much\n#level: TEXT\n"), std::string::npos) << sample;
  EXPECT_NE(sample.find("\n#count: 1\n"), std::string::npos) << sample;
  EXPECT_NE(sample.find("\n#address: [ADDRESS]\n"), std::string::npos) << sample;
  EXPECT_NE(sample.find("\n#port: HOST:PORT\n"), std::string::npos) << sample;
  EXPECT_NE(sample.find("\n#slots: INT\n"), std::string::npos) << sample;
  EXPECT_EQ(sample.find("#once"), std::string::npos) << sample;
  EXPECT_EQ(sample.find("#config"), std::string::npos) << sample;
  write(sample);
  EXPECT_EQ(parse(), "");
  EXPECT_EQ(level_, "info");
}

}  // namespace
}  // namespace muster::config
