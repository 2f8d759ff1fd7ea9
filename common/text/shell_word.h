// Quotes a text as one word of a POSIX shell. Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// A text that needs no quotes stays as it is. The shell reads the same bytes back, but no NUL.
std::string shell_word(std::string_view text);

}  // namespace muster
