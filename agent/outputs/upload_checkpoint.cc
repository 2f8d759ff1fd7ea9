#include "agent/outputs/upload_checkpoint.h"

#include <fmt/format.h>

#include <utility>

#include "agent/outputs/send_texts.h"
#include "agent/outputs/stored_checkpoint.h"
#include "agent/outputs/upload_outputs.h"
#include "common/base/controls.h"
#include "common/digest/sha256.h"
#include "common/log/log.h"

namespace muster::agent {

Uploaded upload_checkpoint(const UploadWork& work, const CheckpointPlace& place,
                           const CheckpointFiles& files) {
  const auto wanted = wanted_of(work.upload);
  if (!wanted) return Uploaded::failed(wanted.error());
  for (const auto& [name, state] : files.files)
    if (!wanted->has(name))
      return {.files = 0,
              .bytes = 0,
              .problem = fmt::format("outputs.include leaves out '{}'", without_controls(name))};
  const auto below = below_out(place);
  if (!below) return Uploaded::failed(below.error());
  Uploaded sent = send_files(work, {.dir = files.dir,
                                    .list = [&] { return unchanged(files, work.owner); },
                                    .is_last = nullptr,
                                    .before_fresh =
                                        [&](const std::vector<std::string>& /*names*/) {
                                          unseal(work, {.dir = *below, .step = place.step});
                                        }});
  const store::Sums below_out_sums = std::exchange(sent.sums, {});
  if (!sent.problem.empty() || work.upload.node().empty()) return sent;
  if (below_out_sums.size() < files.files.size()) {
    log::warn("a checkpoint gets no list: not all of it could be read after it was uploaded",
              {{"job", work.job}, {"step", place.step}});
    return sent;
  }
  store::Sums sums;
  for (const auto& [name, sha256] : below_out_sums)
    sums.emplace(name.substr(below->size() + 1), sha256);
  const std::string list = store::sums_text(sums);
  const std::string name =
      fmt::format("{}/{}", *below, store::node_sums_name(place.step, work.upload.node()));
  sent.problem = send_texts(work, {{name, list}}).problem;
  if (sent.problem.empty()) sent.sums_sha256 = sha256_hex(list);
  return sent;
}

Uploaded upload_seal(const UploadWork& work, const CheckpointPlace& place,
                     const std::vector<NodeSums>& sums) {
  const auto below = below_out(place);
  if (!below) return Uploaded::failed(below.error());
  const auto marks = marks_of(place, work.owner);
  if (!marks) return Uploaded::failed(marks.error());
  std::map<std::string, std::string> texts = *marks;
  store::Sums lists;
  for (const NodeSums& one : sums)
    lists.emplace(store::node_sums_name(place.step, one.node), one.sha256);
  if (!lists.empty())
    texts.emplace(fmt::format("{}/{}", *below, store::step_sums_name(place.step)),
                  store::sums_text(lists));
  if (texts.empty()) return {};
  return send_texts(work, texts, [&](const std::string& name) { return marks->contains(name); });
}

}  // namespace muster::agent
