// The Ascend devices of this node from npu-smi and hccn_tool: asks, joins the answers by card and
// chip, and says what is odd. No process, file or clock of its own: `ask` is the only way out. Half
// an answer gives half a device and a finding; two tools that disagree are told so; nothing is made
// up.
#pragma once

#include <string>

#include "agent/probe/ask.h"

namespace muster::agent::probe {

struct AscendOptions {
  // the text of /etc/hccn.conf; empty = there is none. For addresses where hccn_tool has none at
  // all.
  std::string hccn_conf;
};

Found ask_ascend(const Ask& ask, const AscendOptions& options);

}  // namespace muster::agent::probe
