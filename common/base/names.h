// Checks a name that is the same everywhere: in a command line, a spec, a Hello, a certificate.
// Pure; it does not depend on the locale.
#pragma once

#include <string_view>

namespace muster {

// 1 to 63 letters, digits, '.', '_', '-', the first a letter or digit. Letters are those of ASCII.
[[nodiscard]] bool is_node_name(std::string_view text);

}  // namespace muster
