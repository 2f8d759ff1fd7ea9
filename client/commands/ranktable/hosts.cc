// hosts.yaml of `muster ranktable generate --hosts`: a whole cluster in rank order.
//   hosts:
//     - server_id: 10.20.0.11
//       super_pod_id: "0"                  # version 1.2
//       devices: [{device_id: 0, device_ip: 192.1.11.10, super_device_id: 0}]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "client/commands/ranktable/ranktable.h"
#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/words.h"
#include "common/spec/parse.h"
#include "common/spec/yaml_tree.h"
#include "common/text/words.h"

namespace muster::client {
namespace {

using ranktable::Json;
using ranktable::RankTable;
using ranktable::shown;
using spec::Node;

constexpr std::size_t kYamlBytesMax = 4 << 20;

// JSON is YAML too, but a list of 65,536 devices is more than the YAML reader is made for.
Node to_node(const Json& json) {
  Node node;
  switch (json.kind) {
    case Json::Kind::Null: break;
    case Json::Kind::Bool:
    case Json::Kind::Number:
    case Json::Kind::String:
      node.kind = Node::Kind::Scalar;
      node.text = json.text;
      break;
    case Json::Kind::Array: node.kind = Node::Kind::List; break;
    case Json::Kind::Object: node.kind = Node::Kind::Map; break;
  }
  for (const std::string& key : json.keys)
    node.keys.push_back({.kind = Node::Kind::Scalar, .text = key});
  for (const Json& item : json.items) node.items.push_back(to_node(item));
  return node;
}

class HostsReader {
 public:
  explicit HostsReader(ranktable::Version version) { table_.version = version; }

  void read(const Node& root) {
    static constexpr std::array<std::string_view, 1> kKeys = {"hosts"};
    if (!is_map(root, "", kKeys)) return;
    const Node* hosts = root.get("hosts");
    if (hosts == nullptr || hosts->kind != Node::Kind::List || hosts->items.empty()) {
      problem(hosts == nullptr ? root : *hosts, "hosts",
              "must be a list of servers, in rank order: - {server_id: , devices: [{device_id: , "
              "device_ip: }]}");
      return;
    }
    for (std::size_t i = 0; i < hosts->items.size(); ++i)
      host(hosts->items[i], fmt::format("hosts[{}]", i));
  }

  std::vector<spec::Problem> problems;
  RankTable take() { return std::move(table_); }

 private:
  void problem(const Node& at, std::string key, std::string message) {
    if (problems.size() < spec::kProblemsMax)
      problems.push_back(
          {.line = at.line,
           .column = at.column,
           .key = at.line == 0 ? key : "",
           .message = at.line == 0 ? std::move(message) : fmt::format("{}: {}", key, message)});
  }

  bool is_map(const Node& node, const std::string& where, std::span<const std::string_view> known) {
    if (node.kind != Node::Kind::Map) {
      problem(node, where.empty() ? "hosts" : where,
              where.empty() ? "is missing; the file is a map with the key 'hosts'"
                            : fmt::format("must be a map with {}", fmt::join(known, ", ")));
      return false;
    }
    for (const Node& key : node.keys) {
      if (std::ranges::find(known, key.text) != known.end()) continue;
      const std::string_view near = nearest(key.text, known);
      problem(key, where.empty() ? shown(key.text) : where + "." + shown(key.text),
              near.empty() ? fmt::format("unknown key ({})", fmt::join(known, " | "))
                           : fmt::format("unknown key; did you mean '{}'?", near));
    }
    return true;
  }

  std::string text(const Node& map, const std::string& where, std::string_view key, bool required) {
    const Node* node = map.get(key);
    const std::string at = fmt::format("{}.{}", where, key);
    if (node == nullptr || node->kind == Node::Kind::Null) {
      if (required) problem(node == nullptr ? map : *node, at, "is missing");
      return {};
    }
    if (node->kind != Node::Kind::Scalar) {
      problem(*node, at, "must be a word or a number");
      return {};
    }
    if (node->text.empty()) problem(*node, at, "is empty");
    return node->text;
  }

  std::uint32_t number(const Node& map, const std::string& where, std::string_view key) {
    const std::string value = text(map, where, key, true);
    if (value.empty()) return ranktable::kUnknown;
    const auto number = ranktable::parse_number(value);
    if (!number)
      problem(*map.get(key), fmt::format("{}.{}", where, key),
              fmt::format("'{}' is not a decimal number", shown(value)));
    return number.value_or(ranktable::kUnknown);
  }

