// muster ranktable merge: merges tables of single servers into one, in the order of the arguments
// (like merge_hccl.py).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "client/commands/ranktable/ranktable.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/read_table.h"
#include "common/engine/ranktable/table_text.h"
#include "common/engine/ranktable/words.h"

namespace muster::client {
namespace {

using ranktable::RankTable;

// A shell's wildcard gives 10.0.0.10 before 10.0.0.9, and then the wrong server has rank 0. Returns
// a note about this, or an empty text.
std::string order_note(const RankTable& table) {
  std::vector<std::string> ids;
  std::vector<ranktable::Address> addresses;
  for (const auto& server : table.servers) {
    const auto address = ranktable::parse_address(server.server_id);
    if (!address) return {};
    ids.push_back(server.server_id);
    addresses.push_back(*address);
  }
  const auto below = [](const ranktable::Address& a, const ranktable::Address& b) {
    return a.bytes < b.bytes;
  };
  if (!std::ranges::is_sorted(ids) || std::ranges::is_sorted(addresses, below)) return {};
  return fmt::format(
      "the servers are in alphabetical order, as a wildcard gives them: '{}' has rank 0 although "
      "'{}' is the lowest address; if that is not meant, list the files in rank order",
      ids.front(),
      ids[static_cast<std::size_t>(std::ranges::min_element(addresses, below) -
                                   addresses.begin())]);
}

Error in_file(const std::string& file, Error error) {
  Error with = with_problems(fmt::format("merging rank table '{}'", file), error.message);
  with.code = error.code;
  return with;
}

int merge_files(const Context& context, const std::vector<std::string>& files,
                const std::string& output) {
  std::vector<RankTable> tables;
  std::map<std::string, std::string> owners;
  for (const std::string& file : files) {
    const auto text = read_input(file, "rank table", ranktable::kTextBytesMax);
    if (!text) return report(context, text.error());
    auto table = ranktable::load_table(*text);
    if (!table) return report(context, in_file(file, table.error()));
    for (const auto& server : table->servers) {
      const auto [owner, added] = owners.try_emplace(server.server_id, file);
      if (!added) {
        return report(
            context,
            in_file(file, {ErrorCode::InvalidArgument,
                           fmt::format("server '{}' is in '{}' already; was the same file named "
                                       "twice, or both made on one server?",
                                       ranktable::shown(server.server_id), owner->second)}));
      }
    }
    tables.push_back(std::move(*table));
  }
  const auto merged = ranktable::merge(tables);
  if (!merged) return report(context, merged.error());
  const auto findings = check(*merged, std::nullopt);
  if (!findings.problems.empty())
    return report(context, with_problems("merging rank tables",
                                         to_text(findings.problems, findings.left_out)));
  const int exit = put_table(context, output, merged_file_name(*merged), table_text(*merged));
  if (exit != kOk) return exit;
  print_notes(context, findings.notes);
  if (const std::string note = order_note(*merged); !note.empty())
    print_notes(context, {{"", note}});
  return kOk;
}

}  // namespace

void add_ranktable_merge(CLI::App& group, Context& context, int& exit) {
  struct Options {
    std::vector<std::string> files;
    std::string output;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = group.add_subcommand(
      "merge", "Merge tables into one; ranks follow the order of the files (as merge_hccl.py)");
  command
      ->add_option("file", options->files,
                   "hccl_*.json of single servers, or already merged; the first has rank 0")
      ->required();
  add_table_output(*command, options->output);
  command->callback(
      [&context, &exit, options] { exit = merge_files(context, options->files, options->output); });
}

}  // namespace muster::client
