#include "controller/core/lifecycle.h"

#include <fmt/format.h>

#include <string_view>

#include "controller/core/model/job_phase.h"

namespace muster::core {
namespace {

std::string_view meaning(JobPhase phase) {
  switch (phase) {
    case JobPhase::Queued:
      return "waits for the jobs of its `schedule.after`, then for a gang of free devices; `muster "
             "why` says what is missing";
    case JobPhase::Launching: return "placed: its nodes are starting their parts";
    case JobPhase::Running: return "every rank has been exec'd";
    case JobPhase::Draining:
      return "something broke the attempt: its ranks are being stopped, and its fence decides when "
             "the next may start";
    case JobPhase::Completing:
      return "every rank ended with status 0: the nodes make sure that nothing is left";
    case JobPhase::Succeeded: return "final: ended as `success` asks";
    case JobPhase::Failed: return "final: the verdict says why";
    case JobPhase::Cancelled:
      return "final: stopped on request, or a job that it waited for ended without success, or "
             "without the checkpoint that it starts with";
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
      "attempt may start, and which fault its verdict names.\n\n"
      "Generated from `kJobMoves` in `controller/core/model/job_phase.h`; a test compares the two. "
      "`MUSTER_REWRITE=1 unit_controller_core` writes it anew.\n\n"
      "| Phase | What it means |\n|---|---|\n";
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
      "\nNothing leaves a final phase, every phase can reach one, and there is one arrow for each "
      "phase and step: `static_assert`s next to the table.\n"
      "\n## When a job waits for others\n\n"
      "A job with `schedule.after` is not considered before all the jobs named there have "
      "succeeded: it holds up none behind it. In the queue it has the place of its submission.\n\n"
      "- Each success is an event of the job that waits, in the batch of that success. Its own "
      "events alone show for whom it still waits, whatever becomes of the others' (archive, "
      "tombstones)\n"
      "- A job that ends failed or cancelled ends all that wait for it, and those that wait for "
      "these, in its own batch: cancelled (arrow 13), as Slurm's `kill_invalid_depend` does, for "
      "nothing of them ran. Each verdict names the job that it waited for, and the one at the "
      "chain's beginning with what that died of, whose class it has\n"
      "- An attempt that breaks is no end: who is started again is waited for\n"
      "- What a lost end of the journal leaves open is made up for at the next start. A job that "
      "is not known any more is not taken for a success: who waits for it is cancelled\n"
      "\n## Chains\n\n"
      "The stages of one submission (`stages:`) are jobs of their own, put behind each other by "
      "`schedule.after`: what is written above of jobs that wait holds for them. What makes them a "
      "chain is this:\n\n"
      "- All of them are taken in one decision, or none: where one has a name that is taken, waits "
      "for a job that there is not, or could never be placed, the refusal names that stage. The "
      "same request again is answered with the same chain\n"
      "- Live jobs and live chains share their names: a live chain's name is no job's, and the "
      "other way round. A chain lives as long as one of its jobs has not ended\n"
      "- A cancel of the chain is one decision for all of its jobs that have not ended, each of "
      "which ends with the word of whoever asked, not as a consequence. A cancel of one stage "
      "takes along what waits for it\n"
      "- Each is archived by itself; its tombstone keeps which chain it was of, so a chain is "
      "known as long as anything of it is\n"
      "- A lost end of the journal may cut a chain's submission in two. Its first jobs are there "
      "then, and run; those behind them are gone, and have to be submitted again\n"
      "\n## When the next attempt may start: the fence\n\n"
      "| Rule | The attempt has ended when | Its devices |\n|---|---|---|\n"
      "| a | every node is swept, declared dead, or was silent for longer than the job's orphan "
      "grace | of swept nodes: free; of the others: reserved until swept |\n"
      "| b | the job is in lockstep, one rank is known to be stopped, and every node not swept is "
      "silent | of silent nodes: reserved until swept |\n"
      "| c | otherwise it has not: `muster why` says for what it waits | reserved |\n"
      "\nWhile an attempt drains, its swept nodes are kept for the job, which is first in the "
      "queue when it comes back: it restarts in place.\n"
      "\n## What broke it: the verdict\n\n"
      "Made once, when the fence holds, from every rank's exit, and from the bad ends of the "
      "attempt's other processes (auxiliary processes: MindSpore's scheduler). Peers of a killed "
      "rank die too, with a status that looks like a fault of their own; so causes are ranked:\n\n"
      "1. a node that could not start its part (launch; node, when the node is at fault)\n"
      "2. a rank or auxiliary process killed by a signal that muster did not send, or out of "
      "memory: the first\n"
      "3. ranks lost with their worker\n"
      "4. a node restarted, declared dead, silent, without its state directory, or with a disk "
      "that let no end be recorded\n"
      "5. a rank's or auxiliary process's own non-zero status, or its own abort: the first whose "
      "line of evidence is not one of those that follow, as a rule, from another rank's end "
      "(`Connection reset by peer`, a collective's time-out). Where it says that memory ran out, "
      "of the device or of the host, the class is oom\n"
      "6. where all other lines are of those: a rank that the worker itself had started, killed by "
      "SIGKILL after muster had asked for a stop and before muster sent its own. Its end is seen "
      "when its memory is gone, and a peer that fell over it, with the stop that followed, may "
      "come before that\n"
      "7. the first whose line is one of those. No process reports a cause: it counts as the "
      "node's, not as an error of the program, and never ends a job by coming twice; the rule of "
      "five attempts without progress and `recovery.max_restarts` still hold\n"
      "\nWhat ended on one node is ordered by that node's clock. Of several nodes the first is "
      "found by the controller's clock, for theirs may differ by seconds: an agent sends with each "
      "fact how long ago it happened, by the clock that nobody sets, and that is taken from the "
      "time of its arrival. Messages that were sent together may arrive up to 250 ms apart; within "
      "that, an end that shows a cause goes before one that shows a consequence, and else the "
      "verdict names both.\n"
      "\nOther exits after muster asked a node's ranks to stop are never causes, and an auxiliary "
      "process's after every rank has ended well breaks nothing.\n"
      "\n## When a job gives up\n\n"
      "- a failure before the program started that is the job's own fault\n"
      "- the same user error, or the same word of its own that memory ran out, twice in a row (the "
      "same but for digits) without a new best step, unless a checkpoint is quarantined for it\n"
      "- five attempts in a row without a new best step\n"
      "- more charged attempts within `recovery.window` than `recovery.max_restarts`; a cancelled "
      "attempt is not charged, nor a start that is lost to a port that muster chose (below), or to "
      "a checkpoint that is quarantined for being torn\n"
      "- the checkpoint to go on from is torn, and there is no older whole one: muster never "
      "begins anew by itself because of that\n"
      "\n## A node that could not start its part\n\n"
      "| Kind | Whose fault | Tried again |\n|---|---|---|\n"
      "| launch | the job's: its program, script, working directory, device or user is not there | "
      "never |\n"
      "| gone | nobody's: the node was restarted between placement and start | at once, in place "
      "|\n"
      "| port | a stranger's, who has the port | at once, in place, with another port; a port that "
      "the spec fixes: as disk |\n"
      "| checkpoint | nobody's: the checkpoint to resume from was read, and is torn "
      "([below](#from-which-checkpoint-it-goes-on)) | at once, in place, from an older one; where "
      "the node's word is not enough to quarantine it: as disk |\n"
      "| disk, node | the node's: no room, or another trouble of its own | at once on other nodes "
      "where there are enough; on this one after a pause |\n"
      "\nEach is charged like every broken attempt, but for a port that muster took from its own "
      "range: eight such starts in a row are not charged, whatever `recovery.max_restarts` is; "
      "from the ninth on they are, and the verdict names the ports that were tried. What cannot be "
      "distinguished is charged: rank 0's node uses both the port that a spec fixes and those for "
      "HCCL, and there a taken one counts as the fixed one; and a port that somebody takes between "
      "the agent's check and the program's own bind is that program's error. The pause is 10 "
      "seconds, doubled with each further failure of that node in a row, at most 5 minutes; while "
      "a job only waits for one, others pass it in the queue. The first attempt that gets further "
      "ends the avoiding.\n"
      "\n## From which checkpoint it goes on\n\n"
      "The newest complete one that is not quarantined. It is quarantined when two attempts in a "
      "row went on from it, neither got more than 5 steps further, both ended by the same user "
      "error or the same signal of the program's own making (SEGV, BUS, ABRT, FPE, ILL, TRAP, SYS; "
      "SIGKILL and SIGTERM come from outside, and memory that runs out runs out with an older one "
      "as well), and an older one is there. This comes before the rule of the same user error "
      "twice: the job goes on from the older one, and ends if that attempt fails in the same way. "
      "Nothing releases a checkpoint that was quarantined for that job; a new one takes it where "
      "it is named by its step (`muster resume --from STEP`, `start.step`).\n"
      "\nBefore each start every node reads the checkpoint again. Where it is torn, it is "
      "quarantined at once, and the next attempt goes on from the next older one; the event names "
      "both. That takes the word of the node that wrote the torn file (the only node of that "
      "attempt, or that of the rank in a folder's name), or of two nodes; of a shard that is not "
      "there, though others of the step are, that of all nodes that wrote it, or of two others "
      "that see the same. A step that is not there at all, and files that cannot be read "
      "(`ESTALE`, `EIO`), are the node's fault: one missing mount must not condemn every "
      "checkpoint. What `start.from` names is refused instead.\n"
      "\nWhere there is none of its own, an attempt begins with what `start` names:\n\n"
      "- of another job, or a directory, the submission says which checkpoint; of a stage of the "
      "same chain the end of that stage does (its newest complete one, or that of `start.step`), "
      "in the event that lets the job go\n"
      "- a stage that succeeds without one ends the job that starts from it: cancelled (arrow 13), "
      "unless `start.as` is `resume-or-scratch`. Nothing is run from the beginning that was to "
      "begin with something. What is not known as complete when the stage has succeeded counts for "
      "nothing\n"
      "- with `as: resume` and `resume-or-scratch` it goes on behind that step: it is the older "
      "one to go back to when the first of the job's own is quarantined, and only what gets beyond "
      "its step is progress. With `as: weights` the training begins at step 0, so that step counts "
      "for nothing, and any of the job's own checkpoints is better\n"
      "- it is never quarantined itself: where nothing else is there, the rules of the same user "
      "error twice and of five attempts without progress end the job\n"
      "\n## When the journal's end was lost\n\n"
      "After a start with `--accept-loss` a job may have had attempts that this journal does not "
      "name: nodes may still run them, and what they saved and logged is stored under their "
      "numbers. So\n\n"
      "- the next attempt's number is as many further on as rows were lost, and beyond any that a "
      "node reports;\n"
      "- records of checkpoints may be lost, too: before that attempt starts, each of its nodes "
      "looks for whole ones of earlier attempts in the job's save directories. What one finds is a "
      "checkpoint as any other; that start ends without a charge, and the next goes on from the "
      "newest;\n"
      "- it is not placed before every registered node has connected again, is declared dead, or "
      "was without word for the job's orphan grace; `muster why` names those that are waited for. "
      "While one of them still runs a lost attempt of the job, it waits for the end of that, too;\n"
      "- an attempt that was being started is broken: an order that is given a second time would "
      "be a second start. One that ran goes on, unless a node has forgotten it: then it had ended "
      "there, and is swept (`forgotten`);\n"
      "- a node that runs what the journal does not name gets nothing placed on it until its agent "
      "says that nothing of it is left.\n";
  return page;
}

}  // namespace muster::core
