// Wiring only. Start: state directory, journal, fold, services, doors (listen, endpoint file). Stop
// (SIGTERM, SIGINT): enrolment, log receivers, calls, shell, work loop, journal. Each waits for the
// one before. kill -9 at any moment works just as well.
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <future>
#include <random>

#include "common/base/random_hex.h"
#include "common/base/wall_clock_offset.h"
#include "common/io/descriptor_limit.h"
#include "common/io/file.h"
#include "common/io/own_dir.h"
#include "common/log/log.h"
#include "common/pki/openssl_process.h"
#include "common/rpc/grpc_log.h"
#include "controller/access/access.h"
#include "controller/access/authorities.h"
#include "controller/access/refusals.h"
#include "controller/access/revocations.h"
#include "controller/access_setup.h"
#include "controller/api/authority_changes.h"
#include "controller/api/authority_list.h"
#include "controller/api/certificate_service.h"
#include "controller/api/event_text.h"
#include "controller/api/job_service.h"
#include "controller/api/node_service.h"
#include "controller/api/secret_service.h"
#include "controller/api/store_service.h"
#include "controller/authority_setup.h"
#include "controller/config.h"
#include "controller/core/hello.h"
#include "controller/core/journal_end/lost_end.h"
#include "controller/doors.h"
#include "controller/dump.h"
#include "controller/journal/sqlite_journal.h"
#include "controller/links/hub.h"
#include "controller/links/log_receive.h"
#include "controller/room_watch.h"
#include "controller/secrets/job_secrets.h"
#include "controller/secrets/vault.h"

