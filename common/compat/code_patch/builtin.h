// Patches that are built into muster, for code whose releases differ too much for one diff. Pure:
// files are passed as values.
//
// Each patch searches for lines that it knows. A name is a row of the table in builtin.cc; each
// patch has its own file.
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
inline constexpr std::size_t kSourceBytesMax = 4U << 20U;  // of a file that a patch reads

// Reads the file with this name below the copy. Nothing: the file does not exist. Errors: those of
// reading.
using ReadSource = std::function<Result<std::optional<std::string>>(const std::string& name)>;

struct ChangedSource {
  std::string name;  // below the code; a file that does not exist is created
  std::string text;
};

struct Builtin {
  std::string_view name;     // the part after "builtin:"
  std::string_view summary;  // one line
  std::string_view files;    // the files that it changes, for people
  // Errors (InvalidArgument) name the file and the part of it that has no known form.
  Result<std::vector<ChangedSource>> (*make)(const ReadSource& read);
};
std::span<const Builtin> builtins();
const Builtin* find_builtin(std::string_view name);  // without "builtin:"

// node_local_index.cc
Result<std::vector<ChangedSource>> node_local_index(const ReadSource& read);

}  // namespace muster::code_patch
