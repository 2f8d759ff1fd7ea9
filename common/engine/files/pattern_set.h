// Searches many fixed strings in one pass over the bytes. Its owner is the grammar, or the static
// set in evidence.cc. Pure: scan() allocates nothing, and its time is linear in the text for a
// given set of patterns, for any bytes.
//
// The fingerprint of a pattern is its four consecutive bytes that are rarest in logs. In every
// occurrence of a fingerprint, three of its bytes begin at an even position. So scan() checks every
// second position with one look-up in a table of bits. It compares patterns only where the table
// says "perhaps".
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::engine {

class PatternSet {
 public:
  static constexpr std::size_t kFingerprint = 4;  // bytes: the least length of a pattern

  explicit PatternSet(std::span<const std::string_view> patterns);

  // Calls bool found(std::size_t pattern, std::size_t at) for every occurrence of a pattern, in the
  // order of the fingerprints' positions. False ends the scan.
  template <class Found>
  void scan(std::string_view text, Found&& found) const {
    if (text.size() < kFingerprint) return;
    const char* const data = text.data();
    const std::size_t last = text.size() - kFingerprint;  // last position of a fingerprint
    for (std::size_t i = 0; i <= last; i += 2) {
      if (!perhaps(four(data + i) & kThree)) [[likely]]
        continue;
      if (i > 0 && !at_fingerprint(text, i - 1, found)) return;
      if (!at_fingerprint(text, i, found)) return;
    }
    if (last % 2 == 1) at_fingerprint(text, last, found);
  }

 private:
  struct Entry {
    std::size_t pattern = 0;
    std::size_t fingerprint_at = 0;
    std::uint32_t fingerprint = 0;
    std::string text;
  };
  static_assert(std::endian::native == std::endian::little,
                "three bytes of a word are its first three");
  static constexpr std::uint32_t kThree = 0xffffff;
  static constexpr int kTableBits = 15;

  static std::uint32_t four(const char* at) {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  static std::uint32_t mixed(std::uint32_t word) { return word * 0x9E3779B1u; }
  static std::size_t place(std::uint32_t three) { return mixed(three) >> (32 - kTableBits); }
  static std::size_t bucket(std::uint32_t fingerprint) { return mixed(fingerprint) >> 24; }
  [[nodiscard]] bool perhaps(std::uint32_t three) const {
    const std::size_t at = place(three);
    return (table_[at / 64] >> (at % 64) & 1) != 0;
  }
  template <class Found>
  bool at_fingerprint(std::string_view text, std::size_t i, Found& found) const {
    const std::uint32_t word = four(text.data() + i);
    for (const Entry& entry : buckets_[bucket(word)]) {
      if (entry.fingerprint != word || i < entry.fingerprint_at ||
          !text.substr(i - entry.fingerprint_at).starts_with(entry.text))
        continue;
      if (!found(entry.pattern, i - entry.fingerprint_at)) return false;
    }
    return true;
  }

  // keyed by three bytes: the first or the last three of a fingerprint
  std::array<std::uint64_t, (1u << kTableBits) / 64> table_{};
  std::array<std::vector<Entry>, 256> buckets_;  // keyed by all four bytes
};

}  // namespace muster::engine
