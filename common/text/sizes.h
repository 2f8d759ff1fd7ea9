// Numbers of bytes, for people. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

// "8.4 GiB", "0.5 KiB"
std::string size_text(std::uint64_t bytes);
// "2.1 of 8.4 GiB"
std::string part_text(std::uint64_t bytes, std::uint64_t size);

}  // namespace muster
