// muster doctor: checks the way from this machine to the controller, the controller, and each node.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/render/health_checks.h"
#include "client/render/text.h"
#include "client/render/wrap.h"
#include "common/base/version.h"
#include "common/proto/proto_time.h"

namespace muster::client {
namespace {

using render::Check, render::Level;

constexpr std::size_t kLevelColumns = 6, kSubjectColumns = 16;

// What has failed before anything could be asked.
Check failed(const std::string& what, const Error& error) {
  return {.level = Level::Bad, .subject = "controller", .what = what, .text = error.message};
}

Check version_check(const v1::GetClusterStatusResponse& status) {
  const std::string own(kVersion);
  if (status.version() == own)
    return {.subject = "controller", .what = "version", .text = own + ", as this client"};
  return {.level = Level::Warn,
          .subject = "controller",
          .what = "version",
          .text = fmt::format("{}, this client is {}", status.version(), own),
          .advice = "use a client of the controller's release"};
}

void add(std::vector<Check>& all, std::vector<Check> more) {
  std::ranges::move(more, std::back_inserter(all));
}

std::vector<Check> check_all(const Context& context) {
  std::vector<Check> all;
  const auto session = context.connect();
  if (!session) {
    all.push_back(failed("endpoint", session.error()));
    return all;
  }
  const Now before = system_clock().now();
  const auto status = ask(*session, &Nodes::GetClusterStatus, v1::GetClusterStatusRequest());
  const Now after = system_clock().now();
  if (!status) {
    all.push_back(failed("reachable", status.error()));
    if (session->certificate_ends)
      all.push_back(render::client_certificate_check(*session->certificate_begins,
                                                     *session->certificate_ends, after.wall));
    return all;
  }
  const Duration took = after.boot - before.boot;
  all.push_back(
      {.subject = "controller",
       .what = "reachable",
       .text = fmt::format("{} answers in {}", session->where, render::duration_text(took))});
  all.push_back({.subject = "controller",
                 .what = "transport",
                 .text = session->certificate_ends
                             ? "TLS, and its certificate is the cluster's"
                             : "a unix socket, which only its own user may use"});
  if (session->certificate_ends)
    all.push_back(render::client_certificate_check(*session->certificate_begins,
                                                   *session->certificate_ends, after.wall));
  all.push_back(version_check(*status));
  if (status->has_now())
    all.push_back(render::client_clock_check(before.wall + took / 2 - to_wall(status->now())));
  const WallTime now = status->has_now() ? to_wall(status->now()) : after.wall;
  add(all, render::controller_checks(*status, now));
  const auto nodes = ask(*session, &Nodes::ListNodes, v1::ListNodesRequest());
  if (!nodes) {
    all.push_back(failed("nodes", nodes.error()));
    return all;
  }
  if (nodes->nodes().empty())
    all.push_back({.level = Level::Warn,
                   .subject = "nodes",
                   .what = "none",
                   .text = "no node has registered",
                   .advice = "start 'muster-agent --controller ADDRESS' on each machine"});
  if (auto outputs = render::shared_outputs_check(nodes->nodes()))
    all.push_back(*std::move(outputs));
  for (const v1::Node& node : nodes->nodes())
    add(all, render::node_checks(node, status->version(), now));
  return all;
}

// One check is one row; what to do is the next one.
void print_check(const Context& context, const Check& check, std::size_t width) {
  const std::string level = fmt::format("{:<{}}", render::to_string(check.level), kLevelColumns);
  const std::string subject = render::printable(check.subject);
  const std::size_t indent = kLevelColumns + kSubjectColumns;
  const std::string pad(std::max<std::size_t>(render::display_width(subject) + 1, kSubjectColumns) -
                            render::display_width(subject),
                        ' ');
  const std::string row = context.out.paint(render::tint_of(check.level), level) + subject + pad +
                          render::printable(fmt::format("{}: {}", check.what, check.text));
  fmt::print("{}\n", render::wrap(row, indent, width));
  if (!check.advice.empty())
    fmt::print("{}\n", render::wrap(std::string(indent, ' ') + render::printable(check.advice),
                                    indent, width));
}

nlohmann::ordered_json to_json(const Check& check) {
  return {{"level", render::to_string(check.level)},
          {"subject", check.subject},
          {"check", check.what},
          {"text", check.text},
          {"advice", check.advice}};
}

// As the documents of other verbs.
std::string document(const std::vector<Check>& checks, render::Format format) {
  std::string lines;
  nlohmann::ordered_json items = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    nlohmann::ordered_json one = to_json(check);
    if (format == render::Format::Jsonl) lines += render::json_text(one, format);
    items.push_back(std::move(one));
  }
  if (format == render::Format::Jsonl) return lines;
  const nlohmann::ordered_json all = {
      {"apiVersion", "muster/v1"}, {"kind", "CheckList"}, {"items", std::move(items)}};
  return format == render::Format::Yaml ? render::yaml_text(all) : render::json_text(all, format);
}

Result<int> doctor(const Context& context, const std::string& output) {
  bool bad = false;
  const auto shown = show_answer<std::vector<Check>>(
      output,
      [&]() -> Result<std::vector<Check>> {
        std::vector<Check> checks = check_all(context);
        bad = std::ranges::any_of(checks,
                                  [](const Check& check) { return check.level == Level::Bad; });
        return checks;
      },
      {.names = {}, .document = document, .people = [&](const std::vector<Check>& checks, bool) {
         for (const Check& check : checks) print_check(context, check, render::row_width(1));
       }});
  if (!shown) return shown;
  return bad ? 1 : kOk;
}

}  // namespace

void add_doctor(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Check the controller and every node, and say what to do about what is not well");
  const auto output = std::make_shared<std::string>("table");
  add_output_option(*command, *output, render::Names::No);
  command->footer(
      "It checks, from this machine: is there a controller, does it answer, how long are the "
      "certificates good, do the clocks and the versions agree; and for each node: is it "
      "connected, its clock, the disk of its agent's state directory, the directory of outputs "
      "and which nodes share it, control groups, missing programs.\n"
      "Each line is ok, warn or bad. Exit 1 if one is bad.");
  on_chosen(*command, context, exit,
            [output](const Context& chosen) { return doctor(chosen, *output); });
}

}  // namespace muster::client
