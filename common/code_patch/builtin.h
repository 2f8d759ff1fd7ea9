// Patches that muster brings along, for code whose releases differ too much for one diff: each
// looks for lines that it knows. A name is a row of the table in builtin.cc; what it does is a file
// of its own. Pure: files come and go as values.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::code_patch {

inline constexpr std::string_view kBuiltinScheme = "builtin:";
inline constexpr std::size_t kSourceBytesMax = 4U << 20U;  // of a file that one reads

// The file of the copy with this name below it; nothing: it is not there. Errors are of reading it.
using ReadSource = std::function<Result<std::optional<std::string>>(const std::string& name)>;

struct ChangedSource {
  std::string name;  // below the code; one that is not there is made
  std::string text;
};

struct Builtin {
  std::string_view name;     // behind "builtin:"
  std::string_view engine;   // that it is for
  std::string_view summary;  // one line
  std::string_view files;    // what it changes, for people
  // Errors (InvalidArgument) name the file and what in it is not as it is known.
  Result<std::vector<ChangedSource>> (*make)(const ReadSource& read);
};
std::span<const Builtin> builtins();
const Builtin* find_builtin(std::string_view name);  // without the scheme

// node_local_index.cc
Result<std::vector<ChangedSource>> node_local_index(const ReadSource& read);

}  // namespace muster::code_patch
