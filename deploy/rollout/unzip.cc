#include "deploy/rollout/unzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

namespace muster::rollout {

Result<std::string> unzipped(std::string bytes, std::size_t most) {
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  const auto broken = [] {
    return fail(ErrorCode::DataLoss, "inflating a compressed answer: it is damaged or too large");
  };
  constexpr int kGzip = 16 + MAX_WBITS;
  z_stream stream{};
  if (::inflateInit2(&stream, kGzip) != Z_OK) return broken();
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int state = Z_OK;
  while (state == Z_OK && out.size() < most) {
    constexpr std::size_t kPiece = 256 << 10;
    const std::size_t before = out.size(), room = std::min(kPiece, most - before);
    out.resize(before + room);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(room);
    state = ::inflate(&stream, Z_NO_FLUSH);
    out.resize(before + room - stream.avail_out);
  }
  ::inflateEnd(&stream);
  if (state != Z_STREAM_END) return broken();
  return out;
}

}  // namespace muster::rollout
