// The rank table of a launch: from a placement to the bytes that every node of the attempt gets.
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/engine/ranktable/table_text.h"
#include "common/engine/rows.h"

namespace muster::engine {

// Whether ranks find each other by a table: engine mindformers, unless launched as msrun does or
// with a single rank.
bool has_rank_table(const LaunchRequest& request);
// Whether muster makes that table: HCCL then has to take the placement of this (complete) spec as
// one.
bool makes_rank_table(const v1::JobSpec& spec);
// "hccl_2s_16p.json"; empty: this launch has none, nor a table of the user's own
// (resources.rank_table), which every engine's may have.
std::string rank_table_name(const LaunchRequest& request);
// Where a node has it.
std::string rank_table_path(const LaunchRequest& request, std::size_t node, std::string_view name);

// Makes the table (or takes the request's), and a file of it for every node that has ranks in the
// plan. Problems: a card without an address where one is needed, what HCCL would refuse, a path
// that it would not open.
void plan_rank_table(Launching& launching);

// resources.rank_table, where the engine's row has not put it into the plan: the file on every
// node, for ${rank_table}; for what msrun would start also RANK_TABLE_FILE, as `msrun
// --rank_table_file` exports it
// (mindspore/python/mindspore/parallel/cluster/process_entity/_api.py).
void plan_own_table(Launching& launching);

}  // namespace muster::engine
