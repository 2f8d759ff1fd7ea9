#include "client/commands/job/plan_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "client/render/text.h"
#include "common/store/manifest.h"
#include "common/store/store_url.h"

namespace muster::client {
namespace {

// One may take as long as a check of a store.
constexpr std::chrono::seconds kEachMost(60), kBeginWithin(60);

bool has_lists(const v1::PlannedInput& input) {
  const auto url = store::parse_url(input.url());
  return url && (url->scheme == store::Scheme::Obs || url->scheme == store::Scheme::S3);
}

// As if all lay in one directory, which is listed before and after, and for each batch.
std::string requests_text(const v1::PlannedInput& input) {
  if (!has_lists(input)) return {};
  constexpr std::uint64_t kInOneList = 1000;
  const auto parts = [](std::uint64_t all, std::uint64_t one) {
    return std::max<std::uint64_t>(1, all / one + (all % one != 0 ? 1 : 0));
  };
  const std::uint64_t lists = parts(input.objects(), kInOneList),
                      batches = std::max(parts(input.objects(), store::kBatchCount),
                                         parts(input.bytes(), store::kBatchBytes));
  return fmt::format(
      "; to a node that has nothing of it {} GET{} and about {} list requests, else {}",
      input.objects(), input.objects() == 1 ? "" : "s", (2 + batches) * lists, lists);
}

}  // namespace

InputCounts::InputCounts(const Session& session)
    : session_(session), until_(std::chrono::steady_clock::now() + kBeginWithin) {}

void InputCounts::fill(v1::PlanJobResponse& plan) {
  for (const v1::InputSpec& input : plan.spec().inputs()) {
    if (!store::is_url(input.from())) continue;
    v1::PlannedInput& one = *plan.add_inputs();
    one = counted(input, plan);
    one.set_name(input.name());
    one.set_url(input.from());
    if (const auto path = plan.resolved().inputs().find(input.name());
        path != plan.resolved().inputs().end())
      one.set_path(path->second);
  }
}

v1::PlannedInput InputCounts::counted(const v1::InputSpec& input, const v1::PlanJobResponse& plan) {
  v1::CheckStoreRequest request;
  request.set_url(input.from());
  request.set_measure(true);
  *request.mutable_include() = input.include();
  const auto [known, fresh] = known_.try_emplace(request.SerializeAsString());
  v1::PlannedInput& one = known->second;
  if (!fresh) return one;
  if (std::chrono::steady_clock::now() > until_) {
    one.set_trouble("the inputs before it took too long");
    return one;
  }
  if (!plan.nodes().empty() && plan.waits_for().empty())
    request.set_node(plan.nodes(0).node());  // others of the plan are made up
  const auto answer = ask(session_, &Stores::CheckStore, request, nullptr, kEachMost);
  if (!answer) {
    one.set_trouble(answer.error().message);
    return one;
  }
  one.set_store(answer->store());
  one.set_node(answer->node());
  one.set_trouble(answer->trouble());
  if (answer->trouble().empty() && answer->objects() == 0)
    one.set_trouble(input.include().empty() ? "there is nothing at this URL"
                                            : "there is nothing of such a name at this URL");
  one.set_objects(answer->objects());
  one.set_bytes(answer->bytes());
  return one;
}

std::string inputs_text(const v1::PlanJobResponse& plan, const render::Style& style) {
  std::string out;
  for (const v1::PlannedInput& one : plan.inputs()) {
    const std::string head =
        fmt::format("# inputs.{}: {}", render::printable(one.name()), render::printable(one.url()));
    if (!one.trouble().empty()) {
      out += style.paint(render::Tint::Warn,
                         fmt::format("{}: {}", head, render::printable(one.trouble()))) +
             "\n";
      continue;
    }
    out += style.paint(render::Tint::Dim,
                       fmt::format("{}: {} object{}, {} for each node, by store '{}'{}", head,
                                   one.objects(), one.objects() == 1 ? "" : "s",
                                   render::bytes_text(one.bytes()), render::printable(one.store()),
                                   requests_text(one))) +
           "\n";
  }
  return out;
}

}  // namespace muster::client
