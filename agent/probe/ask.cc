#include "agent/probe/ask.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "agent/probe/text.h"

namespace muster::agent::probe {

std::string why_not(const process::ToolAnswer& answer) {
  if (answer.why.empty()) return printed(answer.output);
  const std::string text = clean(answer.output);
  return text.empty() || !answer.status ? answer.why
                                        : fmt::format("{} and printed '{}'", answer.why, text);
}

void Failures::add(std::uint32_t device, std::string why) {
  const auto same = std::ranges::find(alike_, why, &Alike::why);
  if (same != alike_.end()) {
    same->devices.push_back(device);
  } else {
    alike_.push_back({std::move(why), {device}});
  }
}

void Failures::into(std::vector<std::string>& findings) const {
  for (const Alike& one : alike_) {
    findings.push_back(fmt::format("{} for device{} {}: {}", what_,
                                   one.devices.size() == 1 ? "" : "s", fmt::join(one.devices, ","),
                                   one.why));
  }
}

}  // namespace muster::agent::probe
