// Computes SHA-256 (FIPS 180-4) with libcrypto, in the one text form that files, tables, code and
// specs use. Pure; any thread.
//
// It is a library of its own, so that programs that hash nothing do not link libcrypto.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// Returns 64 lower-case hexadecimal digits, or an empty text where libcrypto has no SHA-256.
std::string sha256_hex(std::string_view bytes);

}  // namespace muster
