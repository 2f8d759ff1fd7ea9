// The shell code before the first command of runtime.setup, on the same line of the script. Plain
// values.
//
// If bash exits with a status of its own, this code writes to the environment file, in place of the
// environment. It writes the number of the script's line, or the command "exit 3" or "source
// nowhere". A failure inside a function has no number, and a failure in another shell has none
// either.
#pragma once

#include <string_view>

namespace muster::rundir {

inline constexpr std::string_view kSetupPrefix =
    R"sh([ -z "${BASH_VERSION-}" ] || { trap 'printf %s "$((${#BASH_LINENO[@]} > 1 ? BASH_LINENO[-2] : LINENO))" >| "${MUSTER_SETUP_ENV:-/dev/null}"' ERR; )sh"
    R"sh(trap '[ $? = 0 ] || case $BASH_COMMAND in exit|"exit "*) printf %s "$BASH_COMMAND" >| "${MUSTER_SETUP_ENV:-/dev/null}" ;; )sh"
    R"sh(". "*|"source "*) [ -s "${MUSTER_SETUP_ENV:-/}" ] || printf %s "$BASH_COMMAND" >| "${MUSTER_SETUP_ENV:-/dev/null}" ;; esac' EXIT; }; )sh";

}  // namespace muster::rundir
