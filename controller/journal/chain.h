// The chain over the journal's rows: each row's checksum covers the checksum of the row before it.
// Pure.
//
// A changed, missing, added or swapped row is noticed at the first row after it. The checksum is
// SHA-256, cut to 16 bytes. A plain CRC would detect a flipped bit, but after two lost rows a CRC
// may still fit, by chance or because of a clever disk.
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
  static bool parse(std::string_view raw, Digest& to);  // exactly 16 bytes
  static bool parse_hex(std::string_view text, Digest& to);
};

// SHA-256 of the parts, each with its length in front, so that ("ab", "c") differs from ("a",
// "bc").
Digest digest_of(std::initializer_list<std::string_view> parts);

// The chain value before the first row. It depends on the journal's id, so that rows of another
// journal never fit.
Digest chain_start(std::string_view journal_id);
Digest chain_next(const Digest& previous, JournalIndex index, const Record& record);

}  // namespace muster::journal
