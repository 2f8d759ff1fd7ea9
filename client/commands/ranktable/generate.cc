// muster ranktable generate: makes the table of one server, with the options of hccl_tools.py, or
// that of a whole cluster from a list of hosts.
#include <fmt/format.h>

#include "client/commands/ranktable/ranktable.h"
#include "common/engine/ranktable/check_table.h"
#include "common/engine/ranktable/device_range.h"
#include "common/engine/ranktable/table_text.h"
#include "common/engine/ranktable/words.h"

namespace muster::client {
namespace {

using ranktable::RankTable;

struct GenerateOptions {
  std::string server_ip;
  std::string device_num = "[0,8)";
  std::string visible_devices;
  std::uint32_t per_node = 8;
  std::string hccn_conf = AddressSource{}.conf;
  std::string tool_timeout = "5s";
  std::string hosts;
  std::string version = "1.0";
  std::string chip;
  std::string output;
};

// Checks the table, writes it to its output, and prints notes for people.
int finish(const Context& context, const GenerateOptions& options, RankTable table,
           const std::string& name, std::string_view doing, const ranktable::Names& names) {
  number_ranks(table);
  const auto findings = check(table, ranktable::parse_chip(options.chip), names);
  if (!findings.problems.empty())
    return report(context, with_problems(doing, to_text(findings.problems, findings.left_out)));
  const int exit = put_table(context, options.output, name, table_text(table));
  if (exit == kOk) print_notes(context, findings.notes);
  return exit;
}

int generate_cluster(const Context& context, const GenerateOptions& options) {
  auto table = read_hosts(options.hosts, options.version == "1.2" ? ranktable::Version::SuperPods
                                                                  : ranktable::Version::Servers);
  if (!table) return report(context, table.error());
  const std::string name = merged_file_name(*table);
  return finish(context, options, std::move(*table), name,
                fmt::format("making a rank table of the hosts file '{}'", options.hosts),
                {.servers = "hosts", .devices = "devices"});
}

int generate_server(const Context& context, const GenerateOptions& options) {
  if (options.version != "1.0") {
    return report(context, {ErrorCode::InvalidArgument,
                            "making a rank table of one server: version 1.2 describes whole "
                            "super-pods; list their hosts and give --hosts"});
  }
  const auto range = ranktable::parse_device_range(options.device_num, options.per_node,
                                                   ranktable::parse_chip(options.chip));
  if (!range) return report(context, range.error());
  if (ranktable::trimmed(options.device_num).ends_with(']')) {
    print_notes(context, {{"", fmt::format("'{}' is devices {} to {}: the end is not part of the "
                                           "range, whichever bracket closes it",
                                           options.device_num, range->first, range->end - 1)}});
  }
  std::vector<std::uint32_t> visible;
  if (options.visible_devices.empty()) {
    for (std::uint32_t device = 0; device < options.per_node; ++device) visible.push_back(device);
  } else {
    auto listed = ranktable::parse_visible_devices(options.visible_devices);
    if (!listed) return report(context, listed.error());
    visible = std::move(*listed);
  }
  const auto picked = pick_devices(*range, visible);
  if (!picked) return report(context, picked.error());
  std::string server_id = options.server_ip;
  if (server_id.empty()) {
    auto own = own_server_id();
    if (!own) return report(context, own.error());
    if (!own->note.empty()) print_notes(context, {{"", own->note}});
    server_id = std::move(own->id);
  }
  if (const std::string why = ranktable::server_id_problem(server_id); !why.empty()) {
    return report(context,
                  {ErrorCode::InvalidArgument,
                   fmt::format("server ip '{}': it {}", ranktable::shown(server_id), why)});
  }
  const auto time = parse_timeout(options.tool_timeout, "--tool-timeout");
  if (!time) return report(context, time.error());
  std::vector<std::uint32_t> logic, physical;
  for (const auto& device : *picked) {
    logic.push_back(device.logic);
    physical.push_back(device.physical);
  }
  const auto addresses = card_addresses(physical, {.conf = options.hccn_conf, .tool_time = *time});
  if (!addresses) return report(context, addresses.error());
  if (!addresses->note.empty()) print_notes(context, {{"", addresses->note}});
  RankTable table{
      .servers = {{.server_id = server_id, .host_nic_ip = std::string(ranktable::kReserved)}}};
  for (const std::uint32_t device : physical)
    table.servers.front().devices.push_back(
        {.device_id = device, .device_ip = addresses->by_device.at(device)});
  return finish(context, options, std::move(table), ranktable::server_file_name(logic, server_id),
                fmt::format("making the rank table of server '{}'", server_id), {});
}

}  // namespace

void add_ranktable_generate(CLI::App& group, Context& context, int& exit) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = group.add_subcommand(
      "generate", "Make the table of this server (as hccl_tools.py), or of a cluster (--hosts)");
  const std::vector<CLI::Option*> of_server = {
      command
          ->add_option(
              "--server-ip,--server_ip", options->server_ip,
              "the server's id, by custom its address (default: what the host name resolves to)")
          ->type_name("IP"),
      command
          ->add_option("--device-num,--device_num", options->device_num,
                       "half-open range of logic devices")
          ->type_name("RANGE")
          ->capture_default_str(),
      command
          ->add_option(
              "--visible-devices,--visible_devices", options->visible_devices,
              "physical device of each logic one, e.g. 4,5,6,7 (default: the same numbers)")
          ->type_name("LIST"),
      add_number_option(*command, "--device-num-per-node,--device_num_per_node", options->per_node,
                        "devices of a server", 1, ranktable::kDevicesPerServerMax)
          ->capture_default_str(),
      command
          ->add_option("--hccn-conf", options->hccn_conf,
                       "file of card addresses, for when hccn_tool is not on PATH or has no answer")
          ->type_name("FILE")
          ->capture_default_str(),
      command->add_option("--tool-timeout", options->tool_timeout, "for hccn_tool, a card")
          ->type_name("TIME")
          ->capture_default_str(),
  };
  CLI::Option* hosts = command
                           ->add_option("--hosts", options->hosts,
                                        "hosts.yaml: server_id, super_pod_id and devices of every "
                                        "server, in rank order; - for standard input")
                           ->type_name("FILE");
  for (CLI::Option* option : of_server) hosts->excludes(option);
  command->add_option("--version", options->version, "1.0, or 1.2 for super-pods")
      ->check(CLI::IsMember({"1.0", "1.2"}))
      ->capture_default_str();
  command
      ->add_option("--chip", options->chip,
                   "910, 910b or 910_93: hold the table to this chip's rules (default: what the "
                   "vendor's tool takes)")
      ->check(CLI::IsMember({"910", "910b", "910_93"}));
  add_table_output(*command, options->output);
  command->callback([&context, &exit, options] {
    exit = options->hosts.empty() ? generate_server(context, *options)
                                  : generate_cluster(context, *options);
  });
}

}  // namespace muster::client