  void host(const Node& node, const std::string& where) {
    static constexpr std::array<std::string_view, 3> kKeys = {"server_id", "super_pod_id",
                                                              "devices"};
    ranktable::Server& server = table_.servers.emplace_back();
    if (!is_map(node, where, kKeys)) return;
    const bool pods = table_.version == ranktable::Version::SuperPods;
    server.server_id = text(node, where, "server_id", true);
    if (const std::string why =
            server.server_id.empty() ? "" : ranktable::server_id_problem(server.server_id);
        !why.empty()) {
      problem(*node.get("server_id"), where + ".server_id",
              fmt::format("'{}' {}", shown(server.server_id), why));
    }
    const std::string pod = text(node, where, "super_pod_id", pods);
    if (pods) {
      server.super_pod_id = pod;
      pod_order(node, where, pod);
    } else {
      server.host_nic_ip = ranktable::kReserved;
    }
    const Node* devices = node.get("devices");
    if (devices == nullptr || devices->kind != Node::Kind::List || devices->items.empty()) {
      problem(devices == nullptr ? node : *devices, where + ".devices",
              "must be a list of devices, in rank order: [{device_id: 0, device_ip: 192.1.11.10}]");
      return;
    }
    std::set<std::uint32_t> seen;
    for (std::size_t d = 0; d < devices->items.size(); ++d) {
      const std::string at = fmt::format("{}.devices[{}]", where, d);
      const ranktable::Device device = read_device(devices->items[d], at);
      if (device.device_id != ranktable::kUnknown && !seen.insert(device.device_id).second)
        problem(devices->items[d], at + ".device_id",
                fmt::format("device {} is there twice on this server", device.device_id));
      server.devices.push_back(device);
    }
  }

  ranktable::Device read_device(const Node& node, const std::string& where) {
    static constexpr std::array<std::string_view, 3> kKeys = {"device_id", "device_ip",
                                                              "super_device_id"};
    ranktable::Device device{.device_id = ranktable::kUnknown};
    if (!is_map(node, where, kKeys)) return device;
    device.device_id = number(node, where, "device_id");
    device.device_ip = text(node, where, "device_ip", false);
    const std::string super = text(node, where, "super_device_id", false);
    if (table_.version == ranktable::Version::SuperPods) device.super_device_id = super;
    return device;
  }

  // Ranks follow the file's order, and HCCL needs the ranks of one super-pod together.
  void pod_order(const Node& node, const std::string& where, const std::string& pod) {
    if (pod.empty()) return;
    if (pod != last_pod_ && !pods_.insert(pod).second)
      problem(node, where,
              fmt::format("super-pod '{}' goes on here after servers of '{}'; list the servers of "
                          "one super-pod together",
                          shown(pod), shown(last_pod_)));
    last_pod_ = pod;
  }

  RankTable table_;
  std::set<std::string> pods_;
  std::string last_pod_;
};

Error hosts_error(const std::string& path, std::span<const spec::Problem> problems) {
  std::string text = spec::format(problems, path == "-" ? "<stdin>" : path);
  while (text.ends_with('\n')) text.pop_back();
  return {ErrorCode::InvalidArgument,
          fmt::format("the hosts file '{}' has {} problem{}:\n{}", path, problems.size(),
                      problems.size() == 1 ? "" : "s", text)};
}

}  // namespace

Result<RankTable> read_hosts(const std::string& path, ranktable::Version version) {
  const auto bytes = read_input(path, "hosts file", ranktable::kTextBytesMax);
  if (!bytes) return fail(bytes.error());
  const std::string_view inner = ranktable::trimmed(*bytes);
  HostsReader reader(version);
  if (inner.starts_with('{')) {
    const auto json = ranktable::read_json(*bytes);
    // "{hosts: [...]}" is YAML but not JSON. The YAML reader reports what is wrong with either.
    if (json) {
      reader.read(to_node(*json));
      if (!reader.problems.empty()) return fail(hosts_error(path, reader.problems));
      return reader.take();
    }
    if (inner.size() > kYamlBytesMax)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("reading the hosts file '{}': {}", path, json.error().message));
  }
  if (bytes->size() > kYamlBytesMax)
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("reading the hosts file '{}': it is longer than {} MiB; as JSON it may have {}",
                    path, kYamlBytesMax >> 20, ranktable::kTextBytesMax >> 20));
  spec::Tree tree = spec::read_tree(*bytes, true);
  if (!tree.problems.empty()) {
    // The YAML reader's advice is for specs.
    const std::string limit = fmt::format("more than {} values", spec::kNodesMax);
    for (spec::Problem& problem : tree.problems) {
      if (problem.message.starts_with(limit))
        problem.message =
            fmt::format("{}; as JSON the file may have {}", limit, ranktable::kJsonValuesMax);
    }
    return fail(hosts_error(path, tree.problems));
  }
  reader.read(tree.root);
  if (!reader.problems.empty()) return fail(hosts_error(path, reader.problems));
  return reader.take();
}

}  // namespace muster::client
