// muster ranktable show JOB: prints the rank table that a job's ranks have, byte for byte.
#include <cstdio>

#include "client/commands/call/call.h"
#include "client/commands/ranktable/ranktable.h"

namespace muster::client {
namespace {

Result<int> show_table(const Context& context, const std::string& job, std::uint32_t attempt) {
  v1::GetRankTableRequest request;
  request.set_job(job);
  request.set_attempt(attempt);
  const auto answer = ask(context, &Jobs::GetRankTable, request);
  if (!answer) return fail(answer.error());
  // main() reports a failed write.
  std::fwrite(answer->content().data(), 1, answer->content().size(), stdout);
  return kOk;
}

}  // namespace

void add_ranktable_show(CLI::App& group, Context& context, int& exit) {
  struct Options {
    std::string job;
    std::uint32_t attempt = 0;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = group.add_subcommand(
      "show", "Print the rank table of a job: the bytes that its nodes have, and nothing else");
  add_job_option(*command, options->job);
  add_number_option(*command, "--attempt", options->attempt,
                    "of this attempt instead of the current one", 1)
      ->type_name("N");
  on_chosen(*command, context, exit, [options](const Context& chosen) {
    return show_table(chosen, options->job, options->attempt);
  });
}

}  // namespace muster::client
