// Append files of run directories: bytes -> frames -> records, read at once and in small reads,
// torn at any byte, damaged at any byte.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/io/frames.h"
#include "common/rundir/event_log.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

using namespace muster::io;

constexpr std::size_t kPayloadsMost = 64;

// A file with a path. Readers of run directories follow no link, so a file in memory, whose path
// would be that of its descriptor, does not do.
class NamedFile {
 public:
  explicit NamedFile(std::string_view bytes) : fd_(::mkstemp(path_.data())) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
      if (written <= 0) broken("the file cannot be written");
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  ~NamedFile() { ::unlink(path_.c_str()); }
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "fuzz-frames.XXXXXX";
  UniqueFd fd_;
};

std::string encoded(const Decoded& decoded) {
  std::string bytes;
  for (const std::string_view payload : decoded.payloads) bytes += encode_frame(payload);
  return bytes;
}

void check_bytes(std::string_view bytes) {
  const Decoded decoded = decode_frames(bytes);
  require(decoded.used <= bytes.size() && encoded(decoded) == bytes.substr(0, decoded.used),
          "frames are what was written");
  require((decoded.tail == Tail::Clean) == (decoded.used == bytes.size()), "a clean tail is none");
}

// Reads by path, a few bytes at a time: the frames and the result about the tail must be the same.
void check_file(std::string_view bytes, std::size_t most) {
  const NamedFile file(bytes);
  const Decoded decoded = decode_frames(bytes);
  std::vector<std::string> frames;
  std::uint64_t next = 0;
  for (bool more = true; more;) {
    const auto read = read_frames(file.path(), next, most);
    require(read.has_value(), "the file can be read");
    frames.insert(frames.end(), read->frames.begin(), read->frames.end());
    require(!read->more || read->next > next, "every read gets on");
    next = read->next;
    more = read->more;
    if (!more) require(read->tail == decoded.tail, "small reads say the same of the tail");
  }
  require(next == decoded.used && std::ranges::equal(frames, decoded.payloads),
          "small reads give the same frames");

  rundir::EventReader events(file.path());
  require(events.read().has_value() && events.offset() <= decoded.used,
          "events are read, or damage is told");
  rundir::MarkReader marks(file.path());
  require(marks.read().has_value() && marks.offset() <= decoded.used,
          "marks are read, or damage is told");
}

// Uses the input as payloads, one a line. This makes sound frames, which random bytes never are.
// Then they are torn and damaged where the input says so.
void check_payloads(std::string_view input) {
  std::string bytes;
  std::vector<std::string_view> payloads;
  for (std::string_view rest = input; !rest.empty() && payloads.size() < kPayloadsMost;) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) {
      payloads.push_back(rest.substr(0, end));
      bytes += encode_frame(payloads.back());
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (payloads.empty()) return;
  const Decoded whole = decode_frames(bytes);
  require(whole.tail == Tail::Clean && std::ranges::equal(whole.payloads, payloads),
          "what is written is read");

  std::size_t number = 0;
  for (const char c : input.substr(0, 4)) number = number << 8 | static_cast<unsigned char>(c);
  const std::size_t at = number % bytes.size();
  const Decoded torn = decode_frames(std::string_view(bytes).substr(0, at));
  require(torn.tail != Tail::Damaged, "a torn file is not damaged");
  require(std::ranges::equal(torn.payloads, std::span(payloads).first(torn.payloads.size())),
          "a torn file has the frames before");

  std::string damaged = bytes;
  damaged[at] = static_cast<char>(damaged[at] ^ (1 << (number % 8)));
  const Decoded rest = decode_frames(damaged);
  require(rest.used <= at && rest.tail != Tail::Clean, "a flipped bit is noticed");
  require(std::ranges::equal(rest.payloads, std::span(payloads).first(rest.payloads.size())),
          "frames before the damage stand");
  check_file(damaged, 1 + number % 64);
}

}  // namespace

void frames(std::string_view input) {
  check_bytes(input);
  check_file(input, input.empty() ? 1 : 1 + static_cast<unsigned char>(input.back()) % 64);
  check_payloads(input);
}

}  // namespace muster::fuzz
