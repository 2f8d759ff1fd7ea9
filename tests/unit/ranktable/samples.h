// Rank tables for tests, and the findings about a table as text. Pure.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>

#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/rank_table.h"
#include "tests/support/checkout.h"

namespace muster::ranktable {

inline std::string golden_path(const std::string& name) {
  return test::checkout("tests/unit/ranktable/golden/") + name;
}

inline std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The ranks are numbered. Version 1.2 has two servers in each super-pod.
inline RankTable sample(std::size_t servers, std::size_t devices,
                        Version version = Version::Servers) {
  RankTable table{.version = version};
  for (std::size_t s = 0; s < servers; ++s) {
    Server server{.server_id = fmt::format("10.{}.{}.{}", 20 + s / 60'000, s / 250 % 250, s % 250)};
    if (version == Version::SuperPods)
      server.super_pod_id = fmt::format("{}", s / 2);
    else
      server.host_nic_ip = kReserved;
    for (std::size_t d = 0; d < devices; ++d) {
      Device device{
          .device_id = static_cast<std::uint32_t>(d),
          .device_ip = fmt::format("{}.{}.{}.{}", 192 + s / 62'500, d, s / 250 % 250, s % 250)};
      if (version == Version::SuperPods)
        device.super_device_id = fmt::format("{}", (s % 2) * devices + d);
      server.devices.push_back(std::move(device));
    }
    table.servers.push_back(std::move(server));
  }
  number_ranks(table);
  return table;
}

inline std::string problem_text(const Findings& findings) {
  std::string text = to_text(findings.problems, findings.left_out);
  for (const Finding& note : findings.notes)
    text += fmt::format("{}note: {}{}{}", text.empty() ? "" : "\n", note.where,
                        note.where.empty() ? "" : ": ", note.message);
  return text;
}

}  // namespace muster::ranktable
