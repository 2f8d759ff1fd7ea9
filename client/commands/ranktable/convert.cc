// muster ranktable convert: converts a group list (jobstart_hccl.json) to a table of version 1.0,
// with the numbers that the cloud's launcher gives.
#include <fmt/format.h>

#include <filesystem>

#include "client/commands/ranktable/ranktable.h"
#include "common/engine/ranktable/group_list.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/read_table.h"
#include "common/engine/ranktable/table_text.h"
#include "common/engine/ranktable/words.h"

namespace muster::client {
namespace {

int convert(const Context& context, std::string file, const std::string& output) {
  // In the cloud, RANK_TABLE_FILE names the directory.
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    file = (std::filesystem::path(file) / "jobstart_hccl.json").string();
  const std::string doing = fmt::format("converting rank table '{}'", file);
  const auto text = read_input(file, "rank table", ranktable::kTextBytesMax);
  if (!text) return report(context, text.error());
  const auto document = ranktable::read_json(*text);
  if (!document) return report(context, with_problems(doing, document.error().message));
  const auto head = ranktable::read_head(*document);
  if (!head) return report(context, with_problems(doing, head.error().message));
  if (!head->completed) {
    return report(
        context,
        {ErrorCode::Unsatisfiable,
         fmt::format(
             "{}: it is not completed yet: its status is '{}'; try again when it is 'completed'",
             doing, ranktable::shown(head->status))});
  }
  if (head->form == ranktable::Form::Table)
    return report(
        context, with_problems(
                     doing, fmt::format("it has version '{}' and is no group list: use it as it is",
                                        ranktable::shown(head->version))));
  ranktable::Findings found;
  const auto list = read_group_list(*document, found);
  if (!found.problems.empty())
    return report(context, with_problems(doing, to_text(found.problems, found.left_out)));
  const auto table = as_launcher_reads(list);
  if (!table) return report(context, with_problems(doing, table.error().message));
  const auto rules = check(*table, std::nullopt);
  if (!rules.problems.empty())
    return report(context,
                  with_problems(doing + ", as converted", to_text(rules.problems, rules.left_out)));
  const int exit = put_table(context, output, merged_file_name(*table),
                             table_text(*table, ranktable::Layout::Launcher));
  if (exit == kOk) print_notes(context, rules.notes);
  return exit;
}

}  // namespace

void add_ranktable_convert(CLI::App& group, Context& context, int& exit) {
  struct Options {
    std::string file;
    std::string output;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = group.add_subcommand(
      "convert",
      "Convert a group list (jobstart_hccl.json) to version 1.0, in the cloud launcher's order");
  command
      ->add_option("file", options->file,
                   "jobstart_hccl.json, the directory that holds it, or - for standard input")
      ->required();
  add_table_output(*command, options->output);
  command->callback(
      [&context, &exit, options] { exit = convert(context, options->file, options->output); });
}

}  // namespace muster::client
