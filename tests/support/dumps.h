// Finds the dumps of frozen formats, and places for new ones (docs/compatibility.md). Stateless
// functions for the test's thread.
//
// The dumps of a format are in tests/dumps/FORMAT: v1 is version 1 as it was frozen. v1.1, v1.2 and
// so on have what was added to it later. A file of a dump is written once and never again;
// tests/dumps/MANIFEST has its SHA-256 (tests/tidy/manifest.py).
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
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
  return std::filesystem::absolute(dir != nullptr ? std::string(dir) : checkout("tests/dumps"));
}

inline std::string read_dump(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The files of one dump in a folder of its format. The first is the one that no other dump has.
using DumpFiles = std::vector<std::string>;

// Copies a directory of a dump for readers that believe only files which nobody else may write. The
// checkout's umask decides about those in the dump.
inline void copy_dump(const std::filesystem::path& from, const std::filesystem::path& to) {
  namespace fs = std::filesystem;
  fs::copy(from, to, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(to))
    fs::permissions(entry.path(), fs::perms::group_write | fs::perms::others_write,
                    fs::perm_options::remove);
}

// Returns the folders of FORMAT that have such a dump, sorted. Throws if one has only a part of it.
inline std::vector<std::filesystem::path> dumps_with(std::string_view format,
                                                     const DumpFiles& files) {
  std::vector<std::filesystem::path> found;
  std::error_code none;
  for (const auto& folder : std::filesystem::directory_iterator(dumps() / format, none)) {
    const auto there = [&](const std::string& file) {
      return std::filesystem::exists(folder.path() / file);
    };
    if (std::ranges::none_of(files, there)) continue;
    const auto lost = std::ranges::find_if_not(files, there);
    if (lost != files.end())
      throw std::runtime_error("a part of the dump is lost; restore it with git: " +
                               (folder.path() / *lost).native());
    found.push_back(folder.path());
  }
  std::ranges::sort(found);
  return found;
}
// Returns the first of v1, v1.1, v1.2 ... that has no such dump. Creates it.
inline std::filesystem::path next_dump(std::string_view format, const DumpFiles& files) {
  std::filesystem::path folder = dumps() / format / "v1";
  const auto there = [&](const std::string& file) {
    return std::filesystem::exists(folder / file);
  };
  for (int number = 1; std::ranges::any_of(files, there); ++number)
    folder = dumps() / format / ("v1." + std::to_string(number));
  std::filesystem::create_directories(folder);
  return folder;
}

// The command that writes what `binary` found missing, for messages.
inline std::string how_to_write(std::string_view binary) {
  return "MUSTER_WRITE_DUMP=tests/dumps build/release/bin/" + std::string(binary) +
         " --gtest_filter='Frozen*'";
}

// Throws if the file exists, and if it existed: then the manifest has it.
inline void check_new(const std::filesystem::path& file) {
  const std::string name =
      std::filesystem::relative(std::filesystem::absolute(file), dumps()).generic_string();
  std::istringstream manifest(read_dump(dumps() / "MANIFEST"));
  bool listed = false;
  for (std::string line; std::getline(manifest, line);) listed |= line.ends_with("  " + name);
  if (listed || std::filesystem::exists(file))
    throw std::runtime_error("a file of a dump is never written again: " + file.native() +
                             (listed ? "; the manifest has it: restore it with git" : ""));
}
// Everybody may read the files of a checkout.
inline void make_readable(const std::filesystem::path& file) {
  using std::filesystem::perms;
  perms wanted = perms::owner_read | perms::owner_write | perms::group_read | perms::others_read;
  if (std::filesystem::is_directory(file))
    wanted |= perms::owner_exec | perms::group_exec | perms::others_exec;
  std::filesystem::permissions(file, wanted);
}
inline void write_dump_file(const std::filesystem::path& file, const std::string& content) {
  check_new(file);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << content;
  if (!out.flush()) throw std::runtime_error("writing " + file.native());
  make_readable(file);
}
// Copies a folder with all files in it.
inline void write_dump_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  namespace fs = std::filesystem;
  if (fs::exists(to)) throw std::runtime_error("it exists: " + to.native());
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    const fs::path target = to / fs::relative(entry.path(), from);
    if (entry.is_directory())
      fs::create_directories(target);
    else
      write_dump_file(target, read_dump(entry.path()));
  }
  make_readable(to);
  for (const auto& entry : fs::recursive_directory_iterator(to)) make_readable(entry.path());
}

// Returns the first line of a frozen text that `today` does not have, and empty: it has all of
// them, in this order. A line of today may have more words, and there may be more lines: then what
// is printed has grown, and what was frozen still holds.
inline std::string first_line_lost(const std::string& frozen, const std::string& today) {
  const auto words = [](const std::string& line) {
    std::istringstream in(line);
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  std::istringstream lines(frozen), now(today);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> wanted = words(line);
    bool found = false;
    for (std::string other; !found && std::getline(now, other);) {
      auto next = wanted.begin();
      for (const std::string& word : words(other))
        if (next != wanted.end() && *next == word) ++next;
      found = next == wanted.end();
    }
    if (!found) return line.empty() ? "(an empty line)" : line;
  }
  return {};
}

}  // namespace muster::test
