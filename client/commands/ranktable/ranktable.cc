// muster ranktable: makes rank tables for HCCL without any daemon, like hccl_tools.py and
// merge_hccl.py, and shows those of jobs.
#include "client/commands/ranktable/ranktable.h"

#include "client/commands/call/commands.h"

namespace muster::client {

void add_ranktable(CLI::App& app, Context& context, int& exit) {
  CLI::App* group = app.add_subcommand("ranktable",
                                       "Make, merge, convert and check rank tables (hccl_*.json) "
                                       "without a controller; show those of jobs");
  group->require_subcommand(1);
  add_ranktable_generate(*group, context, exit);
  add_ranktable_merge(*group, context, exit);
  add_ranktable_convert(*group, context, exit);
  add_ranktable_check(*group, context, exit);
  add_ranktable_show(*group, context, exit);
}

}  // namespace muster::client
