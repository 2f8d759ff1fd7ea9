// Makes the rank table of a launch: it turns a placement into the bytes that every node of the
// attempt gets. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/engine/model/rows.h"
#include "common/engine/ranktable/table_text.h"

namespace muster::engine {

// Whether ranks find each other by a table: engine mindformers, unless launch.launcher is msrun,
// launch.per is node, or the job has a single rank.
bool has_rank_table(const LaunchRequest& request);
// Whether muster makes that table. Then HCCL must accept the placement of this (complete) spec as a
// table.
bool makes_rank_table(const v1::JobSpec& spec);
// "hccl_2s_16p.json". Empty: this launch has no table, and no table of the user's own
// (resources.rank_table), which every engine allows.
std::string rank_table_name(const LaunchRequest& request);
// The path of the file on a node.
std::string rank_table_path(const LaunchRequest& request, std::size_t node, std::string_view name);

// Makes the table (or takes the request's), and adds it as a file for every node that has ranks in
// the plan. Problems: a card without an address where one is needed, a table that HCCL would
// refuse, or a path that HCCL would not open.
void plan_rank_table(Launching& launching);

// Adds resources.rank_table if the engine's row has not put it into the plan: the file on every
// node, for ${rank_table}. For ranks that msrun would start it also sets RANK_TABLE_FILE, as `msrun
// --rank_table_file` exports it
// (mindspore/python/mindspore/parallel/cluster/process_entity/_api.py).
void plan_own_table(Launching& launching);

}  // namespace muster::engine
