// The chain over the journal's rows: each row's checksum covers the checksum before it, so that a
// changed, missing, added or swapped row is seen at the first row after it. SHA-256, cut to 16
// bytes: a plain CRC would tell a flipped bit, but two lost rows may leave one that fits by chance
// or by a clever disk. Pure values.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "controller/journal/codec.h"

namespace muster::journal {

struct Digest {
  std::array<unsigned char, 16> bytes{};
  friend bool operator==(const Digest&, const Digest&) = default;

  [[nodiscard]] std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  [[nodiscard]] std::string hex() const;
  static bool parse(std::string_view raw, Digest& to);  // 16 bytes
  static bool parse_hex(std::string_view text, Digest& to);
};

// SHA-256 of the parts, each with its length in front: ("ab", "c") is not ("a", "bc").
Digest digest_of(std::initializer_list<std::string_view> parts);

// Before the first row: bound to this one journal, so that rows of another never fit.
Digest chain_start(std::string_view journal_id);
Digest chain_next(const Digest& previous, JournalIndex index, const Record& record);

}  // namespace muster::journal
