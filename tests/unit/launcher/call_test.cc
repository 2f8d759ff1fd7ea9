// Launchers' command lines as scripts contain them. calls.txt has one call in each paragraph, and
// what is read from it.
#include "common/compat/launcher/call.h"
#include "tests/support/checkout.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace muster::launcher {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string call_text(const std::string& line) {
  std::vector<std::string> words = words_of(line);
  const std::string name = words.front();
  words.erase(words.begin());
  Launcher launcher = name == "msrun" ? Launcher::Msrun : Launcher::Torchrun;
  if (name.starts_with("python")) {
    const PythonCall python = parse_python(words);
    if (!python.launches) return "  not a launcher\n";
    launcher = python.launcher;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(python.rest));
  }
  const auto call = parse_call(launcher, words, "; launch.intercept: off calls the real one");
  if (!call) return "  refused: " + call.error().message + "\n";
  std::string text = "  " + std::string(name_of(launcher)) + "\n";
  for (const auto& [option, value] : call->options)
    text += "  " + option + (value.empty() ? "" : " = " + value) + "\n";
  text += "  runs";
  for (const std::string& word : call->program) text += " " + word;
  return text + "\n";
}

TEST(Calls, AreReadAsTheLaunchersReadThem) {
  const std::string path = test::checkout("tests/unit/launcher/calls.txt");
  std::ifstream file(path);
  std::string whole, again;
  int calls = 0;
  for (std::string line; std::getline(file, line); whole += line + "\n") {
    if (line.starts_with("  ")) continue;
    again += line + "\n";
    if (line.empty() || line.starts_with('#')) continue;
    again += call_text(line);
    ++calls;
  }
  EXPECT_GE(calls, 20);
  if (std::getenv("MUSTER_REWRITE") != nullptr) std::ofstream(path) << again;
  EXPECT_EQ(whole, again);
}

TEST(Calls, AnEmptyOptionNameIsNone) {
  EXPECT_FALSE(parse_call(Launcher::Torchrun, std::vector<std::string>{"--=3", "train.py"}));
  EXPECT_FALSE(parse_call(Launcher::Torchrun, std::vector<std::string>{""}));
  EXPECT_FALSE(parse_call(Launcher::Msrun, std::vector<std::string>{}));
}

}  // namespace
}  // namespace muster::launcher
