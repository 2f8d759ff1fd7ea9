#include "common/engine/ranktable/read_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "common/engine/ranktable/fields.h"
#include "common/engine/ranktable/words.h"

namespace muster::ranktable {
namespace {

template <std::size_t N>
std::vector<Kept> kept_of(const Json& object, const std::array<std::string_view, N>& known) {
  std::vector<Kept> kept;
  for (std::size_t i = 0; i < object.keys.size(); ++i) {
    if (std::ranges::find(known, object.keys[i]) == known.end())
      kept.push_back({.key = object.keys[i], .json = json_text(object.items[i])});
  }
  return kept;
}

Device read_device(const Json& object, std::string where, Findings& found) {
  static constexpr std::array<std::string_view, 4> kKnown = {"device_id", "device_ip",
                                                             "super_device_id", "rank_id"};
  Fields fields(object, std::move(where), found);
  Device device;
  device.device_id = fields.number("device_id", true).value_or(kUnknown);
  device.rank_id = fields.number("rank_id", true).value_or(kUnknown);
  if (const auto* text = fields.text("device_ip", false)) device.device_ip = *text;
  if (const auto* text = fields.text("super_device_id", false)) device.super_device_id = *text;
  for (const std::string_view port :
       {"device_port", "device_vnic_port", "backup_device_port", "host_port"})
    fields.port(port);
  if (const auto* text = fields.text("backup_device_ip", false);
      text != nullptr && !text->empty() && !text->contains(',') && !parse_address(*text)) {
    fields.problem("backup_device_ip",
                   fmt::format("'{}' is not an IPv4 or IPv6 address of a card", shown(*text)));
  }
  device.kept = kept_of(object, kKnown);
  device.spoiled = fields.spoiled();
  return device;
}

Server read_server(const Json& object, std::size_t place, Findings& found) {
  static constexpr std::array<std::string_view, 4> kKnown = {"server_id", "device", "host_nic_ip",
                                                             "host_ip"};
  Fields fields(object, fmt::format("server_list[{}]", place), found);
  Server server;
  if (const auto* text = fields.text("server_id", true)) server.server_id = *text;
  if (const auto* text = fields.text("host_ip", false)) {
    server.host_ip = *text;
    if (text->empty()) fields.problem("host_ip", "is empty; leave the key out where there is none");
  }
  const Json* nic = object.get("host_nic_ip");
  if (nic != nullptr && nic->is(Json::Kind::String)) server.host_nic_ip = nic->text;
  server.kept = kept_of(object, kKnown);
  if (!fields.has("device") && fields.has("devices")) {
    fields.problem("devices", "is the key of a group list; in this form it is 'device'");
  } else if (const Json* devices = fields.objects("device")) {
    server.devices.reserve(devices->items.size());
    for (std::size_t d = 0; d < devices->items.size(); ++d) {
      server.devices.push_back(read_device(
          devices->items[d], fmt::format("server_list[{}].device[{}]", place, d), found));
    }
  }
  server.spoiled = fields.spoiled();
  return server;
}

void read_pods(const Json& document, RankTable& table, Findings& found) {
  std::unordered_map<std::string_view, Server*> servers;
  for (Server& server : table.servers) servers.try_emplace(server.server_id, &server);
  std::unordered_map<std::string, std::size_t> pods;
  Fields top(document, "", found);
  const Json* list = top.objects("super_pod_list");
  if (list == nullptr) return;
  for (std::size_t p = 0; p < list->items.size(); ++p) {
    Fields pod(list->items[p], fmt::format("super_pod_list[{}]", p), found);
    const auto* id = pod.text("super_pod_id", true);
    if (id != nullptr && id->empty()) pod.problem("super_pod_id", "is empty");
    if (id != nullptr && !id->empty()) {
      const auto [first, added] = pods.try_emplace(*id, p);
      if (!added)
        pod.problem("super_pod_id", fmt::format("'{}' is there twice, first at super_pod_list[{}]",
                                                shown(*id), first->second));
    }
    const Json* members = pod.objects("server_list");
    if (members == nullptr) continue;
    for (std::size_t m = 0; m < members->items.size(); ++m) {
      Fields member(members->items[m], fmt::format("super_pod_list[{}].server_list[{}]", p, m),
                    found);
      const auto* name = member.text("server_id", true);
      if (name == nullptr) continue;
      const auto server = servers.find(*name);
      if (server == servers.end()) {
        member.problem("server_id", fmt::format("'{}' is not in server_list", shown(*name)));
      } else if (!server->second->super_pod_id.empty()) {
        member.problem("server_id", fmt::format("'{}' is in super-pod '{}' already", shown(*name),
                                                shown(server->second->super_pod_id)));
      } else if (id != nullptr) {
        server->second->super_pod_id = *id;
      }
    }
  }
}

}  // namespace

Result<Head> read_head(const Json& document) {
  if (!document.is(Json::Kind::Object))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("it is {}; a rank table is an object", kind_name(document.kind)));
  Findings found;
  Fields fields(document, "", found);
  Head head;
  if (const auto* status = fields.text("status", true)) head.status = *status;
  head.completed = head.status == "completed";
  head.form = fields.has("version") ? Form::Table : Form::GroupList;
  if (head.completed && head.form == Form::Table) {
    if (const auto* version = fields.text("version", true)) head.version = *version;
  }
  if (!found.problems.empty()) return fail(ErrorCode::InvalidArgument, to_text(found.problems));
  return head;
}

