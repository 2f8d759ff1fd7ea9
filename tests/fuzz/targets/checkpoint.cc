// The ends of checkpoint files: is a zip, a .ckpt or a safetensors file complete to its last byte?
#include <algorithm>
#include <optional>
#include <string>

#include "common/engine/files/ckpt_end.h"
#include "common/engine/files/safetensors_end.h"
#include "common/engine/files/zip_end.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

using namespace muster::engine;

std::string_view tail_of(std::string_view file, std::size_t most) {
  return file.substr(file.size() - std::min(file.size(), most));
}

void check_zip(std::string_view file) {
  const bool whole = zip_is_whole(tail_of(file, kZipTailBytes), file.size());
  require(!whole || file.size() >= 22 + 46, "an archive has a record at its end and one a file");
  require(!zip_is_whole(file, file.size() + 1) || file.size() >= kZipTailBytes,
          "a file that grew meanwhile is not whole");
  // The end of a file that is too long to be read whole. This runs only if there is an end record:
  // a search without one takes a thousand times as long.
  if (file.find("PK\5\6") != std::string_view::npos && file.size() < kZipTailBytes) {
    std::string tail(kZipTailBytes - file.size(), '\0');
    tail += file;
    (void)zip_is_whole(tail, std::uint64_t{1} << 40);
  }
}

void check_ckpt(std::string_view file) {
  const CkptEnd end = read_ckpt_end(tail_of(file, kCkptTailBytes), file.size());
  require(end.framed || (!end.closed && !end.epoch_num && !end.step_num && !end.global_step),
          "a file without values says nothing");
}

void check_safetensors(std::string_view file) {
  const auto bytes = safetensors_header_bytes(file.substr(0, 8), file.size());
  if (!bytes) return;
  require(*bytes <= file.size() - 8, "a header is in its file");
  const SafetensorsHeader header =
      read_safetensors_header(file.substr(8, static_cast<std::size_t>(*bytes)), file.size());
  if (!header.whole) return;
  for (const auto& scalar :
       {header.epoch_num, header.step_num, header.global_step, header.loss_scale}) {
    if (scalar)
      require(scalar->at >= 8 + *bytes && scalar->at + scalar->bytes <= file.size(),
              "a value stands in the file");
  }
}

}  // namespace

void checkpoint(std::string_view input) {
  check_zip(input);
  check_ckpt(input);
  check_safetensors(input);
  // Only the header, with tensors of any size after it, which no input can contain.
  for (const std::uint64_t behind : {std::uint64_t{0}, std::uint64_t{4}, std::uint64_t{1} << 40}) {
    const std::uint64_t size = 8 + input.size() + behind;
    const SafetensorsHeader header = read_safetensors_header(input, size);
    for (const auto& scalar :
         {header.epoch_num, header.step_num, header.global_step, header.loss_scale})
      if (header.whole && scalar)
        require(scalar->at >= 8 + input.size() && scalar->at + scalar->bytes <= size,
                "a value stands in the file");
  }
}

}  // namespace muster::fuzz
