#include "agent/probe/inventory.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <fstream>

#include "agent/probe/interfaces.h"
#include "agent/probe/routes.h"
#include "common/base/utf8.h"

namespace muster::agent {
namespace {

bool alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

}  // namespace

v1::Inventory probe_inventory(const InventoryOptions& options) {
  v1::Inventory inventory;
  inventory.set_address(options.address);
  inventory.set_address_given(options.address_given);
  inventory.set_hostname(host_name());
  inventory.set_cpus(usable_cores());
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0)
    inventory.set_memory_bytes(static_cast<std::uint64_t>(pages) *
                               static_cast<std::uint64_t>(page));
  for (const auto& [key, value] : options.labels) (*inventory.mutable_labels())[key] = value;
  read_network(inventory, nullptr);
  return inventory;
}

void read_network(v1::Inventory& inventory, const Way* way) {
  inventory.clear_interfaces();
  for (v1::NetworkInterface& one : network_interfaces())
    *inventory.add_interfaces() = std::move(one);
  if (auto found = read_routes(network_links())) {
    inventory.clear_routes();
    for (v1::NetworkRoute& one : found->routes) *inventory.add_routes() = std::move(one);
    inventory.set_routes_cut(found->cut);
  }
  if (way == nullptr) return;
  if (auto address = way->local_address()) inventory.set_address(std::move(*address));
}

Result<std::pair<std::string, std::string>> parse_label(const std::string& text) {
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::InvalidArgument, "reading label '" + text + "': " + why +
                                                "; labels are written key=value, as in 'rack=r12'");
  };
  const auto equals = text.find('=');
  if (equals == std::string::npos) return refuse("there is no '='");
  std::string key = text.substr(0, equals), value = text.substr(equals + 1);
  if (key.empty() || key.size() > 63 || !alnum(key.front()))
    return refuse("a key has 1 to 63 characters and begins with a letter or digit");
  if (!std::ranges::all_of(
          key, [](char c) { return alnum(c) || c == '.' || c == '_' || c == '/' || c == '-'; })) {
    return refuse("a key holds letters, digits and any of . _ / -");
  }
  if (!is_utf8(text)) return refuse("it is not UTF-8 text");
  if (value.size() > 255 || !std::ranges::all_of(value, [](char c) {
        return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
      })) {
    return refuse("a value has at most 255 printable bytes");
  }
  return std::pair{std::move(key), std::move(value)};
}

Result<BootId> read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  if (!(file >> text) || text.empty()) {
    return fail(ErrorCode::Io,
                "reading '/proc/sys/kernel/random/boot_id': nothing there; is /proc mounted?");
  }
  return BootId(text);
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "localhost";
  return name.data();
}

std::uint32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return static_cast<std::uint32_t>(CPU_COUNT(&set));
  // It fails if there are more than 1,024 cores.
  return static_cast<std::uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace muster::agent
