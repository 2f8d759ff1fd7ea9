// What a node has uploaded of a job's outputs, so that a later upload does not send it again. It
// is in a file of the agent, STATE_DIR/uploaded/JOB. A file that is damaged or about another URL
// counts for nothing. Plain functions and values; those with paths block.
//
// The first line is the URL. Then a line for each file: BYTES MODIFIED CHANGED INODE LINKS SHA256
// NAME. The times are in ns since 1970. A SHA-256 that is not known is "-". In a name, a line end
// is written \n, and \ is written \\.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::agent {

struct FileState {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  std::uint64_t inode = 0;
  std::uint64_t links = 0;
  std::string sha256 = {};  // of the bytes, as hexadecimal digits; empty: not known
};
FileState state_of(const struct stat& status);
std::int64_t now_ns();
// Both have the same bytes. A write changes `modified_ns`; a program may set that back, and then
// `changed_ns` shows it, which a new or removed link changes too.
bool are_same(const FileState& one, const FileState& other);

// By the name below the directory.
using SentFiles = std::map<std::string, FileState>;

// Empty: nothing is known to be sent to this URL.
SentFiles read_sent(const std::filesystem::path& file, std::string_view url);
Result<void> write_sent(const std::filesystem::path& file, std::string_view url,
                        const SentFiles& sent);

}  // namespace muster::agent
