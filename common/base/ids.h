// Strong types for identifiers. Plain values.
//
// An id is never used a second time. An address or a name is not an id.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace muster {

// A text identifier that does not mix with other kinds of identifiers.
template <class Tag>
struct TextId {
  std::string value;

  TextId() = default;
  explicit TextId(std::string text) : value(std::move(text)) {}
  [[nodiscard]] bool empty() const { return value.empty(); }
  [[nodiscard]] const std::string& str() const { return value; }
  friend auto operator<=>(const TextId&, const TextId&) = default;
};

// A number that does not mix with other kinds of numbers.
template <class Tag, class Int>
struct NumberId {
  Int value{};

  constexpr NumberId() = default;
  constexpr explicit NumberId(Int number) : value(number) {}
  friend constexpr auto operator<=>(const NumberId&, const NumberId&) = default;
};

// 13 characters, Crockford base32, lower case: 9 of time, 4 random; sortable
using JobId = TextId<struct JobIdTag>;
// [a-zA-Z0-9]([a-zA-Z0-9._-]{0,62}); the operator chooses it
using NodeName = TextId<struct NodeNameTag>;
using InstanceId = TextId<struct InstanceTag>;  // one state directory of an agent
using BootId = TextId<struct BootTag>;          // /proc/sys/kernel/random/boot_id
using ClusterId = TextId<struct ClusterTag>;    // made once by the first controller start
using RequestId = TextId<struct RequestTag>;    // the client's, for safe retries

using AttemptNo = NumberId<struct AttemptTag, std::uint32_t>;  // from 1; 0 = none; the fence
using RankNo = NumberId<struct RankTag, std::uint32_t>;        // global, from 0
using Epoch = NumberId<struct EpochTag, std::uint64_t>;        // +1 at each controller start
// from 1; 0 = before the first record
using JournalIndex = NumberId<struct IndexTag, std::uint64_t>;
// of this controller process; 0 = none
using ConnectionId = NumberId<struct ConnectionTag, std::uint64_t>;

}  // namespace muster

template <class Tag>
struct std::hash<muster::TextId<Tag>> {
  std::size_t operator()(const muster::TextId<Tag>& id) const noexcept {
    return std::hash<std::string>{}(id.value);
  }
};
template <class Tag, class Int>
struct std::hash<muster::NumberId<Tag, Int>> {
  std::size_t operator()(const muster::NumberId<Tag, Int>& id) const noexcept {
    return std::hash<Int>{}(id.value);
  }
};
