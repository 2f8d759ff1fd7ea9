#include "deploy/rollout/up.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <thread>

#include "common/digest/sha256.h"
#include "deploy/rollout/actions.h"
#include "deploy/rollout/controller_host.h"
#include "deploy/rollout/down.h"
#include "deploy/rollout/foreign.h"
#include "deploy/rollout/instance.h"
#include "deploy/rollout/left_over.h"
#include "deploy/rollout/loopback.h"
#include "deploy/rollout/moved.h"
#include "deploy/rollout/new_ca.h"
#include "deploy/rollout/old_versions.h"
#include "deploy/rollout/revoked.h"

namespace muster::rollout {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr auto kControllerStarts = 60s;
constexpr int kAskEveryMs = 200;
constexpr std::size_t kVersionsKept = 2;

class Up {
 public:
  Up(const UpRequest& request, std::vector<Surveyed> surveyed)
      : request_(request), all_(std::move(surveyed)), outcomes_(all_.size()) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      outcomes_[i].name = all_[i].wanted.name;
      outcomes_[i].host = all_[i].wanted.login.host;
    }
  }

  Result<std::vector<Outcome>> run() {
    if (auto may = may_begin(); !may) return fail(std::move(may.error()));
    Surveyed& first = all_.front();
    controller_ = std::make_unique<ControllerHost>(std::move(*first.host), first.check.places);
    auto locked = controller_->lock(opener(first.wanted.login, request_.crew));
    if (!locked) return fail(std::move(locked.error()));
    // The controller's host is alone at first, and leaves this machine time to compress for the
    // others.
    const std::jthread ahead([programs = to_send()] {
      for (const ProgramBytes* each : programs) (void)each->compressed();
    });
    auto done = locked_run();
    controller_->unlock();
    if (!done) return fail(std::move(done.error()));
    std::ranges::move(outcomes_left_, std::back_inserter(outcomes_));
    return std::move(outcomes_);
  }

 private:
  [[nodiscard]] const std::string& version() const { return request_.programs.version(); }

  [[nodiscard]] std::set<const ProgramBytes*> to_send() const {
    std::set<const ProgramBytes*> out;
    for (const Surveyed& one : all_) {
      if (one.stopped() || !one.check.gzip) continue;
      for (const std::string& name : one.steps.upload)
        out.insert(&request_.programs.bytes(one.check.arch, name));
    }
    return out;
  }

  // Marks what the judge of one host does not know. An error: nothing is to be changed.
  Result<void> may_begin() {
    const Surveyed& first = all_.front();
    if (first.error) return fail(Error(*first.error));
    if (!request_.new_ca) mark_foreign(all_);
    mark_loopback(all_);
    if (!first.stopped()) return {};
    return fail(ErrorCode::Internal,
                fmt::format("bringing up the controller on '{}': {}; nothing was changed",
                            first.wanted.login.host, first.why()));
  }

  // Another one may have deployed between the survey and the lock.
  void check_all_again() {
    const auto check = [&](Surveyed& one, Host& host, bool controller_runs) {
      if (auto checked = check_again(one, host, request_.file.controller, &request_.programs,
                                     version(), controller_runs);
          !checked)
        one.error = std::move(checked.error());
    };
    Surveyed& first = all_.front();
    controller_->with_host([&](Host& host) { check(first, host, false); });
    const bool controller_runs = first.check.running && !first.steps.start;
    for_each_host(all_.size(), [&](std::size_t i) {
      if (i > 0 && !all_[i].stopped()) check(all_[i], *all_[i].host, controller_runs);
    });
  }

  Result<void> locked_run() {
    check_all_again();
    if (auto may = may_begin(); !may) return may;
    if (request_.new_ca)
      for (Surveyed& one : all_) one.steps = with_new_ca(one.steps, one.wanted.role);
    auto found = controller_->read_manifest();
    if (!found) return fail(std::move(found.error()));
    if (*found) manifest_ = std::move(**found);
    const HostCheck& check = all_.front().check;
    if (const std::string why = why_not_deployed_by(
            request_.file.cluster, *found ? &manifest_ : nullptr, check.running, check.places);
        !why.empty())
      return fail(ErrorCode::Conflict, fmt::format("bringing up the controller on '{}': {}",
                                                   all_.front().wanted.login.host, why));
    manifest_.cluster = request_.file.cluster;
    if (auto up = controller(); !up) return up;
    auto cluster = controller_->cluster_id();
    if (!cluster) return fail(std::move(cluster.error()));
    cluster_id_ = std::move(*cluster);
    auto revoked = read_revoked(*controller_);
    if (!revoked) return fail(std::move(revoked.error()));
    revoked_ = std::move(*revoked);
    auto before = controller_->nodes();
    if (!before) return fail(std::move(before.error()));
    if (auto prepared = prepare_agents(*before); !prepared) return prepared;
    for_each_host(all_.size(), [&](std::size_t i) {
      if (i > 0 && !all_[i].stopped()) finish(i, agent(all_[i]));
    });
    wait_registered(*before);
    take_back_drains(*before);
    outcomes_left_ = left_over(manifest_, all_);
    if (request_.prune)
      outcomes_left_ = prune(outcomes_left_, *controller_, all_, manifest_, request_.crew);
    return write_end();
  }

  void record(Deployed& into, const Surveyed& one, bool whole) {
    into.login = one.wanted.login;
    into.places = one.check.places;
    into.config_sha = sha256_hex(config_text(one.wanted, one.check.places));
    into.whole = whole;
    std::erase(into.versions, version());
    into.versions.push_back(version());
  }

  Result<void> install(Host& host, const Surveyed& one) {
    const ProgramSet& set = *request_.programs.set_for(one.check.arch);
    const Places& places = one.check.places;
    for (const std::string& name : one.steps.upload) {
      const ProgramFacts& facts = set.at(name);
      say(one, fmt::format("sending {} ({} MiB)", name, (facts.bytes >> 20U) + 1));
      if (auto sent =
              install_program(host, places.bin(version()), name, facts,
                              request_.programs.bytes(one.check.arch, name), one.check.gzip);
          !sent)
        return sent;
    }
    // A daemon that runs is stopped only for one that takes its options: a mistake in `defaults`
    // would take all agents down.
    if (one.steps.start) {
      if (auto sound = check_config(host, one.wanted, places, version()); !sound) {
        sound.error().message +=
            one.check.running
                ? fmt::format("; the {} runs on as it was", to_string(one.wanted.role))
                : fmt::format("; the {} was not started", to_string(one.wanted.role));
        return sound;
      }
    }
    if (one.steps.set_current) {
      if (auto set_it = set_current(host, places, version()); !set_it) return set_it;
    }
    if (one.steps.write_config) return write_config(host, one.wanted, places);
    return {};
  }

  Result<void> controller() {
    Surveyed& one = all_.front();
    if (!one.steps.none()) {
      record(manifest_.controller, one, false);
      if (auto written = controller_->write_manifest(manifest_); !written) return written;
      auto done = controller_->with_host([&](Host& host) -> Result<void> {
        if (auto installed = install(host, one); !installed) return installed;
        if (!one.steps.start) return {};
        if (request_.new_ca) {
          say(one, "moving the CA aside");
          if (auto moved = move_ca_aside(host, one.check.places); !moved) return moved;
        }
        say(one, "starting the controller");
        return start_daemon(host, Role::Controller, one.check.places);
      });
      if (!done) return done;
    }
    for (const auto until = Clock::now() + kControllerStarts;;) {
      const auto nodes = controller_->nodes();
      if (nodes) break;
      if (Clock::now() > until)
        return fail(ErrorCode::Internal,
                    fmt::format("starting the controller on '{}': it does not answer: {}",
                                one.wanted.login.host, controller_->with_host([&](Host& host) {
                                  const std::string line =
                                      log_end(host, Role::Controller, one.check.places);
                                  return line.empty() ? nodes.error().message : line;
                                })));
      ::poll(nullptr, 0, kAskEveryMs);
    }
    controller_noted_ =
        manifest_.controller.whole && same_way(manifest_.controller.login, one.wanted.login);
    record(manifest_.controller, one, true);
    outcomes_.front().good = true;
    outcomes_.front().changed = !one.steps.none();
    if (outcomes_.front().changed) say(one, "the controller runs");
    return {};
  }

  // The check of a host that was surveyed before the controller ran says nothing about the way.
  Result<void> prepare_agents(const Nodes& before) {
    for_each_host(all_.size(), [&](std::size_t i) {
      Surveyed& one = all_[i];
      if (i == 0 || one.stopped()) return;
      if (one.check.way == WayState::Refused || one.check.enrol_way == WayState::Refused) {
        if (auto checked = check_again(one, *one.host, request_.file.controller, &request_.programs,
                                       version(), true);
            !checked)
          one.error = std::move(checked.error());
      }
      if (!request_.new_ca) mark_foreign(one, cluster_id_);
      if (!one.error && (request_.new_ca || one.check.credentials_cluster != cluster_id_))
        one.steps.issue = true;
      mark_revoked(one, revoked_);
      mark_moved(one, manifest_);
    });
    mark_renamed(all_, manifest_, before);
    bool any = false;
    for (std::size_t i = 1; i < all_.size(); ++i) {
      Surveyed& one = all_[i];
      if (one.stopped()) {
        outcomes_[i].text = one.why();
        say(one, one.why());
      } else if (!one.steps.none()) {
        record(manifest_.agents[one.wanted.name], one, false);
        any = true;
      }
    }
    if (!any) return {};
    return controller_->write_manifest(manifest_);
  }

  // The one step that gives a node its identity.
  Result<void> give_credentials(Surveyed& one) {
    auto credentials =
        controller_->issue_credentials(one.wanted.name, !enrol_address(one.wanted).empty());
    if (!credentials) return fail(std::move(credentials.error()));
    return write_credentials(*one.host, one.check.places,
                             std::string_view(credentials->c_str(), credentials->size()));
  }

  // Before the programs were there, nothing on the host could read credentials that somebody put
  // there, as by a join.
  Result<void> read_credentials_again(Surveyed& one) {
    if (!one.check.current.empty() || !one.check.credentials_there) return {};
    const Steps steps = one.steps;
    if (auto checked = check_again(one, *one.host, request_.file.controller, &request_.programs,
                                   version(), true);
        !checked)
      return checked;
    if (request_.new_ca || one.check.credentials_cluster != cluster_id_) one.steps.issue = true;
    if (const std::string why = why_foreign(one, cluster_id_); !request_.new_ca && !why.empty())
      return fail(ErrorCode::Conflict, why);
    mark_revoked(one, revoked_);
    one.steps = {.upload = steps.upload,
                 .set_current = steps.set_current,
                 .write_config = steps.write_config,
                 .issue = one.steps.issue,
                 .start = steps.start};
    return {};
  }

  Result<void> agent(Surveyed& one) {
    if (one.steps.none()) return {};
    if (auto installed = install(*one.host, one); !installed) return installed;
    if (auto read = read_credentials_again(one); !read) return read;
    if (one.steps.issue) {
      say(one, revoked_.contains(one.check.credentials_key)
                   ? "issuing credentials in place of those that were revoked"
                   : "issuing credentials");
      if (auto given = give_credentials(one); !given) return given;
    }
    if (!one.steps.start) return {};
    say(one, "starting the agent");
    return start_daemon(*one.host, Role::Agent, one.check.places);
  }

  void finish(std::size_t i, const Result<void>& done) {
    outcomes_[i].good = done.has_value();
    outcomes_[i].changed = done && !all_[i].steps.none();
    if (done) return;
    outcomes_[i].text = done.error().message;
    say(all_[i], done.error().message);
  }

  // A `down` or `up --prune` that was killed left its nodes drained.
  void take_back_drains(const Nodes& before) {
    std::vector<std::string> drained;
    for (const auto& [name, node] : before)
      if (node.drained_for == kDownDrains || node.drained_for == kPruneDrains)
        drained.push_back(name);
    if (auto done = controller_->undrain(drained); !done) say(all_.front(), done.error().message);
  }

  // An agent of before that was alive still counts as alive for a while. So the controller must
  // hear of its node once more, after its first answer: the agents of before have ended then. And
  // it must hear of this host's own agent: another one may have the name.
  bool is_registered(std::size_t i, const Nodes& before, const Nodes& first, const Nodes& now) {
    const auto at = now.find(all_[i].wanted.name);
    if (at == now.end() || !at->second.alive) return false;
    if (!all_[i].steps.start) return true;
    const auto old = before.find(at->first);
    const auto then = first.find(at->first);
    if (old != before.end() && old->second.alive && then != first.end() &&
        then->second.last_heard == at->second.last_heard)
      return false;
    const auto why = why_not_own(*all_[i].host, all_[i].check.places, at->second.instance);
    outcomes_[i].text = why.value_or("");
    return !why;
  }

  void wait_registered(const Nodes& before) {
    std::vector<std::size_t> waiting;
    for (std::size_t i = 1; i < all_.size(); ++i)
      if (outcomes_[i].good) waiting.push_back(i);
    std::string last = "the controller does not see the node";
    std::optional<Nodes> first;
    for (const auto until = Clock::now() + request_.register_time; !waiting.empty();) {
      const auto nodes = controller_->nodes();
      if (nodes) {
        if (!first) first = *nodes;
        std::vector<char> there(all_.size());
        for_each_host(waiting.size(), [&](std::size_t at) {
          there[waiting[at]] = is_registered(waiting[at], before, *first, *nodes) ? 1 : 0;
        });
        std::erase_if(waiting, [&](std::size_t i) {
          if (there[i] == 0) return false;
          outcomes_[i].text.clear();
          if (outcomes_[i].changed) say(all_[i], "registered");
          return true;
        });
      } else {
        last = nodes.error().message;
      }
      if (waiting.empty() || Clock::now() > until) break;
      ::poll(nullptr, 0, kAskEveryMs);
    }
    for (const std::size_t i : waiting) {
      const std::string line = log_end(*all_[i].host, Role::Agent, all_[i].check.places);
      outcomes_[i].good = false;
      const std::string seen = outcomes_[i].text.empty() ? last : outcomes_[i].text;
      outcomes_[i].text = fmt::format(
          "the agent {}, and {} after {} s{}", all_[i].steps.start ? "was started" : "runs", seen,
          request_.register_time.count(),
          line.empty() ? "" : fmt::format("; its log ends with: {}", line));
      say(all_[i], outcomes_[i].text);
    }
  }

  Result<void> write_end() {
    bool changed = !controller_noted_ || outcomes_.front().changed ||
                   std::ranges::any_of(outcomes_left_, &Outcome::changed);
    for (std::size_t i = 1; i < all_.size(); ++i) {
      const auto at = manifest_.agents.find(all_[i].wanted.name);
      if (!outcomes_[i].good) continue;
      const bool was_whole = at != manifest_.agents.end() && at->second.whole;
      if (was_whole && !outcomes_[i].changed && same_way(at->second.login, all_[i].wanted.login))
        continue;
      record(manifest_.agents[all_[i].wanted.name], all_[i], true);
      changed = true;
    }
    const bool whole = std::ranges::all_of(outcomes_, &Outcome::good);
    if (whole) changed |= remove_old_versions();
    if (!changed) return {};
    return controller_->write_manifest(manifest_);
  }

  // Leaves the current version and the one before it. False: there was nothing to remove.
  bool remove_old_versions() {
    std::atomic<bool> changed = false;
    for_each_host(all_.size(), [&](std::size_t i) {
      Deployed& one = i == 0 ? manifest_.controller : manifest_.agents.at(all_[i].wanted.name);
      if (one.versions.size() <= kVersionsKept) return;
      const std::size_t old = one.versions.size() - kVersionsKept;
      const std::span<const std::string> versions = std::span(one.versions).first(old);
      say(all_[i], fmt::format("removing old versions: {}", fmt::join(versions, ", ")));
      const auto remove = [&](Host& host) { return remove_versions(host, one.places, versions); };
      // What could not be removed stays in the manifest, for the next time.
      if (auto done = i == 0 ? controller_->with_host(remove) : remove(*all_[i].host); !done) {
        say(all_[i], done.error().message);
        return;
      }
      one.versions.erase(one.versions.begin(), one.versions.begin() + static_cast<long>(old));
      changed = true;
    });
    return changed;
  }

  void say(const Surveyed& one, const std::string& text) const {
    request_.crew.progress(one.wanted.name, text);
  }

  const UpRequest& request_;
  std::vector<Surveyed> all_;
  std::vector<Outcome> outcomes_;
  std::unique_ptr<ControllerHost> controller_;
  Manifest manifest_;
  std::string cluster_id_;
  RevokedKeys revoked_;
  bool controller_noted_ = false;       // the manifest has its login, and that it is whole
  std::vector<Outcome> outcomes_left_;  // of nodes that are no longer in the file
};

}  // namespace

Result<std::vector<Outcome>> run_up(const UpRequest& request, std::vector<Surveyed> surveyed) {
  return Up(request, std::move(surveyed)).run();
}

}  // namespace muster::rollout
