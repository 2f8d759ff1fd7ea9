// Decides whether the controller accepts an agent's Hello. The decision depends on its names, its
// size, its protocol, its cluster, and the newest row and epoch that the agent was sent. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/version.h"
#include "controller/core/model/ledger.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::core {

inline constexpr std::size_t kHelloBytesMost = 2 << 20;
inline constexpr int kPresentMost = 16'384;

// The judgement of a Hello against the durable state. Peers compares the Hello with the other
// connected agents.
struct Judged {
  std::optional<Error> refusal;  // nothing: it is accepted
  // Not empty: the journal is older than it must be; the text explains how this Hello shows it.
  std::string behind;
};
Judged judge_hello(const v1::Hello& hello, const Ledger& ledger, JournalIndex loaded,
                   JournalIndex last, bool welcomed);
// The sentence that a controller sends to everybody when its journal is behind; `behind` explains
// how that is known.
std::string pause_text(std::string_view behind);

}  // namespace muster::core
