// Host::Impl is the inside of Host. Host::open() creates it and Host destroys it; it runs on the
// agent's loop. Private to agent/run.
//
// Its functions are in host.cc (watching, marks, leases), host_actions.cc (what reconcile()
// requests), host_container.cc and frozen_worker.cc.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/run/host.h"
#include "agent/run/host_entry.h"
#include "common/base/lease.h"
#include "common/process/spawn.h"
#include "common/rundir/records.h"

namespace muster::agent {

inline constexpr Duration kOrphanGraceDefault = std::chrono::minutes(30);

// for a worker whose launch record cannot be read
inline constexpr Duration kStopGraceUnknown = std::chrono::minutes(1);

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
        start_threads(owner),
        disposal("agent-disposal"),
        scan_timer(owner, "scan runs"),
        frozen_timer(owner, "check for frozen workers") {}
  ~Impl() { disposal.stop(); }

  void act(const StartRun& start);
  void act(const RefuseRun& refuse);
  void act(const SignalStop& stop);
  void act(const SweepRun& sweep);
  void act(const MarkSwept& mark);
  void act(const ForgetRun& forget);

  void prepared(const RunKey& run, StartPrepared outcome);
  Result<void> spawn(const RunKey& run, Entry& entry, const rundir::v1::Launch& launch);
  void refuse(const RunKey& run, Entry& entry, v1::StartFailure why, const std::string& text,
              const v1::CheckpointReading& checkpoint = {});
  // host_container.cc
  static void go_by_container(process::SpawnRequest& request,
                              const rundir::v1::ContainerLaunch& container);
  void refuse_without_container(const RunKey& run, Entry& entry);
  bool begin_removal(const RunKey& run, Entry& entry);
  void removed_container(const RunKey& run, const std::string& trouble_met);
  void mark_swept(const RunKey& run, Entry& entry, v1::SweptWhy why);
  void begin_sweep(const RunKey& run, Entry& entry);
  void step_sweep(const RunKey& run);
  void tell_what_blocks(const RunKey& run, Entry& entry) const;
  void wait_for_group(const RunKey& run, Entry& entry, process::Cgroup group);
  void group_changed(const RunKey& run);
  void check_group(const RunKey& run);
  [[nodiscard]] std::string process_tag_of(const RunKey& run, const Entry& entry) const;
  [[nodiscard]] std::string group_of(const RunKey& run, const Entry& entry) const;

  [[nodiscard]] Entry* find(const RunKey& run) const;
  Entry& add(const RunKey& run);
  void listen(const RunKey& run, Entry& entry);
  void scan();
  void scan_soon();
  void unread(const RunKey& run, Entry& entry, const Error& error);
  [[nodiscard]] bool lost_with_its_disk(const Entry& entry) const;
  void refresh(const RunKey& run, Entry& entry, bool tell);
  static void overlay(Entry& entry);
  [[nodiscard]] std::optional<BootTime> must_obey_by(const Entry& entry) const;
  void expect_obedience(const RunKey& run, Entry& entry);
  void judge_obedience(const RunKey& run);
  void check_frozen_soon();
  void check_frozen();
  void kill_worker(const RunKey& run, Entry& entry, std::string_view why);
  void worker_ended(const RunKey& run);
  void child_ended(const RunKey& run);
  static void reap(Entry& entry);
  void leave(std::unique_ptr<Entry> entry);
  [[nodiscard]] rundir::v1::Mark new_mark() const;
  void note_auxiliary_ends(const RunKey& run, Entry& entry);
  bool remember(const RunKey& run, Entry& entry, const std::vector<rundir::v1::Mark>& marks);
  void adopt_lease(Entry& entry);
  bool renew_lease(Entry& entry, bool at_start);
  void remove_leftovers();
  void remove_stale_groups();
  void sweep_earlier_instances();
  void remove_group(const RunKey& run, const Entry& entry);
  void dispose(const std::filesystem::path& path);
  void trouble(const std::string& text) const;
  [[nodiscard]] static bool removed(const std::filesystem::path& path);

  async::Loop& loop;
  HostOptions options;
  HostCallbacks callbacks;
  BootTime heard;  // see renew_leases
  std::map<RunKey, RunSeen> all_seen;
  std::map<RunKey, std::unique_ptr<Entry>> entries;
  std::vector<std::unique_ptr<Entry>> leaving;  // forgotten, their workers are not reaped yet
  StartThreads start_threads;
  const std::shared_ptr<ImageTurns> image_turns = std::make_shared<ImageTurns>();
  async::Loop disposal;  // removing gigabytes of logs takes long
  async::Timer scan_timer;
  async::Timer frozen_timer;
  bool scanning = false;  // scan_timer is armed
  bool checking_frozen = false;
  bool scan_logged = false;  // the reason for scans, logged once
  bool closed = false;
};

}  // namespace muster::agent
