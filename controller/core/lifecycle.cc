#include "controller/core/lifecycle.h"

#include <fmt/format.h>

#include <string_view>

#include "controller/core/model/job_phase.h"

namespace muster::core {
namespace {

std::string_view meaning(JobPhase phase) {
  switch (phase) {
    case JobPhase::Queued:
      return "waits for the jobs of its `schedule.after`, then for free devices for its gang; "
             "`muster why` prints what is missing";
    case JobPhase::Launching: return "placed, and its nodes start their parts";
    case JobPhase::Running: return "every rank has been exec'd";
    case JobPhase::Draining:
      return "the attempt is broken: its ranks are being stopped, and its fence decides when the "
             "next attempt may start";
    case JobPhase::Completing:
      return "every rank ended with status 0, and the nodes make sure that no process is left; "
             "then they upload outputs, while the devices are free";
    case JobPhase::Succeeded: return "final: the job has ended as `success` asks";
    case JobPhase::Failed: return "final: the job has ended, and the verdict says why";
    case JobPhase::Cancelled:
      return "final: the job was stopped on request, or a job that it waited for ended without "
             "success, or without the checkpoint that it starts with";
  }
  return "";
}

std::string_view cause(JobStep step) {
  switch (step) {
    case JobStep::Placed: return "AttemptPlaced";
    case JobStep::AllNodesUp: return "the last NodeStarted";
    case JobStep::AllRanksDone: return "the last RankExited, all with status 0";
    case JobStep::Broke: return "AttemptBroke";
    case JobStep::TornDown: return "AttemptEnded, another attempt is allowed";
    case JobStep::GaveUp: return "AttemptEnded and JobEnded (failed)";
    case JobStep::Finished: return "AttemptCompleted and JobEnded (succeeded)";
    case JobStep::CancelAsked: return "CancelRequested and JobEnded (cancelled)";
    case JobStep::StoppedForCancel: return "AttemptEnded and JobEnded (cancelled)";
    case JobStep::PredecessorLost:
      return "JobEnded (cancelled), in the batch of the other job's end";
  }
  return "";
}

}  // namespace

std::string lifecycle_page() {
  std::string page =
      "# Phases of a job\n\n"
      "After this page you know which event moves a job from one phase to the next, when its next "
      "attempt may start, and which\nfault its verdict names.\n\n"
      "This page is generated from `kJobMoves` in `controller/core/model/job_phase.h`, and a test "
      "compares the two.\n`MUSTER_REWRITE=1 unit_controller_core` writes the page again.\n\n"
      "| Phase | What it means |\n"
      "|---|---|\n";
  for (const JobPhase phase : kJobPhases)
    page += fmt::format("| {} | {} |\n", to_string(phase), meaning(phase));
  page +=
      "\n| Arrow | From | Step | To | The events that take it | When "
      "|\n|---|---|---|---|---|---|\n";
  std::size_t number = 0;
  for (const JobMove& move : kJobMoves) {
    page += fmt::format("| {} | {} | {} | {} | {} | {} |\n", ++number, to_string(move.from),
                        to_string(move.on), to_string(move.to), cause(move.on), move.meaning);
  }
  page +=
      "\n"
      "No arrow leaves a final phase, and every phase can reach a final phase. For each phase and "
      "step there is at most one\narrow. `static_assert`s next to the table check these rules.\n\n"
      "## When a job waits for others\n\n"
      "The controller does not consider a job with `schedule.after` before all jobs that the key "
      "names have succeeded. So the\njob delays no other job in the queue. It keeps the queue "
      "position of its submission.\n\n"
      "- The success of another job is stored as an event of the job that waits, in the batch of "
      "that success. So the waiting\n  job's own events alone show for which jobs it still waits. "
      "Whether the events of the others are archived, or their\n  tombstones dropped, does not "
      "matter.\n"
      "- A job that ends failed or cancelled also ends all jobs that wait for it, and the jobs "
      "that wait for these. This\n  happens in the batch of its own end. These jobs are cancelled "
      "(arrow 13), because none of their processes has run;\n  Slurm's `kill_invalid_depend` does "
      "the same. Each verdict names the job that this job waited for. It also names the\n  job at "
      "the beginning of the chain, with the reason of that job's end, and has the same class of "
      "failure.\n"
      "- A broken attempt is not the end of its job. If the job is started again, other jobs "
      "still wait for it.\n"
      "- A lost end of the journal may leave out what follows from a job's end. The controller "
      "decides this at its next start.\n  A job that is not known any more does not count as "
      "succeeded, so the jobs that wait for it are cancelled.\n\n"
      "## Chains\n\n"
      "The stages of one submission (`stages:`) are separate jobs, which `schedule.after` puts "
      "into a sequence. All rules above\nabout waiting jobs apply to them. These rules are added "
      "for a chain:\n\n"
      "- The controller accepts all stages in one decision, or none. The chain is refused if a "
      "stage has a name that is taken,\n  waits for a job that does not exist, or could never be "
      "placed. The refusal names that stage. If the same request is\n  sent again, the answer is "
      "the same chain.\n"
      "- Live jobs and live chains share one set of names. No job can have the name of a live "
      "chain, and no chain can have the\n  name of a live job. A chain is live as long as one of "
      "its jobs has not ended.\n"
      "- A cancel of the chain is one decision for all of its jobs that have not ended. Each of "
      "them ends with the reason that\n  was given for the cancel, and not as a consequence of "
      "another job's end. A cancel of one stage also cancels the jobs\n  that wait for it.\n"
      "- Each job is archived separately, and its tombstone keeps the id and the name of its "
      "chain. So the controller knows a\n  chain as long as it knows one job or one tombstone of "
      "it.\n"
      "- A lost end of the journal may cut the submission of a chain in two. Then the first jobs "
      "exist and run. The later jobs\n  are lost and must be submitted again.\n\n"
      "## When the next attempt may start: the fence\n\n"
      "| Rule | The attempt has ended when | Its devices |\n"
      "|---|---|---|\n"
      "| a | every node is swept, or declared dead, or was silent for longer than the job's "
      "orphan grace | on swept nodes: free; on the others: reserved until swept |\n"
      "| b | the job is in lockstep, one rank is known to be stopped, and every node that is not "
      "swept is silent | on silent nodes: reserved until swept |\n"
      "| c | in all other cases the attempt has not ended; `muster why` prints what it waits for "
      "| reserved |\n\n"
      "While an attempt drains, the devices of its swept nodes stay reserved for the job. When "
      "the job returns to the queue, it\nis at the front. So it restarts in place.\n\n"
      "## What broke it: the verdict\n\n"
      "The controller makes the verdict once, when the fence holds. It uses the exits of all "
      "ranks, and the failures of the\nattempt's auxiliary processes (for example MindSpore's "
      "scheduler). When a rank is killed, its peers end too, with a\nstatus that looks like their "
      "own fault. So the causes are ranked:\n\n"
      "1. A node could not start its part. The class is `launch`, or `node` if the node is at "
      "fault. It is also `launch`\n   if two nodes have different files of an input in a "
      "store.\n"
      "2. A rank or an auxiliary process was killed by a signal that muster did not send, or "
      "because memory ran out. The first\n   such end counts.\n"
      "3. Ranks were lost with their worker.\n"
      "4. A node was restarted, was declared dead, was silent, or came back without its state "
      "directory. Or the disk of a node\n   took no writes, so no end of its ranks could be "
      "recorded.\n"
      "5. A rank or an auxiliary process ended with a non-zero status of its own, or aborted by "
      "itself. The first one counts\n   whose evidence is not a known consequence of another "
      "rank's end. Such consequences are `Connection reset by peer` and\n   the time-out of a "
      "collective. If the evidence says that memory of the device or of the host ran out, the "
      "class is\n   `oom`.\n"
      "6. All ends as in 5 have evidence of such a consequence, and a rank that the worker itself "
      "had started was killed by\n   SIGKILL. It was killed after muster had requested a stop, "
      "and before muster sent its own SIGKILL. The end of such a\n   rank is seen only when its "
      "memory is freed. Before that, a peer may fail because of it, and muster may request the\n  "
      " stop.\n"
      "7. All ends as in 5 have evidence of such a consequence, and no rank was killed as in 6. "
      "The first of these ends counts.\n   No process reports a cause, so the class is `node`: "
      "this is no error of the program. The rule of the same error twice\n   never applies to it. "
      "The rule of five attempts without progress and `recovery.max_restarts` still apply.\n\n"
      "When every rank ended with status 0, the attempt has broken because the success that "
      "`success` asks for is missing. The\nclass is `user-error`. The class is `node` if an "
      "agent could not find out whether the success is there, because a file\nsystem did not "
      "answer for 10 s, and no other rank decides it. Then the job goes on as after any fault of "
      "a node. The\nreason names the rank, the node and the file: `rank 3 on node 'n1' ended "
      "with status 0, but its agent could not find out\nwithin 10 s whether success.file "
      "'/data/done' is there: does its file system answer?`. The event of that rank's end "
      "says\nit, too. An older agent reports such a success as missing.\n\n"
      "The ends on one node are ordered by that node's clock. Between nodes the controller's "
      "clock decides which end was first,\nbecause the clocks of nodes may differ by seconds. "
      "With each fact an agent sends how long ago it happened. The agent\nmeasures this age with "
      "a clock that nobody can set. The controller subtracts the age from the time at which the "
      "fact\narrives. Messages that are sent together may arrive up to 250 ms apart. Within this "
      "time, an end that shows a cause goes\nbefore an end that shows a consequence. Otherwise "
      "the verdict names both.\n\n"
      "Other exits that follow after muster has asked a node's ranks to stop are never causes. An "
      "auxiliary process that fails\nafter every rank has ended well breaks nothing.\n\n"
      "## When a job gives up\n\n"
      "A job ends as failed in each of these cases:\n\n"
      "- A failure before the program started is the job's own fault.\n"
      "- The same user error comes twice in a row without a new best step, and no checkpoint is "
      "quarantined for it. The same\n  rule applies to a program's own report that memory ran "
      "out. Two errors are the same even if their digits differ.\n"
      "- Five attempts in a row have ended without a new best step.\n"
      "- Within `recovery.window` there are more charged attempts than `recovery.max_restarts`. A "
      "cancelled attempt is not\n  charged, nor is one that the deadline of a node's drain "
      "stopped. A start is not charged if it fails because of a port\n  that muster chose (below) "
      "or a checkpoint that is quarantined as torn.\n"
      "- The checkpoint to resume from is torn, and there is no older complete checkpoint. muster "
      "never starts a job from the\n  beginning by itself because of a torn checkpoint.\n\n"
      "## How long it waits before the next attempt\n\n"
      "By default the next attempt is placed at once. With `recovery.backoff` the job waits for "
      "that long after each attempt\nthat was charged. The wait doubles with each further charged "
      "attempt in a row without a new best step, up to 10 minutes;\na value that is longer itself "
      "stays as it is. After a new best step the job waits for the plain value again. An "
      "attempt\nthat was not charged causes no wait.\n\n"
      "The job waits at the front of the queue, without devices, and other jobs pass it. `muster "
      "why` prints how long it still\nwaits. A cancel ends it at once. A controller that was "
      "restarted counts the time from the recorded end of the attempt.\n\n"
      "## When an operator drains a node\n\n"
      "Nothing new is placed on a node that drains (`muster node drain`). A running attempt "
      "goes on there until it ends, or\nuntil the deadline of the drain. At the deadline it "
      "breaks with the class `operator`, whatever its ranks do while they\nare stopped. It "
      "is not charged, and the job goes on on other nodes from its newest checkpoint. If "
      "too few others are\nleft, it waits, and `muster why` names the nodes that drain. A "
      "job that only waits for such nodes delays no other job.\n\n"
      "## A node that could not start its part\n\n"
      "| Kind | Whose fault | Tried again |\n"
      "|---|---|---|\n"
      "| launch | the job's: its program, script, working directory, device or user does not "
      "exist | never; if an earlier attempt of the job has run: as disk |\n"
      "| gone | nobody's: the node was restarted between placement and start | at once, in place "
      "|\n"
      "| port | another program's, which has the port | at once, in place, with another port; if "
      "the spec fixes the port: as disk |\n"
      "| checkpoint | nobody's: the node read the checkpoint to resume from, and it is torn "
      "([below](#from-which-checkpoint-it-goes-on)) | at once, in place, from an older "
      "checkpoint; if the node's report is not enough to quarantine it: as disk |\n"
      "| inputs, inputs-changed | nobody's: the store of an input was away, or somebody wrote "
      "there | at once, in place; after inputs-changed all nodes list the stores anew |\n"
      "| disk, node | the node's: its disk is full, or it has another problem of its own | at "
      "once on other nodes, if there are enough; on this node after a pause |\n\n"
      "Each of these failures is charged like every broken attempt. A checkpoint that is "
      "quarantined as torn is not charged.\nThere is also an exception for a port that muster "
      "took from its own range. Eight such starts in a row are not charged,\nwhatever the value "
      "of `recovery.max_restarts` is. From the ninth start on they are charged, and the verdict "
      "names the\nports that were tried.\n\n"
      "If muster cannot distinguish two cases, it charges the attempt. Rank 0's node uses both "
      "the port that a spec fixes and\nthe ports for HCCL. On that node a taken port counts as "
      "the fixed port. If somebody takes a port between the agent's\ncheck and the program's own "
      "bind, this counts as an error of the program.\n\n"
      "The pause is 10 seconds. It doubles with each further failure of that node in a row, up to "
      "5 minutes. While a job only\nwaits for the end of a pause, other jobs pass it in the "
      "queue. After the first attempt that gets further, the job no\nlonger avoids the node.\n\n"
      "## From which checkpoint it goes on\n\n"
      "An attempt resumes from the job's newest complete checkpoint that is not quarantined. A "
      "checkpoint is quarantined if all\nof these conditions are met:\n\n"
      "- Two attempts in a row have resumed from it, and neither got more than 5 steps further.\n"
      "- Both ended by the same user error, or by the same signal that the program itself caused. "
      "These signals are SEGV, BUS,\n  ABRT, FPE, ILL, TRAP and SYS. SIGKILL and SIGTERM come "
      "from outside. Out of memory does not count, because memory runs\n  out with an older "
      "checkpoint as well.\n"
      "- There is an older checkpoint to resume from.\n\n"
      "This rule comes before the rule of the same user error twice. The job resumes from the "
      "older checkpoint, and ends if\nthat attempt fails in the same way. Nothing releases a "
      "quarantined checkpoint for that job. A new job can use the\ncheckpoint if it names the "
      "step (`muster resume --from STEP`, `start.step`).\n\n"
      "Before each start every node reads the checkpoint again. If it is torn, it is quarantined "
      "at once, and the next attempt\nresumes from the next older checkpoint. The event names "
      "both checkpoints. If there is no older checkpoint, the job ends\ninstead. To quarantine a "
      "torn checkpoint, muster needs these reports:\n\n"
      "- A file is torn: the report of the node that wrote the file, or the reports of two nodes. "
      "The node that wrote it is the\n  only node of that attempt, or the node of the rank in a "
      "folder's name.\n"
      "- A shard is missing, though other shards of the step are there: the reports of all nodes "
      "that wrote the checkpoint, or\n  of two other nodes that see the same.\n\n"
      "If a step is missing completely, or if files cannot be read (`ESTALE`, `EIO`), the fault "
      "is the node's. One missing\nmount must not condemn every checkpoint. A checkpoint that "
      "`start.from` names is not quarantined: it is refused.\n\n"
      "If the job has no checkpoint of its own, an attempt begins with the checkpoint that "
      "`start` names, the start point:\n\n"
      "- For another job or a directory, the submission says which checkpoint it is. For a stage "
      "of the same chain, the end of\n  that stage decides. It is the newest complete checkpoint "
      "of that stage, or the checkpoint of `start.step`. The event\n  that lets the job start "
      "contains it.\n"
      "- If a stage succeeds without such a checkpoint, the job that starts from it is cancelled "
      "(arrow 13), unless `start.as`\n  is `resume-or-scratch`. A job that must begin with a "
      "checkpoint is never run from the beginning. A checkpoint that is\n  not known as complete "
      "when the stage has succeeded does not count.\n"
      "- With `as: resume` and `as: resume-or-scratch` the training continues after the step of "
      "the start point. The job\n  returns to the start point if the first checkpoint of its own "
      "is quarantined. Only steps beyond the start point are\n  progress.\n"
      "- With `as: weights` the training begins at step 0. So the step of the start point does "
      "not count, and muster prefers\n  every checkpoint of the job's own.\n"
      "- The start point itself is never quarantined. If there is no other checkpoint, the rules "
      "of the same user error twice\n  and of five attempts without progress end the job.\n\n"
      "## When the journal's end was lost\n\n"
      "After a start with `--accept-loss`, a job may have had attempts that this journal does not "
      "name. Nodes may still run\nthese attempts. What they saved and logged is stored under the "
      "numbers of these attempts. So these rules apply:\n\n"
      "- The loss is an event of its own (`journal-end-lost`), and begins a new generation of the "
      "journal. Agents keep the\n  newest generation that they have seen. They refuse a "
      "controller of an older one.\n"
      "- The number of the next attempt skips one number for each lost row. It skips at least a "
      "million if that many rows or an\n  unknown number of them are lost. It is also higher than "
      "every number that a node reports.\n"
      "- An attempt of which all nodes report that they have it goes on, also one that was just "
      "starting. The nodes report its\n  facts again.\n"
      "- If a node does not have an attempt that ran or was starting, the attempt breaks without a "
      "charge. The node is ordered\n  to stop it, searches for processes of it, and reports that "
      "it is swept. The order to start it is not given again,\n  because that would be a second "
      "start.\n"
      "- A node that was declared dead may have come back in the lost time. So it counts as silent "
      "until it connects or is\n  declared dead again.\n"
      "- The next attempt is not placed until each registered node has connected again, is "
      "declared dead, or was without\n  contact for the job's orphan grace. `muster why` names "
      "the nodes for which it waits. It waits at least 6 s, for nodes\n  that registered in the "
      "lost time. If a node still runs a lost attempt of the job, the next attempt also waits for "
      "the\n  end of that attempt.\n"
      "- Records of checkpoints may be lost, too. So before that attempt starts, each of its "
      "nodes scans the job's save\n  directories for complete checkpoints of earlier attempts. A "
      "checkpoint that a node finds counts like any other. The\n  start that found it ends "
      "without a charge, and the next attempt resumes from the newest checkpoint.\n"
      "- If a node runs something that the journal does not name, nothing is placed on the node. "
      "This ends when the node's\n  agent reports that nothing of it is left.\n";
  return page;
}

}  // namespace muster::core
