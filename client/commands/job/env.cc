// muster env JOB --rank R: prints the environment and command line that a rank got from muster,
// with the origin of each value. It also prints the files and auxiliary processes of the rank's
// node. --training-rank R means a rank of the training inside a node's script (launch.per: node).
#include <fmt/format.h>

#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/render/launch_text.h"

namespace muster::client {
namespace {

struct EnvOptions {
  std::string job;
  std::uint32_t rank = 0;
  bool training = false;  // `rank` is that of --training-rank
  std::uint32_t attempt = 0;
  std::string output = "table";
};

Result<int> env(const Context& context, const EnvOptions& options) {
  const auto fetch = [&]() -> Result<v1::GetRankLaunchResponse> {
    v1::GetRankLaunchRequest request;
    request.set_job(options.job);
    request.set_rank(options.rank);
    request.set_attempt(options.attempt);
    request.set_training(options.training);
    return ask(context, &Jobs::GetRankLaunch, request);
  };
  return show_answer<v1::GetRankLaunchResponse>(
      options.output, fetch,
      {.names = {},
       .document = [](const auto& answer,
                      render::Format format) { return render::launch_document(answer, format); },
       .people =
           [&](const auto& answer, bool) {
             std::string first =
                 render::files_text(answer.files(), render::Contents::No, context.out);
             for (const auto& auxiliary : answer.auxiliaries())
               first += render::auxiliary_text(auxiliary, context.out);
             fmt::print("{}{}{}", first, first.empty() ? "" : "\n",
                        render::launch_text(answer.launch(), context.out));
           }});
}

}  // namespace

void add_env(CLI::App& app, Context& context, int& exit) {
  auto options = std::make_shared<EnvOptions>();
  CLI::App* command =
      app.add_subcommand("env",
                         "Print what a rank really gets: command line, directory, environment and "
                         "where each value came from (not what runtime.setup adds to it)");
  add_job_option(*command, options->job);
  CLI::Option* rank = add_number_option(*command, "-r,--rank", options->rank,
                                        "which one, counted over the whole job from 0")
                          ->type_name("RANK");
  CLI::Option* training =
      add_number_option(*command, "--training-rank", options->rank,
                        "instead of --rank: a rank of the training, also where a node's script "
                        "(launch.per: node) has the same number")
          ->excludes(rank)
          ->type_name("RANK");
  add_number_option(*command, "--attempt", options->attempt,
                    "of this attempt instead of the current one", 1)
      ->type_name("N");
  add_output_option(*command, options->output, render::Names::No);
  command->footer(
      "With launch.per: node, --rank is a node's script or, if no script has the number, a rank of "
      "the training. --training-rank is always a rank of the training.\n"
      "What the node added has the source 'node': PATH, HOME, USER and the like where the job does "
      "not set them, and the program's path, which is looked up\n"
      "there. Before a node has started its ranks, and in 'muster plan', that part is not known "
      "yet, and '(run directory)' stands for the attempt's directory\n"
      "on the node.");
  on_chosen(*command, context, exit,
            [options, rank, training](const Context& chosen) -> Result<int> {
              if (rank->count() == 0 && training->count() == 0)
                return fail(ErrorCode::InvalidArgument,
                            "muster env: --rank is required, or --training-rank; see 'muster env "
                            "--help'");
              options->training = training->count() > 0;
              return env(chosen, *options);
            });
}

}  // namespace muster::client
