// muster deploy plan | up | status | down: a cluster on hosts that SSH reaches.
#include "client/commands/deploy/deploy.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "client/commands/call/commands.h"
#include "client/render/style.h"
#include "client/render/table.h"
#include "common/io/file.h"
#include "common/spec/parse.h"

namespace muster::client {
namespace {

// One line a step: "gpu-1: starting the agent". Lines of several hosts do not mix.
class ProgressLines {
 public:
  void operator()(const std::string& name, const std::string& text) {
    const MutexLock lock(mutex_);
    fmt::print(stderr, "{}: {}\n", render::printable(name), render::printable(text));
  }

 private:
  Mutex mutex_;
};

}  // namespace

void add_deploy_options(CLI::App& command, DeployOptions& options) {
  command.add_option("file", options.file, "hosts.yaml: which hosts, as docs/operations/deploy.md")
      ->type_name("FILE")
      ->required();
  command
      .add_option("--ssh-config", options.ssh_config,
                  "in place of ~/.ssh/config: aliases, users, keys and jumps of hosts")
      ->type_name("FILE");
}

void add_bundle_option(CLI::App& command, DeployOptions& options) {
  command
      .add_option("--bundle", options.bundles,
                  "a release, muster-VERSION-ARCH.tar.gz; may be given again, one for each "
                  "architecture (default: the programs next to this one)")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

Result<hosts::HostsFile> read_hosts_file(const std::string& file) {
  auto text = io::read_regular_file(file, spec::kSpecBytesMax);
  if (!text) return fail(std::move(text.error()).in("reading the hosts file"));
  auto read = hosts::read_hosts(*text);
  if (!read.problems.empty()) {
    std::string problems = spec::format(read.problems, file);
    while (!problems.empty() && problems.back() == '\n') problems.pop_back();
    return fail(ErrorCode::InvalidArgument, std::move(problems));
  }
  return std::move(read.file);
}

Result<rollout::Programs> programs_of_options(const DeployOptions& options) {
  if (!options.bundles.empty()) return rollout::Programs::from_bundles(options.bundles);
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return rollout::Programs::from_directory(self.parent_path());
}

rollout::Crew make_crew(const DeployOptions& options, ssh::Prompts& prompts) {
  ssh::Options ssh;
  ssh.ssh_config = options.ssh_config;
  return {
      .options = std::move(ssh),
      .prompts = &prompts,
      .progress = [lines = std::make_shared<ProgressLines>()](
                      const std::string& name, const std::string& text) { (*lines)(name, text); }};
}

int print_outcomes(const Context& context, const std::vector<rollout::Outcome>& outcomes) {
  render::Table table{.columns = {{"NAME"}, {"HOST"}, {"RESULT"}, {""}}, .rows = {}};
  bool good = true;
  for (const rollout::Outcome& one : outcomes) {
    good &= one.good;
    const std::string word = !one.good ? "failed" : one.changed ? "done" : "unchanged";
    table.rows.push_back(
        {one.name, one.host,
         context.out.paint(one.good ? render::Tint::Good : render::Tint::Bad, word), one.text});
  }
  fmt::print("{}", render::to_text(table, context.out, 0));
  return good ? kOk : kJobFailed;
}

void add_deploy(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand(
      "deploy", "Bring up a cluster on hosts that SSH reaches, and take it down again");
  command->require_subcommand(1);
  command->footer(
      "One file names the hosts; 'up' makes a running cluster of them, and may be run again at any "
      "time: it does what is left.\n"
      "example:      muster deploy plan hosts.yaml    what would be done, and what is in the way\n"
      "              muster deploy up hosts.yaml\n"
      "exit codes: 0 all hosts are well  1 some are not, the table says why  11 a host's key or "
      "the login was refused\n"
      "            12 another one deploys, or jobs run  13 the controller's host is unreachable  "
      "64 hosts.yaml is wrong");
  add_deploy_plan(*command, context, exit);
  add_deploy_up(*command, context, exit);
  add_deploy_status(*command, context, exit);
  add_deploy_down(*command, context, exit);
  add_deploy_supervise(*command, context, exit);
}

}  // namespace muster::client
