// The rules of network.
#include <fmt/format.h>

#include "common/base/names.h"
#include "common/spec/keys/values.h"
#include "common/spec/rules/checks.h"

namespace muster::spec {
namespace {

constexpr std::size_t kInterfaceNameMax = 15;  // IFNAMSIZ without its terminator

// It accepts less than the kernel does: NCCL and HCCL read other characters as lists and signs.
bool is_interface_name(std::string_view text) {
  return text.size() <= kInterfaceNameMax && is_node_name(text);
}

}  // namespace

void complete_network(Draft& draft) {
  v1::JobSpec& spec = draft.spec;
  if (spec.network().interface().empty()) spec.mutable_network()->set_interface("auto");
  const v1::NetworkSpec& network = spec.network();
  if (!is_interface_name(network.interface()))
    draft.problem(
        "network.interface",
        fmt::format(
            "'{}' is not an interface's name: letters, digits, . _ -, at most {} characters ({})",
            shown(network.interface()), kInterfaceNameMax, accepted_of("network.interface")));
  if (network.master_port() > 65535)
    draft.problem("network.master_port",
                  fmt::format("{} is out of range (0 = auto, 1..65535)", network.master_port()));
}

}  // namespace muster::spec
