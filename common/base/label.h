// Labels of nodes, as people write them: "rack=r12". Pure; it does not depend on the locale.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/base/error.h"

namespace muster {

// "k=v", as in the agent's --label. Keys: [a-zA-Z0-9]([a-zA-Z0-9._/-]{0,62}); values: up to 255
// printable bytes. InvalidArgument, with a whole sentence.
Result<std::pair<std::string, std::string>> parse_label(const std::string& text);
Result<void> check_label_key(std::string_view key);

}  // namespace muster
