#include "client/render/event_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "client/render/text.h"
#include "client/render/wrap.h"

namespace muster::render {
namespace {

Tint tint_of(const v1::Event& event) {
  Tint tint = Tint::Plain;
  if (event.type() == "attempt-broke" || event.type() == "node-start-failed") tint = Tint::Bad;
  constexpr std::array<std::string_view, 9> kWarnings = {
      "attempt-ended",          "cancel-requested", "node-declared-dead",
      "checkpoint-quarantined", "loss-not-finite",  "checkpoint-not-sent",
      "outputs-incomplete",     "logs-incomplete",  "unknown-files"};
  if (event.type() == "caught-up" || event.type() == "first-step" ||
      event.type() == "checkpoint-completed")
    tint = Tint::Good;
  const bool went_back = event.text().find(" did not go on from ") != std::string::npos;
  if (went_back || std::ranges::find(kWarnings, event.type()) != kWarnings.end()) tint = Tint::Warn;
  if (event.type() == "job-ended") tint = phase_tint(event.phase());
  return tint;
}

constexpr std::size_t kTypeColumns = 22;

}  // namespace

std::string event_line(const v1::Event& event, const Style& style, bool with_job,
                       std::size_t width) {
  std::string out = style.paint(Tint::Dim, clock_text(event.at())) + "  ";
  if (with_job)
    out += fmt::format("{:<16} ",
                       printable(event.job_name().empty() ? event.node() : event.job_name()));
  out +=
      event.attempt() > 0 ? fmt::format("attempt {:<3} ", event.attempt()) : std::string(12, ' ');
  const std::string type = printable(event.type());
  out += style.paint(tint_of(event), type);
  out.append(type.size() < kTypeColumns ? kTypeColumns - type.size() : 1, ' ');
  const std::size_t indent = display_width(out);
  return wrap(out + printable(event.text()), indent, width);
}

std::string short_event_line(const v1::Event& event, const Style& style, std::size_t width) {
  constexpr std::size_t kToSeconds = 8;  // 12:00:00
  const std::string time =
      style.paint(Tint::Dim, clock_text(event.at()).substr(0, kToSeconds)) + "  ";
  return wrap(time + style.paint(tint_of(event), printable(event.text())), display_width(time),
              width);
}

bool worth_showing(const v1::Event& event) {
  constexpr std::array kQuiet = {"node-swept", "logs-collected", "logs-uploaded", "job-archived",
                                 "node-started"};
  return std::ranges::find(kQuiet, event.type()) == kQuiet.end();
}

}  // namespace muster::render
