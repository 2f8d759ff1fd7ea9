#include "common/engine/ranktable/findings.h"

#include <fmt/format.h>

namespace muster::ranktable {

std::string to_text(const std::vector<Finding>& findings, std::size_t left_out) {
  std::string out;
  for (const Finding& finding : findings) {
    if (!out.empty()) out += '\n';
    out += finding.where.empty() ? finding.message
                                 : fmt::format("{}: {}", finding.where, finding.message);
  }
  if (left_out > 0) out += fmt::format("\nand {} more", left_out);
  return out;
}

}  // namespace muster::ranktable
