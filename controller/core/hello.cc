#include "controller/core/hello.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/controls.h"
#include "common/base/names.h"
#include "common/base/utf8.h"
#include "common/proto/proto_lineage.h"
#include "common/proto/proto_time.h"
#include "controller/core/journal_end/lost_end.h"

namespace muster::core {
namespace {

constexpr std::size_t kHelloWordMost = 256;

// What every agent sends, and this Hello does not have. Empty: nothing.
std::string missing(const v1::Hello& hello) {
  if (hello.instance().empty()) return "its Hello has no instance";
  if (hello.boot_id().empty()) return "its Hello has no boot id";
  if (hello.incarnation().empty()) return "its Hello has no incarnation";
  if (!hello.has_uptime()) return "its Hello has no uptime";
  if (to_duration(hello.uptime()) < Duration::zero()) return "its Hello has a negative uptime";
  return {};
}

// A Hello is kept for ever, and shown whole. Empty: it is not too large.
std::string too_much(const v1::Inventory& inventory) {
  struct Bound {
    std::string_view what;
    std::size_t there, most;
  };
  const auto count = [](const auto& list) { return static_cast<std::size_t>(list.size()); };
  const Bound bounds[] = {{"devices", count(inventory.devices()), 1'024},
                          {"labels", count(inventory.labels()), 256},
                          {"findings", count(inventory.findings()), 1'024},
                          {"network interfaces", count(inventory.interfaces()), 1'024},
                          {"routes", count(inventory.routes()), 1'024},
                          {"bytes", inventory.ByteSizeLong(), 256 << 10}};
  for (const Bound& bound : bounds) {
    if (bound.there > bound.most)
      return fmt::format("its inventory has {} {}, at most {} are taken", bound.there, bound.what,
                         bound.most);
  }
  return {};
}

std::string text_of(const Lineage& lineage) {
  return lineage.generation == 0
             ? "generation 0 of its lineage"
             : fmt::format("generation {} of its lineage ({})", lineage.generation, lineage.id);
}

// What an agent has seen, and what the journal has, as ends of sentences.
struct Seen {
  std::string agent, journal;
};

}  // namespace

std::string pause_text(std::string_view behind) {
  return fmt::format(
      "the controller pauses: {}; it takes nothing in, places nothing and gives no orders, what "
      "runs on connected nodes goes on; stop it and put back the newest directory, or restart it "
      "once with --accept-loss",
      behind);
}

Judged judge_hello(const v1::Hello& hello, const Ledger& ledger, JournalIndex loaded,
                   JournalIndex last, bool welcomed) {
  const std::string_view name = std::string_view(hello.node()).substr(0, 64);
  const std::string who =
      "connecting node '" + without_controls(name.substr(0, utf8_prefix(name))) + "'";
  const auto refuse = [](ErrorCode code, std::string text) {
    return Judged{.refusal = Error{.code = code, .message = std::move(text)}, .behind = {}};
  };
  if (!is_node_name(hello.node())) {
    return refuse(ErrorCode::InvalidArgument,
                  who +
                      ": not a node name; letters, digits, '.', '_', '-', at most 63, the first a "
                      "letter or digit");
  }
  if (hello.protocol_min() > kProtocolMax || hello.protocol_max() < kProtocolMin) {
    return refuse(
        ErrorCode::Unsatisfiable,
        fmt::format("{}: it speaks protocol {}..{}, this controller {}..{}; upgrade the older one",
                    who, hello.protocol_min(), hello.protocol_max(), kProtocolMin, kProtocolMax));
  }
  if (const std::string lacks = missing(hello); !lacks.empty())
    return refuse(ErrorCode::InvalidArgument, who + ": " + lacks);
  for (const std::string* word : {&hello.instance(), &hello.boot_id(), &hello.version(),
                                  &hello.incarnation(), &hello.cluster_id()}) {
    if (word->size() > kHelloWordMost)
      return refuse(ErrorCode::InvalidArgument,
                    fmt::format("{}: Hello with an id or version of {} bytes, at most {}", who,
                                word->size(), kHelloWordMost));
    // They are part of sentences, and of lines of the log.
    if (has_controls(*word))
      return refuse(ErrorCode::InvalidArgument,
                    who + ": its Hello has an id or version with control characters in it");
  }
  if (!well_formed(to_lineage(hello.lineage()))) {
    return refuse(ErrorCode::InvalidArgument,
                  who +
                      ": its Hello names a malformed lineage of the journal; its state "
                      "directory is damaged: give the agent a new, empty one");
  }
  if (hello.present_size() > kPresentMost) {
    return refuse(ErrorCode::InvalidArgument,
                  fmt::format("{}: it holds {} run directories, at most {} are taken; remove those "
                              "of jobs that are long over from its state directory",
                              who, hello.present_size(), kPresentMost));
  }
  const auto long_id = [](const v1::PresentAttempt& present) {
    return present.job_id().size() > kHelloWordMost;
  };
  if (std::ranges::any_of(hello.present(), long_id))
    return refuse(ErrorCode::InvalidArgument, who + ": it holds a run of a job whose id is none");
  if (const std::string much = too_much(hello.inventory()); !much.empty())
    return refuse(ErrorCode::InvalidArgument, who + ": " + much);
  if (!hello.cluster_id().empty() && hello.cluster_id() != ledger.cluster.str()) {
    // No other refusal uses this code. The agent must not give up here what it keeps of its own
    // cluster.
    return refuse(ErrorCode::NotAllowed,
                  who + ": it belongs to cluster '" + hello.cluster_id() + "', this is '" +
                      ledger.cluster.str() +
                      "'; give the agent another state directory to move it here");
  }
  if (hello.cluster_id().empty() && hello.highest_epoch() > ledger.epoch.value) {
    return refuse(ErrorCode::Unsatisfiable,
                  fmt::format("{}: it has seen controller epoch {}, this one is only at {}: an old "
                              "controller, or an old copy of its journal",
                              who, hello.highest_epoch(), ledger.epoch.value));
  }
  const AgentReach reported{.lineage = to_lineage(hello.lineage()),
                            .epoch = Epoch(hello.highest_epoch()),
                            .acked = JournalIndex(hello.acked_index()),
                            .welcomed = welcomed};
  const Reach reach{
      .lineage = ledger.lineage, .epoch = ledger.epoch, .loaded = loaded, .last = last};
  if (!hello.cluster_id().empty() && reaches_beyond(reported, reach)) {
    const Seen seen =
        reported.lineage == reach.lineage
            ? Seen{.agent = fmt::format("up to journal row {} and controller epoch {}",
                                        reported.acked.value, reported.epoch.value),
                   .journal = fmt::format("had no row behind {} when its epoch {} began",
                                          loaded.value, ledger.epoch.value)}
            : Seen{.agent = text_of(reported.lineage), .journal = "is " + text_of(reach.lineage)};
    const std::string says = "it reports that it has seen " + seen.agent;
    if (!believable_reach(reported, reach)) {
      return refuse(
          ErrorCode::Unsatisfiable,
          fmt::format("{}: {}, which no controller of this cluster, now at generation {}, row {} "
                      "and epoch {}, can have reached; its state directory is damaged: give the "
                      "agent a new, empty one",
                      who, says, ledger.lineage.generation, last.value, ledger.epoch.value));
    }
    // Otherwise one claim of an unknown agent would be enough, and every start of the controller
    // would be refused.
    const auto known = ledger.nodes.find(NodeName(hello.node()));
    if (known == ledger.nodes.end() || known->second.instance != InstanceId(hello.instance())) {
      return refuse(
          ErrorCode::Unsatisfiable,
          fmt::format("{}: {}; this journal {}, and "
                      "knows no such agent (instance '{}'), whose word alone does not stop a "
                      "cluster; if the controller's directory is an older copy, put back the "
                      "newest one, or restart the controller once with --accept-loss; if not, give "
                      "the agent a new, empty state directory",
                      who, says, seen.journal, hello.instance()));
    }
    std::string behind = fmt::format(
        "the controller's journal is older than what node '{}' has seen: that was {}, but this "
        "journal {}; its directory is an older copy, or another controller went on from it",
        hello.node(), seen.agent, seen.journal);
    // The agent tries again soon: it must be heard before a controller on yet another old copy
    // places anything.
    Judged judged =
        refuse(ErrorCode::Unreachable,
               who + ": " + behind +
                   "; put back the newest one, or restart the controller once with --accept-loss");
    judged.behind = std::move(behind);
    return judged;
  }
  return {};
}

}  // namespace muster::core
