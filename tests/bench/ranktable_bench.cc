// How long a rank table takes, from servers and cards in rank order to the checked bytes and their
// hash: what each placement of a large job costs once.
//   ranktable_bench [SERVERS]           default 2048, of eight cards each: 16,384 ranks
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/engine/ranktable/table_text.h"

namespace {

using muster::ranktable::RankTable;

RankTable cluster(std::uint32_t servers, bool pods) {
  RankTable table;
  if (pods) table.version = muster::ranktable::Version::SuperPods;
  for (std::uint32_t i = 0; i < servers; ++i) {
    auto& server = table.servers.emplace_back();
    const std::string host = std::to_string(i / 256) + "." + std::to_string(i % 256);
    server.server_id = "10.20." + host;
    if (pods) server.super_pod_id = std::to_string(i / 64);
    for (std::uint32_t card = 0; card < 8; ++card) {
      auto& device = server.devices.emplace_back();
      device.device_id = card;
      device.device_ip = std::to_string(100 + card) + ".1." + host;
      if (pods) device.super_device_id = std::to_string(i % 64 * 16 + card);
    }
  }
  return table;
}

int measure(const char* what, const RankTable& table) {
  constexpr int kRepeats = 31;
  std::vector<double> times;
  std::size_t bytes = 0;
  for (int i = 0; i < kRepeats; ++i) {
    RankTable copy = table;
    const auto start = std::chrono::steady_clock::now();
    const auto file = muster::ranktable::make_table_file(std::move(copy));
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
    if (!file) {
      std::fprintf(stderr, "%s\n", file.error().message.c_str());
      return 1;
    }
    bytes = file->bytes.size();
  }
  std::ranges::sort(times);
  std::printf("version %s: %zu ranks, %.1f MiB: median %.1f ms, p95 %.1f ms of %d\n", what,
              table.rank_count(), static_cast<double>(bytes) / (1 << 20), times[kRepeats / 2],
              times[kRepeats * 95 / 100], kRepeats);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto servers =
      static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2048);
  return measure("1.0", cluster(servers, false)) + measure("1.2", cluster(servers, true));
}
