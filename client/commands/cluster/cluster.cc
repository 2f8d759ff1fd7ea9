// muster cluster status: the controller, its disk, its agents and its jobs at a glance.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/render/health_checks.h"
#include "client/render/node_text.h"
#include "client/render/text.h"
#include "client/render/wrap.h"
#include "common/proto/proto_time.h"

namespace muster::client {
namespace {

struct Cluster {
  v1::GetClusterStatusResponse status;
  v1::ListNodesResponse nodes;
};

Result<Cluster> fetch(const Context& context) {
  const auto session = context.connect();
  if (!session) return fail(Error(session.error()));
  auto status = ask(*session, &Nodes::GetClusterStatus, v1::GetClusterStatusRequest());
  if (!status) return fail(std::move(status.error()));
  auto nodes = ask(*session, &Nodes::ListNodes, v1::ListNodesRequest());
  if (!nodes) return fail(std::move(nodes.error()));
  return Cluster{.status = std::move(*status), .nodes = std::move(*nodes)};
}

// "2 ready, 1 draining".
std::string counts_text(const std::map<std::string, std::size_t>& counts) {
  std::string text;
  for (const auto& [what, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  return text.empty() ? "none" : text;
}

std::string agents_text(const v1::ListNodesResponse& nodes) {
  std::map<std::string, std::size_t> counts;
  for (const v1::Node& node : nodes.nodes()) ++counts[render::node_state_text(node)];
  return counts_text(counts);
}

std::string jobs_text(const v1::GetClusterStatusResponse& status) {
  std::string text;
  for (const v1::PhaseCount& one : status.phases())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.jobs(),
                        render::phase_text(one.phase()));
  return text.empty() ? "none" : text;
}

// What is not well at the controller, and certificates that end soon.
std::vector<render::Check> troubles(const Cluster& cluster, WallTime now) {
  std::vector<render::Check> all = render::controller_checks(cluster.status, now);
  if (auto outputs = render::shared_outputs_check(cluster.nodes.nodes()))
    all.push_back(*std::move(outputs));
  for (const v1::Node& node : cluster.nodes.nodes()) {
    for (render::Check& check : render::node_checks(node, cluster.status.version(), now)) {
      if (check.what == "certificate" || check.what == "disk" || check.what == "outputs")
        all.push_back(std::move(check));
    }
  }
  std::erase_if(all, [](const render::Check& check) { return check.level == render::Level::Ok; });
  return all;
}

void print_cluster(const Context& context, const Cluster& cluster) {
  const v1::GetClusterStatusResponse& status = cluster.status;
  const std::size_t width = render::row_width(1);
  const auto line = [&](std::string_view name, const std::string& value) {
    fmt::print("{}", render::field_line(context.out, name, render::printable(value), width));
  };
  line("controller", fmt::format("{}, pid {}", status.version(), status.pid()));
  line("cluster", status.cluster_id());
  for (const std::string& address : status.addresses()) line("address", address);
  if (status.has_enrol_address())
    line("enrolment", status.enrol_address().empty() ? "off" : status.enrol_address());
  line("uptime", status.has_uptime() ? render::duration_text(to_duration(status.uptime())) : "-");
  line("state", status.state_dir());
  // Not how many there are: rows of archived jobs are gone, and an accepted loss skips numbers.
  line("journal", fmt::format("newest row {}, {}", status.journal_index(),
                              render::bytes_text(status.journal_bytes())));
  line("disk", status.disk_bytes() == 0
                   ? "-"
                   : fmt::format("{} of {} free", render::bytes_text(status.disk_bytes_free()),
                                 render::bytes_text(status.disk_bytes())));
  const auto outputs = render::shared_outputs_check(cluster.nodes.nodes());
  line("outputs", outputs ? outputs->text : status.outputs_root());
  line("agents", agents_text(cluster.nodes));
  line("jobs", jobs_text(status));
  const WallTime now = status.has_now() ? to_wall(status.now()) : system_clock().now().wall;
  for (const render::Check& check : troubles(cluster, now))
    fmt::print(
        "{}",
        render::field_line(
            context.out, render::to_string(check.level),
            context.out.paint(render::tint_of(check.level), render::printable(check.subject)) +
                render::printable(fmt::format(": {}: {}{}{}", check.what, check.text,
                                              check.advice.empty() ? "" : "; ", check.advice)),
            width));
}

Result<int> status(const Context& context, const std::string& output) {
  return show_answer<Cluster>(
      output, [&] { return fetch(context); },
      {.names = {},
       .document =
           [](const Cluster& cluster, render::Format format) {
             return render::document(cluster.status, "ClusterStatus", format);
           },
       .people = [&](const Cluster& cluster, bool) { print_cluster(context, cluster); }});
}

}  // namespace

void add_cluster(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand("cluster", "The cluster as a whole: status");
  command->require_subcommand(1);
  const auto output = std::make_shared<std::string>("table");
  CLI::App* one = command->add_subcommand(
      "status", "Show the controller, its disk, its agents by state, and its jobs by phase");
  add_output_option(*one, *output, render::Names::No);
  one->footer(
      "Below that: what is not well at the controller, full disks of nodes, outputs that nodes do "
      "not share or cannot write, and certificates that end within 7 days.\n"
      "'muster doctor' checks more, also from this machine, and says what to do.");
  on_chosen(*one, context, exit,
            [output](const Context& chosen) { return status(chosen, *output); });
}

}  // namespace muster::client
