#include "controller/core/dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ranges>

#include "controller/core/access/certificates.h"
#include "controller/core/model/text.h"

namespace muster::core {
namespace {

std::string time_text(WallTime at) { return fmt::format("{}", at.time_since_epoch().count()); }
std::string time_text(const std::optional<WallTime>& at) { return at ? time_text(*at) : "-"; }
// By the node's clock, and by the controller's.
std::string times_text(const auto& fact) {
  return time_text(fact.node_time) + "/" + time_text(fact.controller_time);
}
std::string key_text(const AttemptKey& key) {
  return fmt::format("{}.{}", key.first.str(), key.second.value);
}

std::string user_text(std::string_view what, const std::string& user) {
  return user.empty() ? "" : fmt::format(" {}={}", what, user);
}

template <class Range>
std::string keys_text(const Range& keys) {
  std::string text;
  for (const AttemptKey& key : keys) text += " " + key_text(key);
  return text;
}

std::string point_text(const std::optional<ResumePoint>& point) {
  if (!point) return "-";
  return fmt::format("{}{}:{}:{}{}", point->from_start ? "start:" : "", point->attempt.value,
                     point->step, point->path,
                     point->shards > 0 ? fmt::format(" ({} shards)", point->shards) : "");
}

std::string verdict_text(const std::optional<Verdict>& verdict) {
  if (!verdict) return "-";
  return fmt::format("{} node='{}' rank={} reason='{}' evidence='{}' signature='{}'",
                     to_string(verdict->cls), verdict->node.str(),
                     verdict->rank ? std::to_string(verdict->rank->value) : "-", verdict->reason,
                     verdict->evidence, verdict->signature);
}

std::string_view swept_text(const NodePart& part) {
  if (part.swept_why) return to_string(*part.swept_why);
  return part.swept ? "ran nothing" : "";
}

void dump_part(std::string& out, const NodePart& part) {
  const PlacedNode& placed = part.placed;
  out += fmt::format(
      "    part {} boot={} instance={} address={} devices={} type={} ranks={}+{} started={} "
      "swept={} ({}) logs={} pids={}\n",
      placed.node.str(), placed.boot_id.str(), placed.instance.str(), placed.address,
      fmt::join(placed.devices, ","), placed.device_type, placed.first_rank.value,
      placed.rank_count, part.started, part.swept, swept_text(part), part.logs_collected,
      fmt::join(part.pids, ","));
  out += fmt::format(
      "      interface={} model={} physical={} device_ips={} super_devices={} super_pod={} "
      "server={} hccl_port={}\n",
      placed.interface, placed.device_model, fmt::join(placed.physical_ids, ","),
      fmt::join(placed.device_ips, ","), fmt::join(placed.super_device_ids, ","),
      placed.super_pod_id, placed.server_id, placed.hccl_port);
  for (const v1::InputState& input : part.resolved.inputs())
    out +=
        fmt::format("      input {} {} objects={} bytes={} fetched={}\n", input.name(),
                    input.contents_sha256(), input.objects(), input.bytes(), input.fetched_bytes());
  if (part.resolved.ByteSizeLong() > 0)
    out += fmt::format("      resolved {} programs={}\n", fmt::join(part.resolved.env(), " "),
                       fmt::join(part.resolved.programs(), " "));
  if (part.uploads) out += "      uploads\n";
  if (part.outputs)
    out += fmt::format("      outputs files={} bytes={} '{}'\n", part.outputs->files,
                       part.outputs->bytes, part.outputs->problem);
  if (part.uploads_logs) out += "      uploads logs\n";
  if (part.logs_end)
    out += fmt::format("      logs end files={} bytes={} '{}'\n", part.logs_end->files,
                       part.logs_end->bytes, part.logs_end->problem);
  if (part.sent_step >= 0)
    out += fmt::format("      sent step={} sums={}\n", part.sent_step, part.sent_sums);
  if (part.clock_ahead)
    out +=
        fmt::format("      clock ahead {} ms\n", *part.clock_ahead / std::chrono::milliseconds(1));
  if (part.start_failed)
    out += fmt::format(
        "      start failed {} '{}' at {}{}\n", to_string(part.start_failed->why),
        part.start_failed->text, times_text(*part.start_failed),
        part.start_failed->step.empty() ? "" : fmt::format(" step='{}'", part.start_failed->step));
  if (part.start_failed && part.start_failed->needed > 0)
    out += fmt::format("        read {} of {} shards ({}), torn: {}\n", part.start_failed->there,
                       part.start_failed->needed, part.start_failed->names_sha256,
                       fmt::join(part.start_failed->torn, " "));
  for (const auto& [rank, exit] : part.exits) {
    out += fmt::format(
        "      exit {} code={} signal={} stop={} oom={} lost={} success={} step={}/{} "
        "evidence='{}' ({}) at {} killed_unasked={} training_rank={} success_unknown={}\n",
        rank.value, exit.code, exit.signal, exit.stop_requested, exit.oom, exit.lost,
        exit.success_seen, exit.step.value_or(-1), exit.total.value_or(-1), exit.evidence,
        to_string(exit.evidence_kind), times_text(exit), exit.killed_unasked,
        exit.training_rank ? std::to_string(*exit.training_rank) : "-", exit.success_unknown);
  }
  for (const auto& [name, exit] : part.auxiliaries) {
    out += fmt::format("      auxiliary process {} code={} signal={} evidence='{}' at {}\n", name,
                       exit.code, exit.signal, exit.evidence, times_text(exit));
  }
}

void dump_attempt(std::string& out, const AttemptRecord& attempt) {
  out += fmt::format(
      "  attempt {} state={} port={} table={} resume={} placed={} running={} first_step={}@{} "
      "broke={} fault={} detected={} exits_known={} ended={} caught_up={}\n",
      attempt.number.value, static_cast<int>(attempt.state), attempt.master_port,
      attempt.table_sha256, point_text(attempt.resume), time_text(attempt.placed_at),
      time_text(attempt.running_at), attempt.first_step ? std::to_string(*attempt.first_step) : "-",
      time_text(attempt.first_step_at), time_text(attempt.broke_at), time_text(attempt.fault_time),
      time_text(attempt.detected_at), time_text(attempt.exits_known_at),
      time_text(attempt.ended_at), time_text(attempt.caught_up_at));
  out += fmt::format(
      "    cause='{}'{} verdict={} charged={} best={} fence='{}' cancelled={} "
      "drained={} counts={}/{}/{}/{}\n",
      attempt.broke_cause, user_text("differing_input", attempt.differing_input),
      verdict_text(attempt.verdict), attempt.charged, attempt.best_step, attempt.fence,
      attempt.cancelled, attempt.drained.str(), attempt.parts_started, attempt.parts_swept,
      attempt.ranks_well, attempt.ranks_exited);
  if (attempt.output)
    out += fmt::format("    output '{}' sending={} on {}/{}{} sealed={}{}\n",
                       attempt.output->secret, attempt.sending.step, attempt.sending.nodes,
                       attempt.uploaders, attempt.sending.failed ? " failed" : "",
                       attempt.sealed_step, attempt.uploader_gone ? " uploader gone" : "");
  if (attempt.logs_output)
    out += fmt::format("    logs output '{}'\n", attempt.logs_output->secret);
  for (const auto& [what, note] : attempt.notes)
    out += fmt::format("    note {} node={} step={} '{}'\n", static_cast<int>(what),
                       note.node.str(), note.step.value_or(-1), note.text);
  for (const NodePart& part : attempt.parts) dump_part(out, part);
}

void dump_owned(std::string& out, const JobRecord& job) {
  for (const auto& [before, owned] : job.owned) {
    out += fmt::format("  owned {} attempt {}:", before.str(), owned.attempt.value);
    for (const ShardHolder& one : owned.holders)
      out += fmt::format(" {}[{}+{}]", one.node.str(), one.first_rank.value, one.ranks);
    out += "\n";
  }
}

void dump_access(std::string& out, const AccessRecords& access) {
  for (const auto& [id, token] : access.tokens) {
    out += fmt::format(
        "token {} secret={} nodes={} uses={} created={} ends={} may_replace={} actor='{}' "
        "revoked={}{}\n",
        id, token.secret_sha256, token.nodes, token.uses, time_text(token.created_at),
        time_text(token.ends_at), token.may_replace, token.actor, time_text(token.revoked_at),
        token.user.empty() ? "" : " user=" + token.user);
    for (const auto& [node, key] : token.joined) out += fmt::format("  joined {} {}\n", node, key);
  }
  for (const auto& [subject, keys] : access.certificates) {
    for (const auto& [key, one] : keys) {
      out += fmt::format(
          "certificate of {} key={} serial={} from={} to={} issued={} last_end={} day={} token={} "
          "actor='{}' revoked={} '{}'\n",
          text_of(subject), key, one.serial, time_text(one.not_before), time_text(one.not_after),
          time_text(one.issued_at), time_text(one.last_end), one.issued_day, one.token, one.actor,
          time_text(one.revoked_at), one.why);
    }
  }
  for (const auto& [subject, all] : access.revoked)
    out += fmt::format("revoked {} before={} '{}'\n", text_of(subject), time_text(all.before),
                       all.why);
  const AuthorityRecords& cas = access.authorities;
  if (!cas.signing.empty())
    out += fmt::format("ca signing={} since={} next={} old={}\n", cas.signing,
                       time_text(cas.signs_since), cas.next, cas.old);
  for (const std::string& sha256 : cas.imported) out += fmt::format("ca imported {}\n", sha256);
  for (const std::string& sha256 : cas.dropped) out += fmt::format("ca dropped {}\n", sha256);
  if (access.cleared_at != WallTime())
    out += fmt::format("access certificates={} cleared={}\n", access.certificate_count,
                       time_text(access.cleared_at));
}

void dump_indexes(std::string& out, const Ledger& ledger) {
  std::map<std::string, std::string> sorted;
  for (const auto& [request, job] : ledger.indexes.request_ids) sorted[request.str()] = job.str();
  for (const auto& [request, job] : sorted) out += fmt::format("request {} -> {}\n", request, job);
  sorted.clear();
  for (const auto& [name, job] : ledger.indexes.live_names) sorted[name] = job.str();
  for (const auto& [name, job] : sorted) out += fmt::format("name {} -> {}\n", name, job);
  sorted.clear();
  for (const auto& [name, chain] : ledger.indexes.chain_names) sorted[name] = chain.str();
  for (const auto& [name, chain] : sorted) out += fmt::format("chain name {} -> {}\n", name, chain);
  for (const auto& [name, chain] : ledger.indexes.chains_named) {
    out += fmt::format("chain {} {}:", name, chain.str());
    for (const JobId& job : ledger.indexes.chains.at(chain)) out += " " + job.str();
    out += "\n";
  }
  out += "queue";
  for (const auto& [place, job] : ledger.indexes.queue) out += " " + job.str();
  out += "\nlive";
  for (const JobId& job : ledger.indexes.live) out += " " + job.str();
  out += fmt::format("\nlingering{}\n", keys_text(ledger.indexes.lingering));
  for (const auto& [predecessor, jobs] : ledger.indexes.dependents) {
    out += fmt::format("behind {}{}:", predecessor.str(),
                       ledger.indexes.unsettled.contains(predecessor) ? " (unsettled)" : "");
    for (const JobId& job : jobs) out += " " + job.str();
    out += "\n";
  }
  for (const auto& [node, holders] : ledger.indexes.device_holders) {
    for (const auto& [device, key] : holders)
      out += fmt::format("device {}:{} -> {}\n", node.str(), device, key_text(key));
  }
  for (const auto& [port, key] : ledger.indexes.ports_reserved)
    out += fmt::format("port {}:{} -> {}\n", port.first, port.second, key_text(key));
  for (const auto& [address, port] : ledger.port_cursor)
    out += fmt::format("port cursor {} {}\n", address, port);
  for (const auto& [node, parts] : ledger.indexes.node_parts) {
    out += fmt::format("orders {} unswept:{} open:{} closed:{}\n", node.str(),
                       keys_text(parts.unswept), keys_text(parts.open),
                       keys_text(parts.closed | std::views::values));
  }
  for (const auto& [at, job] : ledger.indexes.archivable)
    out += fmt::format("archivable {} {}\n", time_text(at), job.str());
}

}  // namespace

std::string dump(const JobRecord& job) {
  std::string out = fmt::format(
      "job {} name={} request={} hash={} phase={} submitted={} ended={} cancel={} '{}' best={} "
      "without_progress={} last={} open={} attempts_lost={}{}{}\n",
      job.id.str(), job.spec.name(), job.request_id.str(), job.spec_hash, to_string(job.phase),
      time_text(job.submitted_at), time_text(job.ended_at), job.cancel_requested, job.cancel_reason,
      job.best_step, job.attempts_without_progress, job.last_index.value, job.open_parts,
      job.attempts_lost, user_text("owner", job.owner),
      user_text("cancelled_by", job.cancelled_by));
  out += fmt::format("  spec {}\n  verdict {}\n", job.spec.ShortDebugString(),
                     verdict_text(job.verdict));
  if (job.start) out += fmt::format("  starts with {}\n", point_text(job.start));
  dump_owned(out, job);
  for (const auto& [input, pin] : job.input_pins)
    out += fmt::format("  input {} {} anew={}\n", input, pin.contents_sha256, pin.anew);
  for (const AttemptRecord& attempt : job.attempts) dump_attempt(out, attempt);
  for (const CheckpointRecord& checkpoint : job.checkpoints) {
    out += fmt::format("  checkpoint {}:{} '{}' bytes={} shards={} at={} quarantined={}{}\n",
                       checkpoint.attempt.value, checkpoint.step, checkpoint.path, checkpoint.bytes,
                       checkpoint.shards, time_text(checkpoint.at), checkpoint.quarantined,
                       checkpoint.uploaded ? " uploaded" : "");
  }
  return out;
}

std::string dump(const Ledger& ledger) {
  std::string out = fmt::format("ledger cluster={} lineage={}:{} epoch={} version={} index={}\n",
                                ledger.cluster.str(), ledger.lineage.generation, ledger.lineage.id,
                                ledger.epoch.value, ledger.version, ledger.index.value);
  for (const auto& [name, node] : ledger.nodes) {
    out +=
        fmt::format("node {} instance={} boot={} version={} dead={} registered={} inventory {}\n",
                    name.str(), node.instance.str(), node.boot_id.str(), node.version, node.dead,
                    time_text(node.registered_at), node.inventory.ShortDebugString());
    if (node.drain)
      out += fmt::format("  drain actor={} why='{}' since={} deadline={}\n", node.drain->actor,
                         node.drain->why, time_text(node.drain->since),
                         time_text(node.drain->deadline));
    for (const auto& [key, value] : node.labels) out += fmt::format("  label {}={}\n", key, value);
  }
  for (const auto& [id, job] : ledger.jobs) out += dump(job);
  for (const auto& [id, stone] : ledger.tombstones) {
    out += fmt::format("tombstone {} name={} request={} phase={} ended={} chain={} '{}'{}\n",
                       id.str(), stone.name, stone.request_id.str(), to_string(stone.phase),
                       time_text(stone.ended_at), stone.chain.str(), stone.chain_name,
                       user_text("owner", stone.owner));
  }
  dump_access(out, ledger.access);
  for (const auto& [key, secret] : ledger.secrets)
    out += fmt::format("secret {} owner={} shared={} item={} set={} actor={}\n", key.name,
                       key.owner, key.shared, secret.item, time_text(secret.set_at), secret.actor);
  for (const auto& [key, store] : ledger.stores)
    out += fmt::format("store {} owner={} shared={} set={} actor={} {}\n", key.name, key.owner,
                       key.shared, time_text(store.set_at), store.actor,
                       store.profile.ShortDebugString());
  dump_indexes(out, ledger);
  return out;
}

}  // namespace muster::core
