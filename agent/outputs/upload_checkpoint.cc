#include "agent/outputs/upload_checkpoint.h"

#include <fmt/format.h>

#include <utility>

#include "agent/outputs/upload_outputs.h"
#include "common/base/controls.h"

namespace muster::agent {
namespace {

Uploaded send(const UploadWork& work, const CheckpointFiles& files) {
  return send_files(
      work,
      {.dir = files.dir, .list = [&] { return unchanged(files, work.owner); }, .is_last = nullptr});
}

}  // namespace

Uploaded upload_checkpoint(const UploadWork& work, const CheckpointFiles& files) {
  const auto wanted = wanted_of(work.upload);
  if (!wanted) return Uploaded::failed(wanted.error());
  for (const auto& [name, state] : files.files)
    if (!wanted->has(name))
      return {.files = 0,
              .bytes = 0,
              .problem = fmt::format("outputs.include leaves out '{}'", without_controls(name))};
  return send(work, files);
}

Uploaded upload_seal(const UploadWork& work, const CheckpointPlace& place) {
  const auto seal = write_seal(place, work.owner);
  if (!seal) return Uploaded::failed(seal.error());
  if (seal->files.empty()) return {};
  return send(work, *seal);
}

}  // namespace muster::agent
