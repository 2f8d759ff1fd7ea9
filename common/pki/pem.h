// Splits a text into its PEM blocks (RFC 7468). Pure; linear time; decodes nothing. For
// common/pki and common/enrol.
//
// It counts the blocks before libcrypto sees one: libcrypto reads the first that fits, and passes
// over the others.
#pragma once

#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::pki {

struct PemBlock {
  std::string_view label;  // "CERTIFICATE"
  std::string_view text;   // from the BEGIN line to the END line
};

// The blocks are views into `text`. Lines outside of blocks are explanations, and are passed over.
// The error (InvalidArgument) has no bytes of a block's inside.
Result<std::vector<PemBlock>> pem_blocks(std::string_view text);

// A block with a private key in any of its forms, also in those that muster does not read.
[[nodiscard]] bool is_private_key(const PemBlock& block);

}  // namespace muster::pki
