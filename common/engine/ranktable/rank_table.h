// The HCCL rank table: it states which rank runs on which device of which server, and at which
// address. Plain values and pure functions; any thread may use them.
//
//   table_text.h    its bytes, as the vendor's tools write them, and their hash
//   read_table.h    reads the bytes into a table
//   check_table.h   the rules of the library that reads it
//   group_list.h    the older form without a version
//   judge.h         all of these on one file
//   device_range.h  "[0,8)", lists of devices
//   hccn.h          where addresses come from
//   words.h         numbers, ids, paths
//   chip.h          whose rules a table follows
//   cards.h         which cards of a server HCCL accepts together
//   rank_order.h    servers and devices by rank
//
// A rank is a number in the table and not a position: files may list servers and devices in any
// order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::ranktable {

enum class Version : std::uint8_t { Servers, SuperPods };  // "1.0", "1.2"
std::string_view to_string(Version version);

// A key that muster does not interpret (device_port, hardware_type ...), with its value as JSON. It
// is kept from reading to writing.
struct Kept {
  std::string key;
  std::string json;
  friend bool operator==(const Kept&, const Kept&) = default;
};

// a number that could not be read; the reader has reported it
inline constexpr std::uint32_t kUnknown = 0xFFFFFFFF;
inline constexpr std::uint32_t kRanksMax = 65'536;
inline constexpr std::size_t kServerIdBytesMax = 64;

struct Device {
  std::uint32_t device_id = 0;  // physical number on its server
  std::string device_ip;        // of the card's own network port; "a,b" for several; empty = none
  std::string super_device_id;  // decimal; empty = none
  std::uint32_t rank_id = 0;
  std::vector<Kept> kept;
  // It has a reported problem. Problems that only follow from that one are not reported.
  bool spoiled = false;
  friend bool operator==(const Device&, const Device&) = default;
};

struct Server {
  std::string server_id;  // a unique name, by custom the host's address
  std::vector<Device> devices;
  std::string super_pod_id;  // for version 1.2; empty = none
  // "reserve" in tables of the vendor's tools; no reader uses it; empty = not written
  std::string host_nic_ip;
  std::string host_ip;  // empty = none
  std::vector<Kept> kept;
  bool spoiled = false;
  friend bool operator==(const Server&, const Server&) = default;
};

struct RankTable {
  Version version = Version::Servers;
  std::vector<Server> servers;

  [[nodiscard]] std::size_t rank_count() const;
  friend bool operator==(const RankTable&, const RankTable&) = default;
};

// The super-pods of a table, in the order in which servers name them. Servers without one belong to
// no super-pod.
struct SuperPod {
  std::string id;
  std::vector<std::size_t> servers;  // indexes in RankTable::servers
};
std::vector<SuperPod> super_pods(const RankTable& table);

// The value that hccl_tools.py writes for host_nic_ip.
inline constexpr std::string_view kReserved = "reserve";

// Numbers the ranks 0, 1, 2 ... in the order of servers and devices.
void number_ranks(RankTable& table);

// Merges tables of single servers (or already merged tables) into one. Servers keep the given
// order. The ranks of a table follow those of the table before it, in their own order.
//
// Errors: no table, different versions, too many ranks. The result must still pass check(): two
// tables may name the same server.
Result<RankTable> merge(std::span<const RankTable> tables);

// The opposite of merge: one table for each server, with ranks from 0 in their previous order.
std::vector<RankTable> per_server(const RankTable& table);

// File names as the vendor's tools give them: "hccl_8p_01234567_10.20.0.11.json" (numbers as
// requested, before visible devices remap them), "hccl_2s_16p.json".
std::string server_file_name(std::span<const std::uint32_t> logic_ids, std::string_view server_id);
std::string merged_file_name(const RankTable& table);

}  // namespace muster::ranktable
