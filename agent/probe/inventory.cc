#include "agent/probe/inventory.h"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <fstream>

#include "agent/probe/interfaces.h"
#include "agent/probe/routes.h"
#include "common/process/tool.h"
#include "common/store/rclone.h"

namespace muster::agent {
namespace {

// Empty: there is none.
std::string rclone_version() {
  // It makes a directory for its configuration below a home that there is.
  std::vector<std::string> env = {"HOME=/nonexistent"};
  for (const std::string& one : process::tool_environment())
    if (one.starts_with("PATH=")) env.push_back(one);
  process::ToolRunner runner;
  const process::ToolAnswer answer =
      runner.run({{.program = "rclone", .args = {"version"}}}, env, {}).front();
  return answer.why.empty() ? store::parse_version(answer.output) : std::string();
}

}  // namespace

v1::Inventory probe_inventory(const InventoryOptions& options) {
  v1::Inventory inventory;
  inventory.set_address(options.address);
  inventory.set_address_given(options.address_given);
  inventory.set_hostname(host_name());
  inventory.set_cpus(usable_cores());
  inventory.set_knows_secrets(true);
  inventory.set_rclone(rclone_version());
  inventory.set_uploads(true);
  inventory.set_uploads_logs(true);
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
