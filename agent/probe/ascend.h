// Finds the Ascend devices of this node with npu-smi and hccn_tool. Pure: all I/O goes through
// `ask`.
//
// It joins the answers by card and chip, and reports what is odd. Half an answer gives half a
// device and a finding. If two tools disagree, a finding reports that. Nothing is invented.
#pragma once

#include <string>

#include "agent/probe/ask.h"

namespace muster::agent::probe {

struct AscendOptions {
  // The text of /etc/hccn.conf; empty = no such file. It is used if hccn_tool gives no address at
  // all.
  std::string hccn_conf;
};

Found ask_ascend(const Ask& ask, const AscendOptions& options);

}  // namespace muster::agent::probe
