// StartWork is one start of a run: what its steps get, and what they leave to later steps. Host
// fills it; StartRunner owns it and runs its steps (start_runner.h). Only one thread uses it at a
// time: first the thread of the start, then the loop. Its StartProgress may be read on any thread.
//
// - A step may be repeated: by the next attempt, on what this one left. It has no undo.
// - A step that changes what lies outside the run directory leaves it complete or absent.
// - Errors become a Refusal; its `step` is set by the runner.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "agent/container/container_image.h"
#include "agent/container/container_tool.h"
#include "agent/launch/abandoned.h"
#include "agent/launch/launch_record.h"
#include "agent/launch/secrets_by_name.h"
#include "agent/launch/start_progress.h"
#include "agent/start/start_checks.h"
#include "agent/start/start_step.h"
#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "common/rundir/layout.h"
#include "muster/rundir/v1/rundir.pb.h"

namespace muster::agent {

// Fetches the n-th entry of the order's `fetches`. Files that are made belong to the user, if one
// is given. Blocking.
using FetchFn = std::function<Result<void>(const v1::NodeLaunch&, int, const UserEntry*)>;

// The secrets of the order's attempt. Blocking.
using SecretsFn = std::function<Result<SecretsByName>(const v1::NodeLaunch&)>;

struct StartWork {
  v1::NodeLaunch order;  // no step changes it: the loop reads it, too
  NodeFacts node;
  rundir::RunLayout layout;
  LaunchContext context;  // run_steps() sets its layout, steps set its user and the image's part
  ContainerOptions container{};
  ImageFetch image{};
  FetchFn fetch{};
  SecretsFn fetch_secrets{};
  // Reads facts of the node that may have changed since the order came. Thread-safe.
  std::function<void(NodeFacts&)> fill_facts{};
  std::function<StepResult(StartWork&)> spawn{};  // step Spawn
  // Set by the runner: nobody wants the result any more, so a long step ends early. Any result will
  // do.
  std::shared_ptr<Abandoned> abandoned = std::make_shared<Abandoned>();
  std::shared_ptr<StartProgress> progress = std::make_shared<StartProgress>();

  std::vector<v1::InputState> inputs{};            // from step Inputs
  rundir::v1::ContainerLaunch container_launch{};  // from step Container
  rundir::v1::Launch launch{};                     // from step Record
  io::UniqueFd secrets{};                          // from step Secrets: SecretValues, in memory

  // The secrets of the order's attempt, asked for once. Not by the loop.
  Result<const SecretsByName*> secrets_given();
  std::optional<SecretsByName> given{};  // of secrets_given()

  // Whose rights access the job's files. nullptr: those of the agent's own user.
  [[nodiscard]] const UserEntry* owner() const {
    return context.set_user ? &context.user : nullptr;
  }
};

StepResult step_check(StartWork& work);        // step_check.cc
StepResult step_checkpoints(StartWork& work);  // step_checkpoint.cc
StepResult step_links(StartWork& work);
StepResult step_directories(StartWork& work);  // step_files.cc
StepResult step_inputs(StartWork& work);       // step_inputs.cc
StepResult step_code(StartWork& work);
StepResult step_files(StartWork& work);
StepResult step_fetch(StartWork& work);      // step_fetch.cc
StepResult step_container(StartWork& work);  // step_launch.cc
StepResult step_record(StartWork& work);
StepResult step_secrets(StartWork& work);  // step_fetch.cc

}  // namespace muster::agent
