// What the verbs share: one call to the controller, an answer in the format of -o, a connection
// that Ctrl-C and a time-out end, and how a verb's result becomes an exit code. Function templates
// without state. One thread.
//
// A verb's function returns its exit code, or the error that main prints.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/commands/call/context.h"
#include "client/commands/call/interrupt.h"
#include "client/commands/call/options.h"
#include "client/render/json_text.h"
#include "client/render/style.h"

namespace muster::client {

using Jobs = v1::JobService::Stub;
using Nodes = v1::NodeService::Stub;
using Certificates = v1::CertificateService::Stub;
using Secrets = v1::SecretService::Stub;
using Stores = v1::StoreService::Stub;

inline constexpr std::chrono::seconds kCallTime(20);
// used after --timeout is over: within a short time-out no call may have finished yet
inline constexpr std::chrono::seconds kLastCallTime(3);

// Makes one call of a Jobs, Nodes, Certificates, Secrets or Stores method. With `interrupt`, the
// call ends as soon as the interrupt fires.
template <class Stub, class Request, class Response>
Result<Response> ask(const Session& session,
                     grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                     const Request& request, Interrupt* interrupt = nullptr,
                     std::chrono::milliseconds time = kCallTime) {
  grpc::ClientContext call;
  session.prepare(call, time);
  std::optional<CallGroup::Member> member;
  if (interrupt != nullptr) member.emplace(interrupt->calls(), call);
  Response response;
  const grpc::Status status = (session.stub<Stub>().*method)(&call, request, &response);
  if (!status.ok()) return fail(to_error(session, status));
  return response;
}

// The same for a verb that makes no other call.
template <class Stub, class Request, class Response>
Result<Response> ask(const Context& context,
                     grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                     const Request& request) {
  auto session = context.connect();
  if (!session) return fail(std::move(session.error()));
  return ask(*session, method, request);
}

inline Result<v1::Job> get_job(const Context& context, const std::string& job) {
  v1::GetJobRequest request;
  request.set_job(job);
  auto response = ask(context, &Jobs::GetJob, request);
  if (!response) return fail(std::move(response.error()));
  return std::move(*response->mutable_job());
}

// The ways to print an answer.
template <class Answer>
struct Views {
  // -o name: one a line; unset: not offered
  std::function<std::string(const Answer&)> names;
  std::function<std::string(const Answer&, render::Format)> document;  // -o json, jsonl, yaml
  std::function<void(const Answer&, bool wide)> people;                // -o table, wide: prints it
};

// Checks the format before the call is made.
template <class Answer, class Fetch>
Result<int> show_answer(const std::string& output, Fetch fetch, const Views<Answer>& views) {
  const auto format =
      render::parse_format(output, views.names ? render::Names::Yes : render::Names::No);
  if (!format) return fail(format.error());
  Result<Answer> answer = fetch();
  if (!answer) return fail(std::move(answer.error()));
  if (*format == render::Format::Name) {
    const std::string names = views.names(*answer);  // unchanged when a program reads them
    fmt::print("{}", render::is_terminal(1) ? render::printable_lines(names) : names);
  } else if (*format == render::Format::Table || *format == render::Format::Wide) {
    views.people(*answer, *format == render::Format::Wide);
  } else {
    fmt::print("{}", views.document(*answer, *format));
  }
  return kOk;
}

// For verbs that may block: calls `act(session, interrupt)`. It catches Ctrl-C before the first
// thread starts. An empty `timeout` means none.
template <class Act>
Result<int> connected(const Context& context, const std::string& timeout, Act act) {
  std::optional<std::chrono::milliseconds> limit;
  if (!timeout.empty()) {
    auto parsed = parse_timeout(timeout);
    if (!parsed) return fail(std::move(parsed.error()));
    limit = *parsed;
  }
  Interrupt interrupt(limit);
  auto session = context.connect();
  if (!session) return fail(std::move(session.error()));
  return act(std::as_const(*session), interrupt);
}

// Calls `act(context)` if the user chose this command.
template <class Act>
void on_chosen(CLI::App& command, Context& context, int& exit, Act act) {
  command.callback([&context, &exit, verb = command.get_name(), act = std::move(act)] {
    const bool taken = !context.command || std::ranges::find(context.command_verbs, verb) !=
                                               context.command_verbs.end();
    const Result<int> done =
        taken ? act(context)
              : fail(ErrorCode::InvalidArgument,
                     fmt::format("'muster {}' takes no command behind '--'", verb));
    exit = done ? *done : report(context, done.error());
  });
}

// The same for a verb that shows one job: calls `act(context, job, output)`.
template <class Act>
void on_chosen_job(CLI::App& command, Context& context, int& exit, Act act) {
  struct Options {
    std::string job;
    std::string output = "table";
  };
  auto options = std::make_shared<Options>();
  add_job_option(command, options->job);
  add_output_option(command, options->output);
  on_chosen(command, context, exit, [options, act = std::move(act)](const Context& chosen) {
    return act(chosen, options->job, options->output);
  });
}

}  // namespace muster::client
