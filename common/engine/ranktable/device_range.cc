#include "common/engine/ranktable/device_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/engine/ranktable/cards.h"
#include "common/engine/ranktable/words.h"

namespace muster::ranktable {
namespace {

std::unexpected<Error> bad(std::string_view what, std::string_view text, std::string_view why) {
  return fail(ErrorCode::InvalidArgument, fmt::format("{} '{}': {}", what, shown(text), why));
}
std::unexpected<Error> bad_range(std::string_view text, std::string_view why) {
  return bad("device range", text, why);
}
std::unexpected<Error> bad_list(std::string_view text, std::string_view why) {
  return bad("visible devices", text, why);
}

}  // namespace

Result<DeviceRange> parse_device_range(std::string_view text, std::uint32_t per_server,
                                       std::optional<Chip> chip) {
  constexpr std::string_view kForm = "write [FIRST,END), for instance \"[0,8)\" for devices 0 to 7";
  const std::string_view inner = trimmed(text);
  const std::size_t comma = inner.find(',');
  if (inner.size() < 5 || inner.front() != '[' || (inner.back() != ')' && inner.back() != ']') ||
      comma == std::string_view::npos)
    return bad_range(text, kForm);
  const auto first = parse_number(trimmed(inner.substr(1, comma - 1)));
  const auto end = parse_number(trimmed(inner.substr(comma + 1, inner.size() - comma - 2)));
  if (!first || !end) return bad_range(text, kForm);
  if (*end > per_server)
    return bad_range(
        text,
        fmt::format(
            "ends behind device {}, the last of {} a server; --device-num-per-node says otherwise",
            per_server - 1, per_server));
  if (*first >= *end)
    return bad_range(
        text,
        fmt::format("has no device in it: the end is not part of it; [{0},{1}) is device {0} alone",
                    *first, *first + 1));
  const std::uint32_t count = *end - *first;
  if (chip == Chip::A910 && !count_problem(*chip, count).empty())
    return bad_range(text,
                     fmt::format("{} devices; a 910 server takes part with 1, 2, 4 or 8", count));
  const bool across = *first < 4 && *end > 4 && !(*first == 0 && (*end == 8 || *end == 16));
  if (across && chip.value_or(Chip::A910) == Chip::A910) {
    return bad_range(text,
                     "takes devices out of both groups of a 910 server (0-3 and 4-7); stay in one "
                     "group or take all; --chip 910b or 910_93 for servers without groups");
  }
  return DeviceRange{.first = *first, .end = *end};
}

Result<std::vector<std::uint32_t>> parse_visible_devices(std::string_view text) {
  constexpr std::size_t kMost = 64;
  std::vector<std::uint32_t> devices;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = trimmed(rest.substr(0, comma));
    const std::size_t dash = part.find('-');
    const auto low = parse_number(part.substr(0, dash), kMost - 1);
    const auto high =
        dash == std::string_view::npos ? low : parse_number(part.substr(dash + 1), kMost - 1);
    if (!low || !high || *high < *low)
      return bad_list(text,
                      "write the numbers of physical devices, for instance \"4,5,6,7\" or \"4-7\"");
    for (std::uint32_t device = *low; device <= *high; ++device) {
      if (std::ranges::find(devices, device) != devices.end())
        return bad_list(text, fmt::format("device {} is there twice", device));
      devices.push_back(device);
    }
    if (comma == std::string_view::npos) return devices;
    rest = rest.substr(comma + 1);
  }
}

Result<std::vector<LocalDevice>> pick_devices(const DeviceRange& range,
                                              const std::vector<std::uint32_t>& visible) {
  if (range.end > visible.size()) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("device range [{},{}): only {} devices are visible; --visible-devices "
                            "lists the physical device of every logic number from 0 on",
                            range.first, range.end, visible.size()));
  }
  std::vector<LocalDevice> devices;
  for (std::uint32_t logic = range.first; logic < range.end; ++logic)
    devices.push_back({.logic = logic, .physical = visible[logic]});
  return devices;
}

}  // namespace muster::ranktable
