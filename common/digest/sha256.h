// SHA-256 (FIPS 180-4) by libcrypto, in the form in which files, tables, code and specs carry it
// everywhere. A library of its own: who hashes nothing links no libcrypto. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// 64 lower-case hexadecimal digits; empty where libcrypto has none.
std::string sha256_hex(std::string_view bytes);

}  // namespace muster
