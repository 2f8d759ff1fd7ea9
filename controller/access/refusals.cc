#include "controller/access/refusals.h"

#include <fmt/format.h>

#include "common/log/log.h"

namespace muster::controller {

bool Refusals::due(const std::string& text, BootTime now) {
  // What is over is searched for only where it makes room.
  if (noted_.size() >= kTextsMost && !noted_.contains(text) && now - swept_ >= kSweptApart) {
    swept_ = now;
    std::erase_if(noted_, [&](const auto& entry) { return now - entry.second >= kWindow; });
  }
  if (noted_.size() >= kTextsMost && !noted_.contains(text)) {
    if (more_ && now - *more_ < kWindow) return false;
    more_ = now;
    log::warn("calls are refused for more reasons than are written here; no more of them are");
    return false;
  }
  const auto [entry, fresh] = noted_.try_emplace(text, now);
  if (!fresh && now - entry->second < kWindow) return false;
  entry->second = now;
  return true;
}

std::string failed_handshake_text(std::string_view why) {
  const std::string_view known =
      why == "certificate verify failed" ? ": the caller's certificate is of no CA of this "
                                           "cluster, or its time is over or has not "
                                           "come, by this machine's clock"
      : why == "peer did not return a certificate" ? ": the caller showed none"
                                                   : "";
  return fmt::format("a TLS handshake at the port of --listen failed ({}){}", why, known);
}

void Refusals::note(const std::string& text) {
  const MutexLock lock(mutex_);
  if (due(text, clock_.now().boot)) log::warn("a call was refused", {{"why", text}});
}

}  // namespace muster::controller
