#include "common/engine/ranktable/judge.h"

#include <fmt/format.h>

#include "common/engine/ranktable/group_list.h"
#include "common/engine/ranktable/read_table.h"
#include "common/engine/ranktable/words.h"

namespace muster::ranktable {
namespace {

void judge_group_list(const Json& document, std::optional<Chip> chip, Judgement& judgement) {
  judgement.form = "group list";
  Findings& found = judgement.findings;
  const GroupList list = read_group_list(document, found);
  if (!found.problems.empty()) return;
  const RankTable table = as_hccl_reads(list);
  judgement.servers = table.servers.size();
  judgement.ranks = table.rank_count();
  // The rules name positions in a table of version 1.0, which this file is not, so the server in
  // the message helps more.
  const Findings rules = check(table, chip.value_or(Chip::A910));
  for (const Finding& finding : rules.problems)
    found.problem("", fmt::format("as HCCL numbers it: {}: {}", finding.where, finding.message));
  found.left_out += rules.left_out;
  if (!list.lab)
    found.note("",
               "it has no rank ids: HCCL numbers by server_id and device_id, the cloud's launcher "
               "by pod; `muster ranktable convert` writes the launcher's order down");
}

void judge_table(const Json& document, const std::string& version, std::optional<Chip> chip,
                 Judgement& judgement) {
  judgement.form = fmt::format("version {}", shown(version));
  Findings& found = judgement.findings;
  const bool pods = version == to_string(Version::SuperPods);
  if (!pods && version != to_string(Version::Servers)) {
    const std::string_view who = version == "2.0"   ? ", which only A5 reads"
                                 : version == "1.1" ? ", which mixes hosts and cards"
                                                    : "";
    found.problem("version", fmt::format("'{}'{}: 910, 910b and 910_93 read 1.0 and 1.2",
                                         shown(version), who));
    return;
  }
  const RankTable table = read_table(document, pods ? Version::SuperPods : Version::Servers, found);
  judgement.servers = table.servers.size();
  judgement.ranks = table.rank_count();
  add_rules(table, chip, found);
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Acceptable: return "acceptable";
    case Verdict::NotCompleted: return "not completed";
    case Verdict::Rejected: return "rejected";
  }
  return "";
}

Judgement judge(std::string_view text, std::optional<Chip> chip) {
  Judgement judgement;
  const auto document = read_json(text);
  if (!document) {
    judgement.findings.problem("", document.error().message);
    return judgement;
  }
  const auto head = read_head(*document);
  if (!head) {
    judgement.findings.problem("", head.error().message);
    return judgement;
  }
  judgement.status = head->status;
  if (!head->completed) {
    judgement.verdict = Verdict::NotCompleted;
    return judgement;
  }
  if (head->form == Form::GroupList)
    judge_group_list(*document, chip, judgement);
  else
    judge_table(*document, head->version, chip, judgement);
  judgement.verdict = judgement.findings.problems.empty() ? Verdict::Acceptable : Verdict::Rejected;
  return judgement;
}

}  // namespace muster::ranktable
