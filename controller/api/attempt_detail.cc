#include "controller/api/attempt_detail.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "common/proto/proto_time.h"
#include "controller/api/bounded.h"
#include "controller/api/convert.h"

namespace muster::controller {
namespace {

// Of an exit without its node and evidence; numbers have ten bytes.
constexpr std::size_t kExitFields = 72;
constexpr std::size_t kNodeFields = 32;  // of a brief node without its name

std::size_t exit_bytes(const core::RankExited& exit) {
  return kFieldBytes + kExitFields + exit.node.str().size() +
         std::min(exit.evidence.size(), kShownBytesMost);
}

std::size_t failed_start_bytes(const core::NodePart& part) {
  return part.start_failed ? kFieldBytes + part.start_failed->step.size() : 0;
}

std::size_t node_bytes(const core::NodePart& part) {
  const core::PlacedNode& placed = part.placed;
  std::size_t bytes = kFieldBytes + kNodeFields + placed.node.str().size() +
                      placed.boot_id.str().size() + placed.instance.str().size() +
                      placed.address.size() + placed.interface.size() + 5 * kFieldBytes +
                      5 * (placed.devices.size() + placed.physical_ids.size()) +
                      failed_start_bytes(part);
  for (const std::string& address : placed.device_ips) bytes += address.size() + kFieldBytes;
  return bytes;
}

std::size_t brief_node_bytes(const core::NodePart& part) {
  return kFieldBytes + kNodeFields + part.placed.node.str().size() + failed_start_bytes(part);
}

void add_exit(v1::Attempt& shown, const core::RankExited& exit) {
  v1::RankExit& one = *shown.add_exits();
  one.set_rank(exit.rank.value);
  one.set_node(exit.node.str());
  one.set_code(exit.code);
  one.set_signal(exit.signal);
  one.set_stop_requested(exit.stop_requested);
  if (exit.training_rank) one.set_training_rank(*exit.training_rank);
  *one.mutable_at() = to_proto(exit.controller_time);
  one.set_evidence(bounded(exit.evidence));
}

void add_brief_node(v1::Attempt& shown, const core::NodePart& part) {
  v1::NodePlacement& node = *shown.add_nodes();
  node.set_node(part.placed.node.str());
  node.set_first_rank(part.placed.first_rank.value);
  node.set_rank_count(part.placed.rank_count);
  node.set_started(part.started);
  node.set_swept(part.swept);
  if (part.start_failed) node.set_failed_start_step(part.start_failed->step);
}

// The exits that show what happened: the verdict's rank, then the bad ones before the stop, then
// the bad ones after it.
std::vector<const core::RankExited*> telling(const core::AttemptRecord& attempt) {
  std::vector<const core::RankExited*> bad;
  for (const core::NodePart& part : attempt.parts) {
    for (const auto& [rank, exit] : part.exits) {
      if (!core::ended_well(exit)) bad.push_back(&exit);
    }
  }
  const auto order = [&](const core::RankExited* exit) {
    const bool named = attempt.verdict && attempt.verdict->rank == exit->rank;
    return std::tuple(!named, exit->stop_requested && !exit->killed_unasked, exit->controller_time,
                      exit->rank);
  };
  const std::size_t most = std::min(bad.size(), kBriefExits);
  std::ranges::partial_sort(bad, bad.begin() + static_cast<std::ptrdiff_t>(most), {}, order);
  bad.resize(most);
  return bad;
}

}  // namespace

std::size_t brief_bytes(const core::AttemptRecord& attempt) {
  std::size_t bytes = 0;
  for (const core::NodePart& part : attempt.parts) bytes += brief_node_bytes(part);
  for (const core::RankExited* exit : telling(attempt)) bytes += exit_bytes(*exit);
  return bytes;
}

std::size_t full_bytes(const core::AttemptRecord& attempt) {
  std::size_t bytes = 0;
  for (const core::NodePart& part : attempt.parts) {
    bytes += node_bytes(part);
    for (const auto& [rank, exit] : part.exits) bytes += exit_bytes(exit);
  }
  return bytes;
}

void add_brief(v1::Attempt& shown, const core::AttemptRecord& attempt) {
  for (const core::NodePart& part : attempt.parts) add_brief_node(shown, part);
  for (const core::RankExited* exit : telling(attempt)) add_exit(shown, *exit);
}

void add_full(v1::Attempt& shown, const core::AttemptRecord& attempt) {
  shown.clear_nodes();
  shown.clear_exits();
  for (const core::NodePart& part : attempt.parts) {
    *shown.add_nodes() = to_v1(part);
    for (const auto& [rank, exit] : part.exits) add_exit(shown, exit);
  }
}

void add_nodes(v1::Attempt& shown, const core::AttemptRecord& attempt, std::size_t most) {
  std::size_t whole = 0, used = 0;
  for (const core::NodePart& part : attempt.parts) whole += node_bytes(part);
  for (const core::NodePart& part : attempt.parts) {
    if (whole <= most) {
      *shown.add_nodes() = to_v1(part);
    } else if ((used += brief_node_bytes(part)) <= most) {
      add_brief_node(shown, part);
    }
  }
}

}  // namespace muster::controller
