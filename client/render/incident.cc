#include "client/render/incident.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/render/text.h"
#include "client/render/wrap.h"
#include "common/proto/proto_time.h"

namespace muster::render {
namespace {

constexpr std::size_t kNodesNamed = 4;

// "step 'code' of the start failed on 'n1', 'n2' and 3 more", one line for each step.
std::vector<std::string> failed_steps(const v1::Attempt& attempt) {
  std::map<std::string, std::vector<std::string>> nodes;  // by step
  for (const v1::NodePlacement& node : attempt.nodes()) {
    if (!node.failed_start_step().empty())
      nodes[node.failed_start_step()].push_back(fmt::format("'{}'", printable(node.node())));
  }
  std::vector<std::string> lines;
  for (const auto& [step, names] : nodes) {
    const std::size_t named = std::min(names.size(), kNodesNamed);
    lines.push_back(
        fmt::format("step '{}' of the start failed on {}", printable(step),
                    fmt::join(names.begin(),
                              std::next(names.begin(), static_cast<std::ptrdiff_t>(named)), ", ")));
    if (names.size() > named) lines.back() += fmt::format(" and {} more", names.size() - named);
  }
  return lines;
}

}  // namespace

std::string incident_text(const v1::Incident& incident,
                          const google::protobuf::RepeatedPtrField<v1::Attempt>& attempts,
                          const Style& style, std::size_t width) {
  const std::string title = fmt::format("attempt {} broke: ", incident.attempt());
  std::string out = wrap(style.paint(Tint::Bold, title + printable(incident.verdict().reason())),
                         display_width(title), width) +
                    "\n";
  const auto below_title = [&](const std::string& text) {
    out += wrap("  " + style.paint(Tint::Dim, text), 2, width) + "\n";
  };
  if (!incident.verdict().evidence().empty()) below_title(printable(incident.verdict().evidence()));
  if (const auto attempt = std::ranges::find(attempts, incident.attempt(), &v1::Attempt::number);
      attempt != attempts.end()) {
    for (const std::string& line : failed_steps(*attempt)) below_title(line);
  }
  const bool has_fault = incident.has_fault();
  if (!has_fault && !incident.has_detected()) return out;
  const WallTime start = to_wall(has_fault ? incident.fault() : incident.detected());
  std::vector<std::pair<Duration, std::string>> marks;
  const auto mark = [&](bool there, const google::protobuf::Timestamp& stamp, std::string_view name,
                        const std::string& more) {
    if (there)
      marks.emplace_back(std::max(Duration::zero(), to_wall(stamp) - start),
                         fmt::format("{}{}", name, more));
  };
  mark(has_fault, incident.fault(), "fault", fmt::format(" at {}", clock_text(incident.fault())));
  mark(incident.has_detected(), incident.detected(), "detected", "");
  mark(incident.has_decided(), incident.decided(), "decided", "");
  mark(incident.has_swept(), incident.swept(), "swept", "");
  mark(incident.has_placed(), incident.placed(), "placed",
       incident.has_resumed_from()
           ? fmt::format(", from the checkpoint of step {}", incident.resumed_from())
           : ", from the beginning");
  mark(incident.has_started(), incident.started(), "started", "");
  const bool back = incident.has_began_at() && incident.has_resumed_from() &&
                    incident.began_at() <= incident.resumed_from();
  mark(incident.has_first_step(), incident.first_step(), "first step",
       back ? fmt::format(": did not go on from step {}, began at {}", incident.resumed_from(),
                          incident.began_at())
            : "");
  mark(incident.has_caught_up(), incident.caught_up(), "caught up", "");
  // A rank's first step may come before the last node's start.
  std::ranges::stable_sort(marks, {}, &std::pair<Duration, std::string>::first);
  for (const auto& [since, text] : marks) {
    const std::string time =
        fmt::format("  {:>9}  ", since == Duration::zero() ? "0" : "+" + duration_text(since));
    out += wrap(time + text, display_width(time), width) + "\n";
  }
  return out;
}

}  // namespace muster::render
