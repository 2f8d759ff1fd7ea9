// Asks the person at the terminal for one line without showing it: a password, a secret.
//
// It reads /dev/tty, so standard input may be a pipe. Blocks. Thread-safe, but the terminal is one:
// one question at a time.
#pragma once

#include <optional>
#include <string>

namespace muster::client {

// `text` without control characters, as in "password of ann@host"; at most 4095 bytes are taken.
// Nothing: no terminal, or no answer. The string is never copied, so that its owner can wipe it.
std::optional<std::string> ask_hidden(const std::string& text);

}  // namespace muster::client
