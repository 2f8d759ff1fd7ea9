// muster ranktable check: checks whether HCCL would accept a table. Exit 0 accepted, 2 not
// completed yet, 64 rejected.
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "client/commands/ranktable/ranktable.h"
#include "common/engine/ranktable/json_tree.h"
#include "common/engine/ranktable/judge.h"
#include "common/engine/ranktable/words.h"

namespace muster::client {
namespace {

using ranktable::Finding;
using ranktable::Judgement;
using ranktable::Verdict;

int exit_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Acceptable: return kOk;
    case Verdict::NotCompleted: return kUnsatisfiable;
    case Verdict::Rejected: return kUsage;
  }
  return kInternal;
}

// Judges the path of the file as its readers would.
void judge_path(const std::string& file, Judgement& judgement) {
  if (file == "-") return;
  std::error_code error;
  const std::string path = std::filesystem::absolute(file, error).lexically_normal().string();
  if (const std::string problem = ranktable::path_problem(path); !problem.empty()) {
    judgement.findings.problem("", fmt::format("path '{}': {}", path, problem));
    judgement.verdict = Verdict::Rejected;
  }
  struct stat status{};
  if (::lstat(file.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
    judgement.findings.note(
        "", "it is a symbolic link, which torch_npu does not follow to a rank table");
}

std::string summary(const Judgement& judgement) {
  switch (judgement.verdict) {
    case Verdict::Acceptable:
      return fmt::format("acceptable: {}, {} server{}, {} rank{}", judgement.form,
                         judgement.servers, judgement.servers == 1 ? "" : "s", judgement.ranks,
                         judgement.ranks == 1 ? "" : "s");
    case Verdict::NotCompleted:
      return fmt::format(
          "not completed yet: its status is '{}'; HCCL looks again every second for 30 minutes",
          ranktable::shown(judgement.status));
    case Verdict::Rejected: break;
  }
  const std::size_t count = judgement.findings.problems.size() + judgement.findings.left_out;
  return fmt::format("rejected: {} problem{}", count, count == 1 ? "" : "s");
}

nlohmann::ordered_json list(const std::vector<Finding>& findings) {
  auto out = nlohmann::ordered_json::array();
  for (const Finding& finding : findings)
    out.push_back({{"where", finding.where}, {"message", finding.message}});
  return out;
}

void print_text(const std::string& file, const Judgement& judgement, const Context& context) {
  const auto tint = judgement.verdict == Verdict::Acceptable ? render::Tint::Good
                    : judgement.verdict == Verdict::Rejected ? render::Tint::Bad
                                                             : render::Tint::Warn;
  fmt::print("{}: {}\n", file == "-" ? "<stdin>" : file,
             context.out.paint(tint, summary(judgement)));
  const auto line = [](const Finding& finding, std::string_view kind) {
    fmt::print("  {}{}{}{}\n", kind, finding.where, finding.where.empty() ? "" : ": ",
               render::printable(finding.message));
  };
  for (const Finding& finding : judgement.findings.problems) line(finding, "");
  if (judgement.findings.left_out > 0) fmt::print("  and {} more\n", judgement.findings.left_out);
  for (const Finding& finding : judgement.findings.notes) line(finding, "note: ");
}

void print_document(const std::string& file, const Judgement& judgement, render::Format format) {
  const nlohmann::ordered_json document = {{"apiVersion", "muster/v1"},
                                           {"kind", "RankTableCheck"},
                                           {"file", file},
                                           {"verdict", to_string(judgement.verdict)},
                                           {"form", judgement.form},
                                           {"status", judgement.status},
                                           {"servers", judgement.servers},
                                           {"ranks", judgement.ranks},
                                           {"problems", list(judgement.findings.problems)},
                                           {"problemsLeftOut", judgement.findings.left_out},
                                           {"notes", list(judgement.findings.notes)}};
  if (format == render::Format::Yaml)
    fmt::print("{}", render::yaml_text(document));
  else
    fmt::print("{}\n", document.dump(format == render::Format::Jsonl ? -1 : 2, ' ', false,
                                     nlohmann::ordered_json::error_handler_t::replace));
}

int check_file(const Context& context, const std::string& file, const std::string& chip,
               const std::string& output) {
  const auto format = render::parse_format(output, render::Names::No);
  if (!format) return report(context, format.error());
  const auto text = read_input(file, "rank table", ranktable::kTextBytesMax);
  if (!text) return report(context, text.error());
  Judgement judgement = ranktable::judge(*text, ranktable::parse_chip(chip));
  judge_path(file, judgement);
  if (*format == render::Format::Table || *format == render::Format::Wide)
    print_text(file, judgement, context);
  else
    print_document(file, judgement, *format);
  return exit_of(judgement.verdict);
}

}  // namespace

void add_ranktable_check(CLI::App& group, Context& context, int& exit) {
  struct Options {
    std::string file;
    std::string chip;
    std::string output = "table";
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = group.add_subcommand(
      "check",
      "Say whether HCCL would take a table: exit 0 acceptable, 2 not completed yet, 64 rejected");
  command->add_option("file", options->file, "the rank table, or - for standard input")->required();
  command
      ->add_option("--chip", options->chip,
                   "910, 910b or 910_93 (default: what holds on all of them)")
      ->check(CLI::IsMember({"910", "910b", "910_93"}));
  add_output_option(*command, options->output, render::Names::No);
  command->callback([&context, &exit, options] {
    exit = check_file(context, options->file, options->chip, options->output);
  });
}

}  // namespace muster::client
