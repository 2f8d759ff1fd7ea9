// Finds the addresses for `muster ranktable generate`: from hccn_tool with limits on time and
// output (common/process/tool.h), or from /etc/hccn.conf.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "client/commands/ranktable/ranktable.h"
#include "common/engine/ranktable/hccn.h"
#include "common/engine/ranktable/words.h"
#include "common/io/unique_fd.h"
#include "common/name_service/hosts.h"
#include "common/process/tool.h"

namespace muster::client {
namespace {

constexpr const char* kTool = "hccn_tool";
constexpr std::size_t kToolBytesMax = 64 << 10;

// All addresses, or the reason why not.
struct Answered {
  std::optional<std::map<std::uint32_t, std::string>> addresses;
  std::string why;  // empty = there is no tool
};
Answered ask_tool(const std::vector<std::uint32_t>& devices, std::chrono::milliseconds most) {
  std::map<std::uint32_t, std::string> addresses;
  process::ToolRunner tools;
  const auto env = process::tool_environment();
  for (const std::uint32_t device : devices) {
    const process::ToolRequest request{.program = kTool,
                                       .args = {"-i", std::to_string(device), "-ip", "-g"}};
    const process::ToolAnswer ran =
        tools
            .run({request}, env,
                 {.each = most, .total = most, .parallel = 1, .bytes = kToolBytesMax})
            .front();
    if (ran.absent) return {};
    if (!ran.why.empty())
      return {.addresses = {},
              .why = fmt::format("{} gave no address of device {}: {}", kTool, device, ran.why)};
    const auto address = ranktable::address_of_tool(ran.output);
    if (!address) {
      const std::string printed = ranktable::shown(ranktable::trimmed(ran.output));
      return {.addresses = {},
              .why = fmt::format("{} gave no address of device {}: it printed {}", kTool, device,
                                 printed.empty() ? "nothing" : "'" + printed + "'")};
    }
    addresses.emplace(device, *address);
  }
  return {.addresses = std::move(addresses), .why = {}};
}

// An address of this server that others can use: not empty, no loopback one.
bool is_usable(const std::string& text) {
  const auto address = ranktable::parse_address(text);
  return address && !ranktable::is_loopback(*address) && !ranktable::is_unspecified(*address);
}

// Asks the kernel which own address it would use for an address that belongs to nobody (RFC 5737).
// Nothing is sent.
std::string address_of_default_route() {
  const io::UniqueFd probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in far{};
  far.sin_family = AF_INET;
  far.sin_port = htons(9);
  far.sin_addr.s_addr = htonl(0xC6336401);  // 198.51.100.1
  if (!probe || ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&far), sizeof(far)) != 0)
    return {};
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  if (::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return {};
  std::string text = name_service::address_text(own);
  return is_usable(text) ? text : "";
}

}  // namespace

Result<Addresses> card_addresses(const std::vector<std::uint32_t>& devices,
                                 const AddressSource& source) {
  Answered answered = ask_tool(devices, source.tool_time);
  if (answered.addresses) return Addresses{.by_device = std::move(*answered.addresses), .note = {}};
  const std::string tool =
      answered.why.empty() ? fmt::format("there is no {} on PATH", kTool) : answered.why;
  std::error_code ignored;
  if (!std::filesystem::exists(source.conf, ignored)) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("looking up the addresses of devices {}: {}, and there is no file "
                            "'{}'; run this on the server that has the cards, or name a copy of "
                            "its hccn.conf with --hccn-conf",
                            fmt::join(devices, ","), tool, source.conf));
  }
  const auto text = read_input(source.conf, "file of card addresses", ranktable::kConfBytesMax);
  if (!text) return fail(text.error());
  auto all = ranktable::addresses_of_conf(*text);
  if (!all)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("reading the file of card addresses '{}': {}", source.conf,
                            all.error().message));
  Addresses found{.by_device = {},
                  .note = answered.why.empty() ? ""
                                               : fmt::format("{}; all addresses are from '{}'",
                                                             answered.why, source.conf)};
  for (const std::uint32_t device : devices) {
    const auto entry = all->find(device);
    if (entry == all->end()) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("looking up the address of device {}: {}, and '{}' has no line "
                              "'address_{}='; is the card set up (hccn_tool -i {} -ip -g)?",
                              device, tool, source.conf, device, device));
    }
    const auto address = ranktable::parse_address(entry->second);
    if (!address || ranktable::is_unspecified(*address)) {
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("looking up the address of device {}: '{}' says '{}', which is no address",
                      device, source.conf, ranktable::shown(entry->second)));
    }
    found.by_device.emplace(device, entry->second);
  }
  return found;
}

Result<ServerId> own_server_id() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name.fill(0);
  const auto addresses = name_service::addresses_of(name.data());
  ServerId found;
  if (addresses) {
    // A rank table has the IPv4 address of a server.
    const auto usable = std::ranges::find_if(*addresses, [](const std::string& text) {
      return text.find(':') == std::string::npos && is_usable(text);
    });
    if (usable != addresses->end()) found.id = *usable;
  }
  if (!found.id.empty()) return found;
  const std::string why = addresses ? "resolves only to a loopback address, which every server has"
                          : addresses.error().code == ErrorCode::NotFound
                              ? "does not resolve"
                              : fmt::format("does not resolve ({})", addresses.error().message);
  found.id = address_of_default_route();
  if (found.id.empty())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("finding this server's address: its name '{}' {}, and there is no "
                            "default route; give --server-ip",
                            name.data(), why));
  found.note = fmt::format(
      "the server id is '{}', the address of the default route: this server's name '{}' {}",
      found.id, name.data(), why);
  return found;
}

}  // namespace muster::client
