// StartProgress shows how far the start of a run has come: its step, since when, and what that step
// does. Each start has one (StartWork, start/start_work.h). The start's thread writes it, and any
// thread may read it. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/mutex.h"
#include "common/base/time.h"

namespace muster::agent {

// In the order in which they run (start/start_step.h has the table).
enum class StartStep : std::uint8_t {
  Check,        // devices, user, room, files, ports
  Checkpoints,  // that there is no checkpoint which the controller does not know
  Directories,  // the order's make_dirs
  Inputs,       // what the job's inputs have in stores
  Code,         // the copy of the code with its patches
  Files,        // rank tables, changed copies, the script of the setup
  Fetch,        // files of other nodes
  Links,        // the directory of links to the checkpoint to resume from
  Container,    // the image, and the command of its tool
  Record,       // the programs, and the launch record in memory
  Secrets,      // the values of the job's secrets, from the controller
  Spawn,        // lease and launch record on disk, the group, the worker
};

class StartProgress {
 public:
  struct Now {
    std::optional<StartStep> step;            // none: no step has begun
    BootTime since{};                         // the step's bound counts from here
    Duration quick_before{};                  // time of the quick steps before
    std::string sentence = "its first step";  // "pulling image 'x'": what it does at the moment
    std::string text;                         // "runtime.image: 3 of 7 layers"; empty: unknown
  };
  [[nodiscard]] Now now() const;

  void begin(StartStep step, std::string sentence, Duration quick_before = {});
  // The step goes on to another part of its work. With next_part() its bound counts anew.
  void describe(std::string sentence);
  void next_part(std::string sentence);
  // Where readers get the text of this step from. It is called on their threads.
  void set_text(std::function<std::string()> text);

 private:
  mutable Mutex mutex_;
  Now now_ MUSTER_GUARDED_BY(mutex_);
  std::function<std::string()> text_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::agent
