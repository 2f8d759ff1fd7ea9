// Host::Impl is the inside of Host. Host::open() creates it and Host destroys it; it runs on the
// agent's loop. Private to agent/run.
//
// Its functions are in host.cc (watching, marks, leases), host_actions.cc (what reconcile()
// requests), host_start.cc and host_container.cc.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/run/host.h"
#include "agent/run/host_entry.h"
#include "common/base/mutex.h"
#include "common/base/once_per_cause.h"
#include "common/base/single_flight.h"
#include "common/process/spawn.h"
#include "common/rundir/records.h"

namespace muster::agent {

inline constexpr const char* kGonePrefix = ".gone-";

// These two are in cgroup_base.cc. own_base() records in `base`, which must exist, who owns it.
void own_base(const std::filesystem::path& base, const rundir::AgentLayout& layout);
// Returns the bases next to this one whose agents have ended and whose state directories no longer
// exist (removed, emptied, on a replaced disk). Nobody else will end what runs in their groups. If
// the directory still exists, its agent may only be away and may come back to its runs. Bases of
// this node's name come first.
std::vector<std::filesystem::path> earlier_bases(const std::filesystem::path& base,
                                                 const rundir::AgentLayout& layout,
                                                 const InstanceId& instance);

struct Host::Impl {
  Impl(async::Loop& owner, HostOptions given, HostCallbacks hooks)
      : loop(owner),
        options(std::move(given)),
        callbacks(std::move(hooks)),
        heard(options.clock->now().boot),
        starts(owner, options.starts),
        disposal("agent-disposal"),
        scan_timer(owner, "scan runs"),
        frozen_timer(owner, "check for frozen workers"),
        report_timer(owner, "facts that wait") {}
  ~Impl() { disposal.stop(); }

  void act(const StartRun& start);
  void act(const RefuseRun& refuse);
  void act(const SignalStop& stop);
  void act(const SweepRun& sweep);
  void act(const MarkSwept& mark);
  void act(const ForgetRun& forget);

  // host_start.cc
  [[nodiscard]] Entry* find_starting(const RunKey& run) const;
  void step_begun(const RunKey& run, StartStep step);
  StepResult step_spawn(const RunKey& run, StartWork& work);
  void start_ended(const RunKey& run, StepResult result);
  void end_start(Entry& entry);
  Result<void> spawn(const RunKey& run, Entry& entry, const rundir::v1::Launch& launch,
                     const io::UniqueFd& secrets);
  void refuse(const RunKey& run, Entry& entry, const Refusal& refusal);
  // host_container.cc
  static void go_by_container(process::SpawnRequest& request,
                              const rundir::v1::ContainerLaunch& container);
  void refuse_without_container(const RunKey& run, Entry& entry);
  void mark_swept(const RunKey& run, Entry& entry, v1::SweptWhy why);
  void swept(const RunKey& run, v1::SweptWhy why, bool done);
  [[nodiscard]] std::string process_tag_of(const RunKey& run, const Entry& entry) const;
  [[nodiscard]] std::string group_of(const RunKey& run, const Entry& entry) const;

  static std::string name_of(const RunKey& run) {
    return run.first.str() + "." + std::to_string(run.second.value);
  }
  [[nodiscard]] Entry* find(const RunKey& run) const;
  Entry& add(const RunKey& run);
  void listen(const RunKey& run, Entry& entry);
  void scan();
  void scan_soon();
  void unread(const RunKey& run, Entry& entry, const Error& error);
  [[nodiscard]] bool lost_with_its_disk(const Entry& entry) const;
  void refresh(const RunKey& run, Entry& entry, bool tell);
  static void overlay(Entry& entry);
  void judge_obedience(const RunKey& run);
  void check_frozen_soon();
  void check_frozen();
  void kill_worker(const RunKey& run, Entry& entry, std::string_view why);
  void child_ended(const RunKey& run);
  void leave(std::unique_ptr<Entry> entry);
  void report(const RunKey& run, Entry& entry);
  void report_by(std::optional<BootTime> due);
  void report_due();
  void tell(const RunKey& run, Entry& entry);
  [[nodiscard]] rundir::v1::Mark new_mark() const;
  void note_auxiliary_ends(const RunKey& run, Entry& entry);
  bool remember(const RunKey& run, Entry& entry, const std::vector<rundir::v1::Mark>& marks);
  bool renew_lease(Entry& entry, bool at_start);
  void remove_leftovers();
  void remove_stale_groups();
  void sweep_earlier_instances();
  void remove_group(const RunKey& run, const Entry& entry);
  void dispose(const std::string& name);
  void trouble(const std::string& text) const;
  [[nodiscard]] static bool removed(const std::filesystem::path& path);

  async::Loop& loop;
  HostOptions options;
  HostCallbacks callbacks;
  BootTime heard MUSTER_GUARDED_BY(loop);  // see renew_leases
  std::map<RunKey, RunSeen> all_seen;
  std::map<RunKey, std::unique_ptr<Entry>> entries MUSTER_GUARDED_BY(loop);
  // forgotten, their workers are not reaped yet
  std::vector<std::unique_ptr<Entry>> leaving MUSTER_GUARDED_BY(loop);
  StartRunner starts;
  const std::shared_ptr<ImageTurns> image_turns = std::make_shared<ImageTurns>();
  async::Loop disposal;  // removing gigabytes of logs takes long
  async::Timer scan_timer, frozen_timer, report_timer;
  // their timers are armed
  SingleFlight scanning MUSTER_GUARDED_BY(loop), checking_frozen MUSTER_GUARDED_BY(loop);
  std::optional<BootTime> report_at MUSTER_GUARDED_BY(loop);  // report_timer is armed
  OncePerCause no_wake_fifo MUSTER_GUARDED_BY(loop);
  bool closed MUSTER_GUARDED_BY(loop) = false;
};

}  // namespace muster::agent
