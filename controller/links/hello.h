// Whether an agent's Hello is one to be taken: its names and its size, its protocol, its cluster,
// and what it was told. Pure.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controller/core/ledger.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::controller {

inline constexpr std::uint32_t kProtocolMin = 1, kProtocolMax = 1;
inline constexpr std::size_t kHelloBytesMost = 2 << 20;
inline constexpr int kPresentMost = 16'384;

// What is durable here says of this Hello (peers are looked at elsewhere). Pure.
struct Judged {
  grpc::Status status;  // OK, or why it is refused
  // not empty: the journal is older than it must be, and how this Hello shows it
  std::string behind;
};
Judged judge_hello(const v1::Hello& hello, const core::Ledger& ledger, JournalIndex loaded,
                   JournalIndex last, bool welcomed);
// Nothing: not told, or nothing that can be.
std::optional<Duration> uptime_of(const v1::Hello& hello);
// What a controller whose journal is behind, which `behind` tells, says of itself to everybody.
std::string pause_text(std::string_view behind);

}  // namespace muster::controller
