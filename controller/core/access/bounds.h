// The bounds of tokens and certificates. Plain constants.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/base/time.h"

namespace muster::core {

inline constexpr std::size_t kTokensLive = 1'000;  // that are not over
inline constexpr std::size_t kTokensKept = 2'000;  // with those that are over
inline constexpr std::uint32_t kTokenUsesMost = 10'000;
inline constexpr Duration kTokenLifetimeLeast = std::chrono::hours(1),
                          kTokenLifetimeMost = std::chrono::hours(24 * 30);

inline constexpr std::size_t kCertificatesMost = 100'000;  // in the ledger, one for each key
inline constexpr std::size_t kSubjectsRevokedMost = 100'000;
// Keys of one node that count at a time, and how many certificates the node gets for one key within
// a day. Nodes ask for them by themselves, so that only these bound what one node can write into
// the journal. A node renews once in twenty days.
inline constexpr std::size_t kKeysOfNode = 16;
inline constexpr std::uint32_t kCertificatesOfKeyDay = 16;
// A user makes a key with each login, on each machine.
inline constexpr std::size_t kKeysOfUser = 64;
// With those that have ended or were revoked, until they leave the ledger.
inline constexpr std::size_t kKeysOfUserKept = 256;
// In the ledger: with more, users get none for a new key. The rest is for nodes.
inline constexpr std::size_t kCertificatesForUsers = kCertificatesMost / 2;

}  // namespace muster::core