namespace muster::controller {
namespace {

constexpr int kUsage = 64, kInternal = 70;
constexpr std::size_t kIdBytes = 8;
// An agent of this machine needs this much free space where a run's outputs are, which is usually
// here.
constexpr std::uint64_t kStartBytes = 256ull << 20;
// 256 logs and 256 nodes that join; over TCP two connections for each node and one for each client,
// for some 100 nodes.
constexpr std::size_t kDescriptorsWanted = 1'024;

int give_up(const Error& error) {
  log::error(error.message);
  log::flush();
  return kInternal;
}

// Nothing may be released any more, so nothing is cleaned up either: the next start continues from
// what is durable.
[[noreturn]] void die(const Error& error) {
  give_up(error);
  std::_Exit(kInternal);
}

// The mark is durable. Without it, the controller would give orders after a restart until the agent
// that knows better connects, and its own rows would soon hide the problem.
void mark_behind(Shell& shell, journal::SqliteJournal& journal, const Error& error,
                 std::uint64_t generation) {
  log::error(core::pause_text(error.message));
  shell.with_journal("behind", [&journal, why = error.message, generation](journal::Journal&) {
    if (auto marked = journal.mark_behind(why, generation); !marked)
      log::error(marked.error().message + "; the next start will not know it");
  });
}

int run(const Config& config) {
  auto own_dir = io::make_dirs(config.state_dir, 0700);
  if (own_dir) own_dir = io::check_own_dir(config.state_dir);
  if (!own_dir) {
    std::fprintf(stderr, "muster-controller: %s\n", own_dir.error().message.c_str());
    return kInternal;
  }
  // The directory may have existed before. If this fails, the next open reports it.
  ::chmod(config.state_dir.c_str(), 0700);
  const bool own_file = config.log_file.empty();
  if (auto ready =
          log::set_up({.daemon = "muster-controller",
                       .level = config.log_level,
                       .file = own_file ? config.state_dir / "controller.log" : config.log_file,
                       .stderr_to_file = !own_file});
      !ready) {
    std::fprintf(stderr, "muster-controller: %s\n", ready.error().message.c_str());
    return kInternal;
  }
  if (const std::string missing = io::descriptors_missing(kDescriptorsWanted); !missing.empty())
    log::warn(missing);

  auto policy = first_policy(config.access_file);
  if (!policy) {
    const int code = give_up(policy.error());
    return policy.error().code == ErrorCode::InvalidArgument ? kUsage : code;
  }
  const journal::SqliteOptions kept{.dir = config.state_dir / "journal",
                                    .accept_loss = config.accept_loss,
                                    .archive_keep = config.archive_keep};
  auto journal = journal::SqliteJournal::open(kept);
  if (!journal) return give_up(journal.error());
  // Before the journal is loaded: on a full disk, the start's own row needs the room that old logs
  // give.
  const logs::RoomKept room_kept{
      .wanted = std::max(kept.low_space_bytes, kStartBytes) + kept.ballast_bytes,
      .least = kept.low_space_bytes + kept.ballast_bytes};
  auto store = logs::LogStore::open(config.state_dir / "logs", config.log_quota, {}, room_kept);
  if (!store) return give_up(store.error());

  const auto vault = Vault::open(
      config.state_dir / "secrets",
      config.secrets_key.empty() ? config.state_dir / "secrets.key" : config.secrets_key);
  if (!vault) return give_up(vault.error());

  auto new_cluster = random_hex(kIdBytes, "naming a new cluster");
  if (!new_cluster) return give_up(new_cluster.error());
  auto lineage = random_hex(kIdBytes, "naming the journal's lineage");
  if (!lineage) return give_up(lineage.error());
  std::random_device random;

  std::promise<int> asked_to_stop;
  async::Loop signals_loop("signals");
  async::Signals signals(signals_loop, {SIGTERM, SIGINT},
                         [&, stopping = false](int number) mutable {
                           if (!std::exchange(stopping, true)) asked_to_stop.set_value(number);
                         });

  async::Loop work("work");
  async::Loop secrets_loop("secrets");
  Denials denials(config.state_dir / "denials.log", system_clock(),
                  [&work](async::Task task) { work.post("denials", std::move(task)); });
  Access access(own_user(), *std::move(policy), &denials);
  Revocations revocations;
  AccessReload reload(signals_loop, config.access_file, access, [&] { revocations.ask_again(); });
  const Clock& clock = system_clock();
  const std::string cluster_out = (config.state_dir / "outputs").string();
  const std::string outputs_root =
      config.outputs_root.empty() ? cluster_out : config.outputs_root.string();
  Shell::Options options;
  options.version = version();
  options.new_cluster = ClusterId(*std::move(new_cluster));
  options.lost = [&] { return (*journal)->lost(); };
  options.lineage_id = *std::move(lineage);
  options.paused = [&] {
    return (*journal)->behind().empty() ? std::string() : core::pause_text((*journal)->behind());
  };
  options.describe = describe;
  options.on_fatal = [](const Error& error) { die(error); };
  options.limits.silent_after = config.heartbeat_interval * 16 / 5;
  options.limits.hear_first =
      std::min<Duration>(options.limits.silent_after, std::chrono::seconds(5));
  options.limits.hear_after_loss = std::chrono::seconds(6);
  options.limits.archive_after = config.archive_after;
  options.limits.port_first = config.port_first;
  options.limits.port_last = config.port_last;
  options.limits.outputs_root = outputs_root;
  options.limits.cluster_out = cluster_out;
  Shell shell(**journal, clock, std::move(options));
  const auto stop_loops = [&] {
    shell.stop();
    work.stop();
    secrets_loop.stop();
    signals_loop.stop();
  };
  auto started = shell.start();
  for (const std::string& notice : (*journal)->notices()) log::warn(notice);
  if (!started) {
    stop_loops();
    return give_up(started.error());
  }
  if (!started->paused.empty()) {
    log::error(started->paused);
    started->unreadable.clear();  // nothing is done about them now
  }
  for (const auto& [job, why] : started->unreadable)
    log::error("a job is unreadable and is being stopped, the others go on",
               {{"job", job.str()}, {"why", why}});

  Refusals refusals(clock);
  const rpc::FailedHandshakes failed_handshakes(
      [&](std::string_view why) { refusals.note(failed_handshake_text(why)); });
  shell.strand().assert_idle();
  Authorities authorities(
      open_authorities(config, started->cluster, shell.started_ledger(), clock));
  revocations.publish(core::Revoked(shell.started_ledger().access));
  const auto doors = Doors::make({.config = config,
                                  .shell = shell,
                                  .authorities = authorities,
                                  .clock = clock,
                                  .access = access,
                                  .refusals = refusals,
                                  .revocations = revocations});
  if (!doors) {
    stop_loops();
    return give_up(doors.error());
  }

  LogsCollected collected(shell, **store, work);
  JobSecrets secrets(*vault, secrets_loop);
  const auto on_refused = [&refusals](const Error& error) { refusals.note(error.message); };
  const std::unique_ptr<links::LogReceiver> receiver = links::LogReceiver::start(
      **store, {.known = [&](const JobId& job, AttemptNo) { return collected.known(job); },
                .is_of = [&](const logs::LogKey& key, const NodeName& node,
                             const InstanceId& from) { return collected.is_of(key, node, from); },
                .is_others = [&](const logs::LogKey& key,
                                 const NodeName& node) { return collected.is_others(key, node); },
                .on_complete = [&](const JobId& job, AttemptNo attempt,
                                   RankNo rank) { collected.on_complete(job, attempt, rank); },
                .enter = [&](grpc::ServerContextBase& call) { return revocations.enter(call); },
                .on_refused = on_refused,
                .on_trouble = [](const std::string& line) { log::warn(line); }});
  Hub hub(shell, **store, work, collected, clock,
          {.version = std::string(version()),
           .heartbeat_interval = config.heartbeat_interval,
           .cluster_out = cluster_out,
           .on_behind =
               [&](const Error& error, std::uint64_t generation) {
                 mark_behind(shell, **journal, error, generation);
               },
           .on_refused = on_refused,
           .revocations = &revocations,
           .outputs_root = outputs_root,
           .secrets = &secrets,
           .secrets_loop = &secrets_loop},
          [&](grpc::CallbackServerContext* context) { return receiver->push_logs(context); });
  Edge edge{.shell = shell,
            .logs = **store,
            .work = work,
            .access = access,
            .cluster_out = cluster_out,
            .version = std::string(version()),
            .shortage = [&] { return (*journal)->shortage(); },
            .process = {.started_at = clock.now().boot,
                        .state_dir = config.state_dir,
                        .endpoint_file = config.endpoint_file},
            .revocations = &revocations,
            .inputs_root = config.inputs_root.empty() ? (config.state_dir / "inputs").string()
                                                      : config.inputs_root.string(),
            .outputs_root = outputs_root == cluster_out ? std::string() : outputs_root};
  if ((*doors)->has_tcp())
    edge.process.certificate_ends = [&authorities] {
      return authorities.now()->own.front().not_after;
    };
  JobService jobs(edge, (std::uint64_t{random()} << 32) | random());
  NodeService nodes(edge, kProtocolMin, kProtocolMax);
  hub.set_start(*started);
  shell.set_listener(&hub);
  shell.strand().assert_idle();
  const std::string known_signing = shell.started_ledger().access.authorities.signing;
  secrets.start(shell.started_ledger(), clock.now().wall);
  collected.start(shell.started_ledger());  // from here on the strand has work
  shell.open();
  record_authority(shell, authorities, known_signing, access.own_user(), clock);
  RoomWatch room(work, {.shortage = edge.shortage,
                        .give_room =
                            [&] {
                              (*store)->make_room();
                              shell.with_journal("ballast", [&](journal::Journal&) {
                                (*journal)->restore_ballast();
                              });
                            },
                        .ballast_is_there = [&] { return (*journal)->ballast_is_there(); }});

  AuthorityChanges changes(shell, authorities, work, clock, pki_dir(config),
                           [&](const AuthoritiesNow& now) {
                             (*doors)->show(now);
                             revocations.trust(now.trusted);
                             hub.set_authorities(trusted_by_agents(now));
                           });
  if (authorities) hub.set_authorities(trusted_by_agents(*authorities.now()));
  CertificateService certificates(shell, authorities, clock, changes, revocations,
                                  access.own_user());
  SecretService user_secrets(edge, *vault, secrets_loop);
  StoreService stores(
      edge, *vault, secrets_loop,
      {.begin =
           [&](const NodeName& node, const std::string& user, v1::StoreCheck check,
               std::function<bool(const std::string&)> ticket, StoreChecks::Done done) {
             hub.check_store(node, user, std::move(check), std::move(ticket), std::move(done));
           },
       .drop = [&](const std::string& ticket) { hub.drop_check(ticket); }});
  const auto opened = (*doors)->open({&hub, &jobs, &nodes, &certificates, &user_secrets, &stores},
                                     started->cluster);
  if (opened) {
    log::info("ready", {{"cluster", started->cluster.str()},
                        {"epoch", started->epoch.value},
                        {"jobs", started->jobs},
                        {"index", started->index.value},
                        {"version", version()}});
    const int number = asked_to_stop.get_future().get();
    log::info("stopping", {{"signal", number}});
  }
  room.stop();
  (*doors)->stop_enrolment();
  receiver->stop();
  (*doors)->shut_down();
  jobs.stop();
  stop_loops();
  if (!opened) return give_up(opened.error());
  log::info("stopped");
  return 0;
}

}  // namespace
}  // namespace muster::controller

