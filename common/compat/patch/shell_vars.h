// Replaces NAME=value assignments in the text of a shell script. Pure; linear time.
//
// An assignment is replaced only where a shell would see one: at the beginning of a command (also
// before a program: `A=1 B=2 program`), and after export, readonly, declare, local and typeset
// (ShellLexer). Text inside $(...), `...` and strings is not changed.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::patch {

using Variables = std::map<std::string, std::string>;

inline constexpr std::size_t kVariableBytesMax = 64 << 10;

// Gives every assignment of each name the value, quoted for the shell. `name` is the script's, for
// messages.
//
// Errors (InvalidArgument): a name that no assignment has (the message has the nearest name); an
// array; a quote, bracket or here-document that is never closed, because nothing after it can be
// understood.
Result<std::string> replaced_assignments(std::string_view name, std::string_view script,
                                         const Variables& values);

}  // namespace muster::patch