RankTable read_table(const Json& document, Version version, Findings& found) {
  RankTable table{.version = version};
  Fields top(document, "", found);
  const Json* servers = top.objects("server_list");
  const auto count = top.number("server_count", false);
  if (!top.has("server_count"))
    found.note("server_count", "is missing; older documents call it mandatory");
  if (servers == nullptr) return table;
  if (count && *count != servers->items.size()) {
    top.problem("server_count", fmt::format("'{}', but server_list has {}; a table that was put "
                                            "together by hand needs its count too",
                                            *count, servers->items.size()));
  }
  table.servers.reserve(servers->items.size());
  for (std::size_t s = 0; s < servers->items.size(); ++s)
    table.servers.push_back(read_server(servers->items[s], s, found));
  if (version == Version::SuperPods && document.get("super_pod_list") != nullptr)
    read_pods(document, table, found);
  return table;
}

void add_rules(const RankTable& table, std::optional<Chip> chip, Findings& found) {
  if (table.servers.empty() && !found.problems.empty()) return;
  Findings rules = check(table, chip);
  for (Finding& finding : rules.problems)
    found.problem(std::move(finding.where), std::move(finding.message));
  for (Finding& finding : rules.notes)
    found.note(std::move(finding.where), std::move(finding.message));
  found.left_out += rules.left_out;
}

Result<RankTable> load_table(std::string_view text) {
  auto document = read_json(text);
  if (!document) return fail(std::move(document.error()));
  const auto head = read_head(*document);
  if (!head) return fail(head.error());
  if (!head->completed)
    return fail(ErrorCode::Unsatisfiable,
                fmt::format("it is not completed yet: its status is '{}'", shown(head->status)));
  if (head->form == Form::GroupList)
    return fail(
        ErrorCode::InvalidArgument,
        "it has no version, so it is a group list; `muster ranktable convert` makes a table of it");
  const bool pods = head->version == to_string(Version::SuperPods);
  if (!pods && head->version != to_string(Version::Servers))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("its version is '{}'; 1.0 and 1.2 are read", shown(head->version)));
  Findings found;
  RankTable table = read_table(*document, pods ? Version::SuperPods : Version::Servers, found);
  add_rules(table, std::nullopt, found);
  if (!found.problems.empty())
    return fail(ErrorCode::InvalidArgument, to_text(found.problems, found.left_out));
  return table;
}

}  // namespace muster::ranktable
