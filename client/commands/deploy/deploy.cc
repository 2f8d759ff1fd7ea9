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

std::string own_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

}  // namespace

void add_deploy_options(CLI::App& command, DeployOptions& options) {
  command.add_option("file", options.file, "hosts.yaml: which hosts, as docs/operations/deploy.md")
      ->type_name("FILE")
      ->required();
  command
      .add_option("--ssh-config", options.ssh_config,
                  "in place of ~/.ssh/config: aliases, users, keys and jumps of hosts")
      ->type_name("FILE");
  command.add_flag("--accept-new", options.accept_new,
                   "record the keys of hosts that no known_hosts file names, as host_keys: "
                   "accept_new does; a changed key stays an error");
}

void add_rollout_options(CLI::App& command, DeployOptions& options) {
  add_deploy_options(command, options);
  command
      .add_option("--bundle", options.bundles,
                  "a release, muster-VERSION-ARCH.tar.gz; may be given again, one for each "
                  "architecture (default: the programs next to this one)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command.add_flag("--install-key", options.install_key,
                   "put your public key into ~/.ssh/authorized_keys of each account that took a "
                   "password, so that the next run needs none; --install-key=PUBKEY names its file "
                   "(default: that of 'identity' with .pub, else of ~/.ssh/id_ed25519, id_ecdsa, "
                   "id_rsa)");
}

Result<std::unique_ptr<DeployCall>> begin_deploy(const DeployOptions& options) {
  auto text = io::read_regular_file(options.file, spec::kSpecBytesMax);
  if (!text) return fail(std::move(text.error()).in("reading the hosts file"));
  auto read = hosts::read_hosts(*text);
  if (!read.problems.empty()) {
    std::string problems = spec::format(read.problems, options.file);
    while (!problems.empty() && problems.back() == '\n') problems.pop_back();
    return fail(ErrorCode::InvalidArgument, std::move(problems));
  }
  if (options.accept_new) {
    read.file.controller.login.accept_new = true;
    for (hosts::Agent& agent : read.file.agents) agent.login.accept_new = true;
  }
  auto call = std::make_unique<DeployCall>(std::move(read.file));
  call->crew = {
      // Without its own path `ssh` asks nobody, and says so.
      .options = {.ssh_config = options.ssh_config, .askpass_program = own_program()},
      .prompts = &call->prompts,
      .progress = [lines = std::make_shared<ProgressLines>()](
                      const std::string& name, const std::string& step) { (*lines)(name, step); }};
  if (!options.install_key.empty()) {
    const bool usual = options.install_key == kUsualKey;
    call->key_install.emplace(usual ? std::string() : options.install_key);
    call->crew.key_install = &*call->key_install;
    if (!usual) {
      if (auto line = call->key_install->line_for({}); !line)
        return fail(std::move(line.error()).in("--install-key"));
    }
  }
  return call;
}

Result<SurveyedHosts> survey_hosts(const DeployCall& call, const DeployOptions& options) {
  std::error_code error;
  auto programs = options.bundles.empty()
                      ? rollout::Programs::from_directory(
                            std::filesystem::read_symlink("/proc/self/exe", error).parent_path())
                      : rollout::Programs::from_bundles(options.bundles);
  if (!programs) return fail(std::move(programs.error()));
  SurveyedHosts out{.programs = std::move(*programs), .hosts = {}};
  out.hosts = rollout::survey(rollout::wanted_of(call.file), call.file.controller, &out.programs,
                              out.programs.version(), call.crew);
  return out;
}

void print_rows(const Context& context, render::Table table) {
  std::string text = render::to_text(table, context.out, 0);
  const bool fits = !render::is_terminal(1) || [&] {
    const std::size_t width = render::terminal_width(1);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      if (render::display_width(std::string_view(text).substr(at, end - at)) > width) return false;
      at = end + 1;
    }
    return true;
  }();
  std::string sentences;
  if (!fits) {
    const std::string title = table.columns.back().title;
    table.columns.pop_back();
    for (auto& row : table.rows) {
      if (!row.back().empty())
        sentences += fmt::format("{}: {}{}\n", render::printable(row.front()),
                                 title.empty() ? "" : title + ": ",
                                 render::painted(row.back(), context.out));
      row.pop_back();
    }
    text = render::to_text(table, context.out, 0);
  }
  fmt::print("{}{}", text, sentences);
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
  print_rows(context, table);
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
      "exit codes: 0 all hosts are well  1 some are not, the table says why\n"
      "            10 no such file  11 a host's key or the login was refused\n"
      "            12 another one deploys, or jobs run\n"
      "            13 the controller's host is unreachable  64 hosts.yaml is wrong");
  add_deploy_plan(*command, context, exit);
  add_deploy_up(*command, context, exit);
  add_deploy_status(*command, context, exit);
  add_deploy_down(*command, context, exit);
  add_deploy_supervise(*command, context, exit);
}

}  // namespace muster::client
