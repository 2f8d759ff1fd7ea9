// One machine's tools as recorded in tests/fixtures/probe/NAME.txt. A test owns it. It runs on the
// test's thread.
//
// The file has these sections:
// - "# ..." lines name the source of the recording.
// - "== TOOL ARGUMENTS" begins what that call prints. Its last line may be "=> status N".
// - "== /etc/hccn.conf" and "== numa" are files.
// - "== expected" is what muster makes of the recording. MUSTER_REWRITE=1 writes it anew; read the
//   difference before you keep it.
//
// The same files feed the stand-in tools of tests/support/probe.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "agent/probe/ask.h"
#include "tests/support/checkout.h"

namespace muster::agent::probe {

inline std::filesystem::path fixtures() { return test::checkout("tests/fixtures/probe"); }
inline std::filesystem::path stand_ins() { return test::checkout("tests/support/probe"); }

inline std::vector<std::string> machines() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures()))
    names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

class Recorded {
 public:
  explicit Recorded(const std::string& name) : path_(fixtures() / (name + ".txt")) {
    std::ifstream file(path_);
    std::string line, title;
    bool in_head = true;
    while (std::getline(file, line)) {
      if (line.starts_with("== ")) {
        in_head = false;
        title = line.substr(3);
        sections_[title];
      } else if (in_head) {
        head_ += line + "\n";
      } else if (line.starts_with("=> status ")) {
        status_[title] = std::stoi(line.substr(10));
      } else {
        sections_[title] += line + "\n";
      }
    }
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const std::string& head() const { return head_; }
  [[nodiscard]] const std::map<std::string, std::string>& sections() const { return sections_; }
  [[nodiscard]] std::string section(const std::string& title) const {
    const auto at = sections_.find(title);
    return at == sections_.end() ? "" : at->second;
  }
  void set(const std::string& title, std::string text) { sections_[title] = std::move(text); }
  // Makes the call end with this reason instead.
  void set_why(const std::string& title, std::string why) { why_[title] = std::move(why); }

  [[nodiscard]] Ask ask() const {
    return [this](const std::vector<process::ToolRequest>& requests) {
      std::vector<process::ToolAnswer> answers;
      for (const auto& request : requests) answers.push_back(answer(request));
      return answers;
    };
  }

  void rewrite_expected(const std::string& text) const {
    std::ifstream file(path_);
    std::stringstream all;
    all << file.rdbuf();
    const std::string old = all.str();
    std::ofstream(path_) << old.substr(0, old.find("== expected\n")) << "== expected\n" << text;
  }

 private:
  [[nodiscard]] process::ToolAnswer answer(const process::ToolRequest& request) const {
    process::ToolAnswer answer;
    const std::string title = command(request);
    const auto section = sections_.find(title);
    if (section == sections_.end()) {
      answer.absent = std::ranges::none_of(
          sections_, [&](const auto& one) { return one.first.starts_with(request.program + " "); });
      answer.why =
          answer.absent ? "there is no " + request.program + " on PATH" : "it ended with status 64";
      if (!answer.absent) answer.status = 64;
      return answer;
    }
    answer.output = section->second;
    const auto status = status_.find(title);
    answer.status = status == status_.end() ? 0 : status->second;
    if (*answer.status != 0) answer.why = "it ended with status " + std::to_string(*answer.status);
    if (const auto why = why_.find(title); why != why_.end()) {
      answer.status.reset();
      answer.why = why->second;
    }
    return answer;
  }
  static std::string command(const process::ToolRequest& request) {
    std::string text = request.program;
    for (const auto& argument : request.args) text += " " + argument;
    return text;
  }

  std::filesystem::path path_;
  std::string head_;
  std::map<std::string, std::string> sections_, why_;
  std::map<std::string, int> status_;
};

inline std::string lines_of(const Found& found) {
  std::string text;
  for (const Device& device : found.devices) text += to_text(device) + "\n";
  for (const std::string& finding : found.findings) text += "finding: " + finding + "\n";
  return text;
}

}  // namespace muster::agent::probe
