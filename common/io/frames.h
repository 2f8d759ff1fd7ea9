// Append files of frames: [u32 length][u32 crc32 of payload (zlib)][payload], little endian. One
// writer, any number of readers.
// The writer appends with a single write(2); a frame that did not fit (disk full) is cut off again,
// so that the file stays readable.
// A reader takes an offset and gets the sound frames from there and the next offset; it tells a
// torn tail (a frame still being
// written, or whose writer died: look again later) from damage (bytes that no writer wrote: no
// frame behind it can be trusted).
// A frame of length 0 is damage: that is how a tail looks which a power cut has turned to zeros.
// Any thread; blocking.
// Format and reasons: docs/run-directory.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::io {

inline constexpr std::size_t kFrameHeaderBytes = 8;
inline constexpr std::size_t kFramePayloadMax = 64U << 20U;  // a longer length field is damage

// Payload must not be empty nor longer than kFramePayloadMax.
std::string encode_frame(std::string_view payload);

enum class Tail : std::uint8_t { Clean, Torn, Damaged };

struct Decoded {
  std::vector<std::string_view> payloads;  // into the bytes that were given
  std::size_t used = 0;                    // bytes of sound frames
  Tail tail = Tail::Clean;                 // of what follows them
};
Decoded decode_frames(std::string_view bytes);

struct FramesRead {
  std::vector<std::string> frames;
  std::uint64_t next = 0;  // offset behind the last sound frame: hand it in next time
  Tail tail = Tail::Clean;
  bool more = false;  // stopped at `most`, not at the end
};
// From `offset`; a file that is not there yet has no frames. `most` bounds the bytes read in one
// call, but one whole frame is always read. A file shorter than `offset` is Damaged.
Result<FramesRead> read_frames(const std::filesystem::path& path, std::uint64_t offset,
                               std::size_t most = 16U << 20U);

class FrameWriter {
 public:
  // Makes the file (mode 0600) if it is not there; cuts off a torn tail that a dead writer left;
  // damage is ErrorCode::DataLoss.
  static Result<FrameWriter> open(const std::filesystem::path& path);

  // Each payload one frame, all in one write. On an error none of them is in the file.
  Result<void> append(const std::vector<std::string>& payloads);
  Result<void> append(const std::string& payload);

  // Asks the file system to hold room for `bytes` more without showing them (best effort): a later
  // full disk does not stop the appends.
  void reserve(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // errno of the last append; 0: it went well.
  [[nodiscard]] int error() const { return error_; }

 private:
  FrameWriter(std::filesystem::path path, UniqueFd fd, std::uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}
  std::filesystem::path path_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
  int error_ = 0;
  bool cut_pending_ = false;  // a part of a frame is at the end and could not be cut off yet
};

}  // namespace muster::io
