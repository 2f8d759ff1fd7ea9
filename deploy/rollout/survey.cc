#include "deploy/rollout/survey.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <string_view>
#include <thread>

#include "common/base/time.h"
#include "deploy/hosts/values.h"

namespace muster::rollout {
namespace {

std::int64_t wall_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             system_clock().now().wall.time_since_epoch())
      .count();
}

Result<void> run_check(Surveyed& one, Host& host, const hosts::Controller& controller,
                       const std::string& version) {
  CheckQuery query{.wanted = one.wanted, .version = version};
  if (one.wanted.role == Role::Agent) {
    const hosts::HostPort address = hosts::split_address(controller.address);
    query.way_host = address.host;
    query.way_port = address.port;
  } else {
    const hosts::HostPort listen = hosts::split_address(controller.listen);
    query.listen_host = listen.host;
    query.listen_port = listen.port;
  }
  const hosts::HostPort enrol = hosts::split_address(enrol_address(one.wanted));
  query.enrol_host = enrol.host;
  query.enrol_port = enrol.port;
  const std::int64_t before = wall_seconds();
  auto text = host.need_long("checking '" + host.name() + "'", check_script(query));
  const std::int64_t after = wall_seconds();
  if (!text) return fail(std::move(text.error()));
  auto check = parse_check(*text);
  if (!check) return fail(std::move(check.error()));
  one.check = std::move(*check);
  // The script reads its clock somewhere between the two.
  one.clock_ahead = std::chrono::seconds(one.check.time - (before + after) / 2);
  one.clock_slack = std::chrono::seconds((after - before) / 2 + 1);
  return {};
}

void judge_one(Surveyed& one, const Programs* programs, const std::string& version,
               bool controller_runs, bool with_agent = false) {
  if (programs == nullptr) return;
  const ProgramSet* set = programs->set_for(one.check.arch);
  one.findings = judge({.wanted = one.wanted,
                        .check = one.check,
                        .programs = set,
                        .architectures = programs->architectures(),
                        .clock_ahead = one.clock_ahead,
                        .clock_slack = one.clock_slack,
                        .controller_runs = controller_runs,
                        .with_agent = with_agent,
                        .same_machine_as = one.same_machine_as});
  if (set != nullptr) one.steps = steps_for(one.wanted, one.check, *set, version);
}

}  // namespace

bool Surveyed::stopped() const {
  return error.has_value() || std::ranges::any_of(findings, &Finding::stops);
}

std::string Surveyed::why() const {
  if (error) return error->message;
  const auto at = std::ranges::find_if(findings, &Finding::stops);
  return at == findings.end() ? "" : at->text;
}

void for_each_host(std::size_t count, const std::function<void(std::size_t)>& act) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(count, kThreadsMost); ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < count; at = next++) act(at);
    });
  }
}

std::vector<Surveyed> survey(const std::vector<Wanted>& wanted, const hosts::Controller& controller,
                             const Programs* programs, const std::string& version,
                             const Crew& crew) {
  std::vector<Surveyed> out(wanted.size());
  for_each_host(wanted.size(), [&](std::size_t i) {
    Surveyed& one = out[i];
    one.wanted = wanted[i];
    auto host = Host::open(one.wanted.login, crew.options, *crew.prompts);
    if (!host) {
      one.error = std::move(host.error());
      return;
    }
    const ssh::Transport& transport = host->transport();
    one.transport = transport.kind;
    if (transport.kind != ssh::TransportKind::Libssh2)
      crew.progress(one.wanted.name, "reached by the program ssh: " + transport.why);
    for (const std::string& note : transport.notes) crew.progress(one.wanted.name, note);
    one.host.emplace(std::move(*host));
    if (crew.key_install != nullptr && one.host->transport().by_password) {
      auto installed = crew.key_install->install(*one.host, one.wanted.login);
      if (!installed) {
        one.error = std::move(installed.error());
        return;
      }
      crew.progress(one.wanted.name, *installed);
    }
    if (auto checked = run_check(one, *one.host, controller, version); !checked)
      one.error = std::move(checked.error());
  });
  // One that is to be started again may listen elsewhere by now.
  bool controller_runs = false;
  const auto with_agent = [&](const Surveyed& controller_host) {
    return std::ranges::any_of(out, [&](const Surveyed& one) {
      return one.wanted.role == Role::Agent && !one.error && one.check.uid == 0 &&
             one.check.machine == controller_host.check.machine;
    });
  };
  std::map<std::string_view, Surveyed*> machines;
  for (Surveyed& one : out) {
    if (one.error || one.wanted.role != Role::Agent || one.check.machine.empty()) continue;
    const auto [at, fresh] = machines.try_emplace(one.check.machine, &one);
    if (fresh) continue;
    one.same_machine_as = at->second->wanted.name;
    at->second->same_machine_as = one.wanted.name;
  }
  for (Surveyed& one : out) {
    if (one.error) continue;
    judge_one(one, programs, version, controller_runs, with_agent(one));
    if (one.wanted.role == Role::Controller)
      controller_runs = one.check.running && !one.steps.start;
  }
  return out;
}

Result<void> check_again(Surveyed& one, Host& host, const hosts::Controller& controller,
                         const Programs* programs, const std::string& version,
                         bool controller_runs) {
  if (auto checked = run_check(one, host, controller, version); !checked) return checked;
  judge_one(one, programs, version, controller_runs);
  return {};
}

}  // namespace muster::rollout
