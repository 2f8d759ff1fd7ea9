// ControllerHost is the host of the controller during one `muster deploy`: its session, the lock of
// the deployment, the manifest, and what the controller answers there over its unix socket. Any
// thread; calls wait for each other, because a session runs one script at a time.
//
// The lock is a directory, STATE_DIR/deploy/lock, with a file `owner`. Its owner touches it every
// 15 s while it works, over a session of its own, so that no long step delays it. A lock that
// nobody has touched for a minute is taken over, and so is that of a process of this machine that
// is gone. One whose lock was taken over touches and removes nothing of it, and writes no manifest.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "deploy/rollout/host.h"
#include "deploy/rollout/manifest.h"
#include "deploy/rollout/survey.h"
#include "deploy/rollout/wanted.h"

namespace muster::rollout {

struct NodeSeen {
  bool alive = false;  // connected, not silent, not dead
  std::string version;
  std::string last_heard;         // a time, as the controller writes it
  std::vector<std::string> jobs;  // that have devices of it
  std::string instance;           // of the agent's state directory
  std::string drained_for;        // why nothing new is placed on it, "-": unsaid; empty: it is not
};

using Nodes = std::map<std::string, NodeSeen>;  // by name

// Opens a session to the same host, each time that it is called, on any thread.
using Opener = std::function<Result<Host>()>;
// `crew.prompts` must outlive it.
Opener opener(const hosts::Login& login, const Crew& crew);

class ControllerHost {
 public:
  ControllerHost(Host host, Places places);
  ~ControllerHost();  // stops touching; the lock stays unless unlock() was called
  ControllerHost(const ControllerHost&) = delete;
  ControllerHost& operator=(const ControllerHost&) = delete;

  // Calls `act` with the host, while nobody else uses it.
  template <class Act>
  auto with_host(Act act) {
    const MutexLock lock(mutex_);
    return act(host_);
  }

  // The lock is touched over a session that `open` opens.
  // Conflict: another one deploys; the text says who, and since when.
  Result<void> lock(Opener open);
  void unlock();

  // Nothing: nothing is deployed.
  Result<std::optional<Manifest>> read_manifest();
  Result<void> write_manifest(const Manifest& manifest);
  Result<void> remove_manifest();

  // The text of a new credentials file of the node. This is the one place where a node gets its
  // identity. `renews`: its agent renews them, so they live as long as renewed ones.
  Result<ssh::Secret> issue_credentials(const std::string& node, bool renews);
  Result<Nodes> nodes();
  // Names of the jobs that have not ended.
  Result<std::vector<std::string>> live_jobs();
  // Cancels the job, and waits until it has ended, 90 s at most.
  Result<void> cancel(const std::string& job);
  // Nothing new is placed on these nodes, until undrain(). A node that was removed meanwhile does
  // not count.
  Result<void> drain(const std::vector<std::string>& nodes, std::string_view why);
  Result<void> undrain(const std::vector<std::string>& nodes);
  Result<std::string> cluster_id();
  // Runs `muster WORDS` on the host against this controller. Returns what it prints.
  Result<std::string> muster(std::string_view doing, std::string_view words);
  // The same for a list that may be long. It goes through the command `filter`, and comes
  // compressed, where the host has gzip.
  Result<std::string> muster_list(std::string_view doing, std::string_view words,
                                  std::string_view filter = "cat");
  [[nodiscard]] const Places& places() const { return places_; }

 private:
  // `me`, and the lock's path, for a script.
  [[nodiscard]] std::string lock_variables() const;
  // A script's first lines: an error unless the lock is still this one's.
  [[nodiscard]] std::string still_mine() const;
  [[nodiscard]] std::string manifest_file() const;
  // Runs `muster WORDS` for each of the nodes, whose name is "$node" in the words.
  Result<void> each_node(std::string_view doing, const std::vector<std::string>& nodes,
                         std::string_view words);
  // The command `muster WORDS`.
  [[nodiscard]] std::string asking(std::string_view words) const;
  void touch_until_stopped(const Opener& open, std::optional<Host> session);
  void stop_touching();

  const Places places_;
  const std::string mark_;  // what the lock's file `owner` has, while the lock is this one's
  Mutex mutex_;
  Host host_ MUSTER_GUARDED_BY(mutex_);
  Mutex stop_mutex_;
  CondVar stopped_;
  bool stop_ MUSTER_GUARDED_BY(stop_mutex_) = false;
  bool locked_ = false;
  std::thread toucher_;
};

}  // namespace muster::rollout
