// Engine mindformers: MindFormers on MindSpore. Pure.
//
// launch.cc has its arguments and variables, training.cc its modes, grammar.cc its log lines,
// checkpoints.cc its files, observe.cc its profile and dump, reshard.cc another size,
// config_checks.cc its configuration.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "common/engine/model/grammar_rows.h"
#include "common/engine/model/layout.h"
#include "common/engine/model/rows.h"

namespace muster::engine {

void launch_mindformers(Launching& launching);
void check_mindformers(const v1::JobSpec& spec, Problems& problems);
ArgumentEdits intercepted_mindformers(const LaunchRequest& request);
void put_mindformers_script(const LaunchRequest& request, RankPlan& rank);
LaunchSigns mindformers_signs();
bool mindformers_sets_save_dir(const v1::JobSpec& spec);
bool mindformers_loads_start(const v1::JobSpec& spec);
bool mindformers_has_scheduler(const v1::JobSpec& spec);
bool mindformers_by_table(const v1::JobSpec& spec);
std::span<const std::string_view> mindformers_identity();
std::span<const std::string_view> mindformers_cloud();
// The last --run_mode in the command. Empty: there is none, or it is a template.
std::string mindformers_run_mode(const v1::JobSpec& spec);
bool mindformers_trains_surely(const v1::JobSpec& spec);
std::string mindformers_rank_file(const v1::JobSpec& spec);
std::span<const LineHead> mindformers_heads();
std::unique_ptr<CheckpointLayout> mindformers_layout(const LayoutOptions& options);
void put_mindformers_profile(Launching& launching);
void check_mindformers_profile(const v1::JobSpec& spec, Problems& problems);
void put_mindformers_dump(Launching& launching);
void check_mindformers_dump(const v1::JobSpec& spec, Problems& problems);
bool mindformers_is_cut_by_rank(const ResumeAsk& ask);
Result<ResumeJobs> mindformers_cut_again(const ResumeAsk& ask);
Result<ResumeJobs> mindformers_make_whole(const ResumeAsk& ask, const std::string& file);
Result<bool> mindformers_is_whole(const v1::JobSpec& spec, const SavedCheckpoint& checkpoint);

}  // namespace muster::engine
