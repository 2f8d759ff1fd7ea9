// muster run: submits a job and follows it to its end, or not with -d.
#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/job/command_job.h"
#include "client/commands/job/spec_file.h"
#include "client/commands/job/submit.h"

namespace muster::client {
namespace {

struct RunOptions {
  SpecOptions spec;
  SubmitOptions submit;
};

Result<int> run(const Context& context, const RunOptions& options) {
  auto wanted = load_job(context, options.spec);
  if (!wanted) return fail(std::move(wanted.error()));
  return submit(context, *std::move(wanted), options.submit);
}

}  // namespace

void add_run(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand(
      "run", "Submit a job and follow it to its end. Ctrl-C detaches; the job goes on");
  add_spec_options(*command, options->spec);
  take_command(*command, context);
  add_env_option(*command, options->spec);
  command->add_flag("-d,--detach", options->submit.detach,
                    "print the job's id (of a chain: chain:ID) and return");
  command->add_flag("-q,--quiet", options->submit.quiet, "print nothing but how it ended");
  command->add_flag("--again", options->submit.again, "of a chain: run stages that are done, too");
  command
      ->add_option("--request-id", options->submit.request_id,
                   "the same id again gives the same job: makes a retry safe")
      ->type_name("TEXT");
  add_timeout_option(*command, options->submit.timeout,
                     "stop following after this long (exit 4); the job goes on");
  command->footer(
      "examples:     muster run job.yaml --set resources.nodes=4 --env NCCL_DEBUG=INFO\n"
      "              id=$(muster run -d job.yaml) && muster wait $id\n"
      "              muster run -- torchrun --nnodes 2 --nproc_per_node 8 train.py --lr 1e-4\n"
      "behind --:    a job without a file: torchrun, python -m torch.distributed.run|launch or "
      "msrun with what it would start, in this directory; nodes and\n"
      "              processes are as many as it says, '${save.dir}' in single quotes is filled "
      "in, variables go with --env (or see 'muster import')\n"
      "a chain:      a spec with stages; one after another is followed. A stage whose 'creates' is "
      "there is not run again as long as neither its spec nor what\n"
      "              it is made from has changed; 'muster explain stages' says more. What -d "
      "prints names all of it: 'muster wait' and 'muster cancel' take it\n"
      "              for the whole chain, 'show', 'why' and 'logs' for the stage that matters "
      "most\n"
      "prints:       events, why it waits, the lines of the rank that speaks for the job, error "
      "lines of every rank; 'muster logs' has them all. A terminal has\n"
      "              a live view below them, on stderr where stdout is a file; NO_COLOR takes the "
      "colours, TERM=dumb the view\n"
      "exit:         0 it succeeded (with -d: it was submitted; after Ctrl-C: it goes on)  1 it "
      "failed  2 these nodes can never run it  3 it was cancelled;\n"
      "              of a chain the worst of its stages\n"
      "              4 --timeout is over  12 the name is taken by a live job, or the request id by "
      "another spec  13 no controller  64 the spec is wrong\n"
      "              70 the controller took no new job: its disk is nearly full, or it has too "
      "much to do");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return run(chosen, *options); });
}

}  // namespace muster::client
