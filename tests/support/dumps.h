// Finds the dumps of frozen formats, and places for new ones (docs/compatibility.md). Stateless
// functions for the test's thread.
//
// The dumps of a format are in tests/dumps/FORMAT: v1 is version 1 as it was frozen. v1.1, v1.2 and
// so on have what was added to it later. A dump is never written again.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/checkout.h"

namespace muster::test {

// MUSTER_WRITE_DUMP=DIR: a test adds to the dumps in DIR what they lack, and then reads those of
// DIR. DIR is tests/dumps of the checkout, or another folder.
inline bool writes_dumps() { return std::getenv("MUSTER_WRITE_DUMP") != nullptr; }
inline std::filesystem::path dumps() {
  const char* dir = std::getenv("MUSTER_WRITE_DUMP");
  return dir != nullptr ? std::string(dir) : checkout("tests/dumps");
}

// Returns the folders of FORMAT that have this file, sorted.
inline std::vector<std::filesystem::path> dumps_with(std::string_view format,
                                                     const std::string& file) {
  std::vector<std::filesystem::path> found;
  std::error_code none;
  for (const auto& folder : std::filesystem::directory_iterator(dumps() / format, none))
    if (std::filesystem::exists(folder.path() / file)) found.push_back(folder.path());
  std::ranges::sort(found);
  return found;
}
// Returns the first of v1, v1.1, v1.2 ... that does not have this file. Creates it.
inline std::filesystem::path next_dump(std::string_view format, const std::string& file) {
  std::filesystem::path folder = dumps() / format / "v1";
  for (int number = 1; std::filesystem::exists(folder / file); ++number)
    folder = dumps() / format / ("v1." + std::to_string(number));
  std::filesystem::create_directories(folder);
  return folder;
}

// The command that writes what `binary` found missing, for messages.
inline std::string how_to_write(std::string_view binary) {
  return "MUSTER_WRITE_DUMP=tests/dumps build/release/bin/" + std::string(binary) +
         " --gtest_filter='Frozen*'";
}

inline std::string read_dump(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_dump_file(const std::filesystem::path& file, const std::string& content) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << content;
  if (!out.flush()) throw std::runtime_error("writing " + file.native());
}

}  // namespace muster::test