int main(int argc, char** argv) {
  ::umask(077);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);  // until AccessReload takes it
  muster::pki::prepare_openssl();
  muster::rpc::silence_grpc();
  muster::io::raise_descriptor_limit();
  // A core would have users' secrets. 1, not 0: then no helper of the kernel's gets one, either
  // (core(5), "Piping core dumps to a program"). Where the hard limit is 0 already, it stays.
  rlimit core{};
  if (::getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max != 0) {
    core.rlim_cur = core.rlim_max = 1;
    ::setrlimit(RLIMIT_CORE, &core);
  }
  const muster::controller::CommandLine line = muster::controller::parse_command_line(argc, argv);
  if (line.exit_code >= 0) {
    std::fputs(line.text.c_str(), line.exit_code == 0 ? stdout : stderr);
    return line.exit_code;
  }
  if (const auto offset = muster::wall_clock_offset(); !offset) {
    std::fprintf(stderr, "muster-controller: %s\n", offset.error().message.c_str());
    return muster::controller::kUsage;
  }
  if (line.config.dump.empty()) return muster::controller::run(line.config);
  const auto text = muster::controller::dump_journal(line.config.dump);
  if (!text) {
    std::fprintf(stderr, "muster-controller: %s\n", text.error().message.c_str());
    return muster::controller::kInternal;
  }
  std::fputs(text->c_str(), stdout);
  return 0;
}
