#include "common/engine/ranktable/hccn.h"

#include <fmt/format.h>

#include "common/engine/ranktable/words.h"

namespace muster::ranktable {
namespace {

// Removes the next line from `rest` and returns it.
std::string_view next_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return trimmed(line);
}

}  // namespace

std::optional<std::string> address_of_tool(std::string_view output) {
  while (!output.empty()) {
    const std::string_view line = next_line(output);
    if (line.empty()) continue;
    constexpr std::string_view kKey = "ipaddr:";
    if (!line.starts_with(kKey)) return std::nullopt;
    const std::string_view text = trimmed(line.substr(kKey.size()));
    const auto address = parse_address(text);
    if (!address || is_unspecified(*address)) return std::nullopt;
    return std::string(text);
  }
  return std::nullopt;
}

Result<std::map<std::uint32_t, std::string>> addresses_of_conf(std::string_view text) {
  std::map<std::uint32_t, std::string> addresses;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    ++number;
    constexpr std::string_view kKey = "address_";
    if (!line.starts_with(kKey)) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const auto device = parse_number(trimmed(line.substr(kKey.size(), equals - kKey.size())), 1023);
    if (!device) continue;
    const std::string_view address = trimmed(line.substr(equals + 1));
    const auto [place, added] = addresses.try_emplace(*device, address);
    if (!added && place->second != address) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("line {}: device {} gets the address '{}' here and '{}' before",
                              number, *device, shown(address), shown(place->second)));
    }
  }
  return addresses;
}

}  // namespace muster::ranktable
