#include "common/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "common/base/assert.h"
#include "common/io/file.h"

namespace muster::io {
namespace {

constexpr int kGzip = 16;  // zlib: instead of its own header
constexpr int kWindowBits = 15;
constexpr int kMemory = 8;
constexpr std::size_t kBuffer = 64 << 10;
constexpr std::size_t kMost = std::numeric_limits<uInt>::max();

Bytef* bytes_of(std::string_view text) {
  // zlib reads from it alone.
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

}  // namespace

struct GzipWriter::Stream {
  z_stream zlib{};
  std::array<char, kBuffer> buffer{};
};

GzipWriter::GzipWriter(int fd) : fd_(fd), stream_(std::make_unique<Stream>()) {
  const int made = ::deflateInit2(&stream_->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                  kWindowBits + kGzip, kMemory, Z_DEFAULT_STRATEGY);
  MUSTER_ASSERT(made == Z_OK, "zlib has no memory, or is of another version");
}

GzipWriter::~GzipWriter() { ::deflateEnd(&stream_->zlib); }

Result<void> GzipWriter::put(std::string_view bytes, int flush) {
  z_stream& zlib = stream_->zlib;
  zlib.next_in = bytes_of(bytes);
  zlib.avail_in = static_cast<uInt>(bytes.size());
  for (;;) {
    zlib.next_out = reinterpret_cast<Bytef*>(stream_->buffer.data());
    zlib.avail_out = static_cast<uInt>(kBuffer);
    const int result = ::deflate(&zlib, flush);
    MUSTER_ASSERT(result != Z_STREAM_ERROR, "a gzip file was written to after its end");
    std::size_t written = 0;
    const std::string_view out(stream_->buffer.data(), kBuffer - zlib.avail_out);
    if (const int error = write_all(fd_, out, written); error != 0)
      return fail_errno("writing", error);
    if (flush == Z_FINISH ? result == Z_STREAM_END : zlib.avail_out > 0) return {};
  }
}

Result<void> GzipWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view some = bytes.substr(0, kMost);
    if (auto done = put(some, Z_NO_FLUSH); !done) return done;
    bytes.remove_prefix(some.size());
  }
  return {};
}

Result<void> GzipWriter::finish() { return put({}, Z_FINISH); }

Result<void> read_gzip(std::string_view file, const std::function<bool(std::string_view)>& take) {
  z_stream zlib{};
  const int made = ::inflateInit2(&zlib, kWindowBits + kGzip);
  MUSTER_ASSERT(made == Z_OK, "zlib has no memory, or is of another version");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&zlib, &::inflateEnd);
  std::array<char, kBuffer> buffer{};
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    if (zlib.avail_in == 0) {
      const std::string_view some = file.substr(0, kMost);
      if (some.empty()) return fail(ErrorCode::DataLoss, "its end is missing");
      zlib.next_in = bytes_of(some);
      zlib.avail_in = static_cast<uInt>(some.size());
      file.remove_prefix(some.size());
    }
    zlib.next_out = reinterpret_cast<Bytef*>(buffer.data());
    zlib.avail_out = static_cast<uInt>(kBuffer);
    result = ::inflate(&zlib, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      return fail(ErrorCode::DataLoss, "it is no gzip file, or is damaged");
    const std::string_view out(buffer.data(), kBuffer - zlib.avail_out);
    if (!out.empty() && !take(out)) return {};
  }
  return {};
}

}  // namespace muster::io
