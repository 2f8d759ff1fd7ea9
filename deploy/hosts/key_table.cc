#include "deploy/hosts/key_table.h"

#include <algorithm>
#include <array>

namespace muster::hosts {
namespace {

using enum ValueKind;
constexpr Section kLogin = Section::Login, kAgent = Section::Agent,
                  kController = Section::Controller;

constexpr auto kKeys = std::to_array<HostKey>({
    {"host", kLogin, Host, "", ""},
    {"management_address", kLogin, Host, "", ""},
    {"port", kLogin, Port, "", ""},
    {"user", kLogin, User, "", ""},
    {"identity", kLogin, HomePath, "", ""},
    {"jump", kLogin, Jump, "", ""},
    {"known_hosts", kLogin, HomePath, "", ""},
    {"host_keys", kLogin, HostKeys, "", ""},
    {"sudo", kLogin, Bool, "", ""},
    {"prefix", kLogin, Path, "", ""},

    {"state_dir", kAgent, Path, "", ""},
    {"training_address", kAgent, Host, "--address", ""},
    {"labels", kAgent, Labels, "--label", ""},
    {"devices", kAgent, Number, "--devices", ""},
    {"devices_from", kAgent, Path, "--devices-from", ""},
    {"probe_interval", kAgent, Text, "--probe-interval", ""},
    {"cgroup", kAgent, Text, "--cgroup", ""},
    {"container_tool", kAgent, Text, "--container-tool", ""},
    {"container_args", kAgent, Words, "--container-arg", ""},
    {"min_free", kAgent, Number, "--min-free", ""},
    {"log_level", kAgent, Text, "--log-level", ""},
    {"training_interface", kAgent, Refused, "",
     "give the node's address in the training network: training_address; a job may name an "
     "interface (network.interface)"},
    {"outputs", kAgent, Refused, "", "a job names its own directory: outputs.dir"},

    {"state_dir", kController, Path, "", ""},
    {"listen", kController, Address, "", ""},
    {"address", kController, Address, "", ""},
    {"enrol", kController, AddressOrNone, "", ""},
    {"login_socket", kController, PathOrNone, "", ""},
    {"access", kController, Path, "--access", ""},
    {"outputs_root", kController, Path, "--outputs-root", ""},
    {"inputs_root", kController, Path, "--inputs-root", ""},
    {"log_level", kController, Text, "--log-level", ""},
    {"log_quota", kController, Text, "--log-quota", ""},
    {"archive_after", kController, Text, "--archive-after", ""},
    {"archive_keep", kController, Text, "--archive-keep", ""},
    {"heartbeat_interval", kController, Text, "--heartbeat-interval", ""},
    {"port_range", kController, Text, "--port-range", ""},
    {"outputs", kController, Refused, "", "a job names its own directory: outputs.dir"},
});

}  // namespace

std::span<const HostKey> host_keys() { return kKeys; }

const HostKey* find_host_key(std::string_view name, std::span<const Section> sections) {
  const auto* const at = std::ranges::find_if(kKeys, [&](const HostKey& key) {
    return key.name == name && std::ranges::find(sections, key.section) != sections.end();
  });
  return at == kKeys.end() ? nullptr : at;
}

std::vector<std::string_view> host_key_names(std::span<const Section> sections) {
  std::vector<std::string_view> names;
  for (const HostKey& key : kKeys)
    if (key.kind != Refused && std::ranges::find(sections, key.section) != sections.end())
      names.push_back(key.name);
  return names;
}

}  // namespace muster::hosts
