// Gzip files (RFC 1952): a writer to a descriptor, and a reader of the bytes of a file. The same
// bytes always give the same file. Any thread; blocking.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "common/base/error.h"

namespace muster::io {

class GzipWriter {
 public:
  // `fd` must stay open as long as the writer is used.
  explicit GzipWriter(int fd);
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  // Errors are reasons without a context: Io, ResourceExhausted.
  Result<void> write(std::string_view bytes);
  // The file is whole; it is not synced.
  Result<void> finish();

 private:
  struct Stream;
  Result<void> put(std::string_view bytes, int flush);
  const int fd_;
  std::unique_ptr<Stream> stream_;
};

// Gives what is compressed, piece by piece. `take` returns false to end it early. DataLoss: it is
// no gzip file, or is torn or damaged; what was given before is sound as far as it goes.
Result<void> read_gzip(std::string_view file, const std::function<bool(std::string_view)>& take);

}  // namespace muster::io
