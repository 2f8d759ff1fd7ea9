// Append-only files of frames: [u32 length][u32 crc32 of payload (zlib)][payload], little endian. A
// file has one writer, owned by the code that appends, and any number of readers. Any thread;
// blocking.
//
// The writer appends with a single write(2). If a frame does not fit (disk full), the writer cuts
// it off again, so that the file stays readable.
//
// A reader passes an offset and gets the sound frames from there and the next offset. It
// distinguishes two bad ends:
// - A torn tail is a frame that is still being written, or whose writer died. Read again later.
// - Damage is bytes that no writer wrote. No frame after them can be trusted.
//
// Neither waits for the other end of a pipe at the path: a job may put one there.
//
// A frame of length 0 is damage: a tail that a power cut has turned to zeros looks like this.
//
// Format and reasons: docs/run-directory.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"

namespace muster::io {

inline constexpr std::size_t kFrameHeaderBytes = 8;
inline constexpr std::size_t kFramePayloadMax = 64U << 20U;  // a larger length field is damage

// The payload must have 1 to kFramePayloadMax bytes.
std::string encode_frame(std::string_view payload);

enum class Tail : std::uint8_t { Clean, Torn, Damaged };

struct Decoded {
  std::vector<std::string_view> payloads;  // views into the argument's bytes
  std::size_t used = 0;                    // bytes of sound frames
  Tail tail = Tail::Clean;                 // of what follows them
};
Decoded decode_frames(std::string_view bytes);

inline constexpr std::size_t kReadMost = 16U << 20U;

struct FramesRead {
  std::vector<std::string> frames;
  std::uint64_t next = 0;  // offset after the last sound frame: pass it next time
  Tail tail = Tail::Clean;
  bool more = false;  // stopped at `most`, not at the end
  // Damaged because of what the file is (a link, another user's), and not of its bytes: a sentence.
  std::string wrong;
};
// Reads from `offset`. A file that does not exist yet has no frames. `most` bounds the bytes that
// one call reads, but the call always reads at least one whole frame. A file shorter than `offset`
// is Damaged. So is, with Links::Refuse, what is no file, and with Links::Own another user's file.
Result<FramesRead> read_frames(const At& at, std::uint64_t offset, std::size_t most = kReadMost,
                               Links links = Links::Follow);

class FrameWriter {
 public:
  // Creates the file (mode 0600) if it does not exist. Cuts off a torn tail that a dead writer
  // left. Damage is ErrorCode::DataLoss.
  static Result<FrameWriter> open(const At& at, Links links = Links::Follow);

  // Each payload becomes one frame; one write appends all of them. On an error none of them is in
  // the file.
  Result<void> append(const std::vector<std::string>& payloads);
  Result<void> append(const std::string& payload);

  // Asks the file system to reserve space for `bytes` more without a change of the file's size
  // (best effort). Then a full disk does not stop later appends.
  void reserve(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // errno of the last append, or 0 if that append succeeded.
  [[nodiscard]] int error() const { return error_; }

 private:
  FrameWriter(std::filesystem::path path, UniqueFd fd, std::uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}
  std::filesystem::path path_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
  int error_ = 0;
  bool cut_pending_ = false;  // part of a frame is at the end and could not be cut off yet
};

}  // namespace muster::io
