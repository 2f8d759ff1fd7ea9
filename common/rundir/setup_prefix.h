// What stands in the script of runtime.setup before its first command, on the same line: where bash
// leaves with a status of its own, it writes the number of the script's line that it was at, or its
// "exit 3" or "source nowhere", in place of the environment. A failure inside a function has no
// number, nor has any in another shell.
#pragma once

#include <string_view>

namespace muster::rundir {

inline constexpr std::string_view kSetupPrefix =
    R"sh([ -z "${BASH_VERSION-}" ] || { trap 'printf %s "$((${#BASH_LINENO[@]} > 1 ? BASH_LINENO[-2] : LINENO))" >| "${MUSTER_SETUP_ENV:-/dev/null}"' ERR; )sh"
    R"sh(trap '[ $? = 0 ] || case $BASH_COMMAND in exit|"exit "*) printf %s "$BASH_COMMAND" >| "${MUSTER_SETUP_ENV:-/dev/null}" ;; )sh"
    R"sh(". "*|"source "*) [ -s "${MUSTER_SETUP_ENV:-/}" ] || printf %s "$BASH_COMMAND" >| "${MUSTER_SETUP_ENV:-/dev/null}" ;; esac' EXIT; }; )sh";

}  // namespace muster::rundir
