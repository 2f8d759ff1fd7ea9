// NAME=value assignments of a shell script, replaced in its text. Looked for where a shell takes
// them for assignments: at the beginning of a command (also before one: `A=1 B=2 program`) and
// behind export, readonly, declare, local and typeset; over quotes, continued lines, here-documents
// and comments. Nothing inside of $(...), `...` and strings is touched. Pure; linear.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::patch {

using Variables = std::map<std::string, std::string>;

inline constexpr std::size_t kVariableBytesMax = 64 << 10;

// Every assignment of each name gets the value, quoted for the shell. `name` is the script's, for
// messages. Errors (InvalidArgument): a name that nothing assigns, with the nearest; an array; a
// quote, bracket or here-document that is never closed, behind which nothing can be told.
Result<std::string> replaced_assignments(std::string_view name, std::string_view script,
                                         const Variables& values);

// As a word of a shell.
std::string shell_word(std::string_view text);

}  // namespace muster::patch
