#include "agent/watch/evidence.h"

#include "agent/watch/line_scanner.h"
#include "common/engine/grammar.h"

namespace muster::agent {
namespace {

// A line as people print it: no control bytes, valid UTF-8 is not promised by anybody, so everything else that protobuf could refuse is replaced.
std::string printable(std::string_view line) {
  std::string text;
  text.reserve(std::min(line.size(), kEvidenceMost));
  for (std::size_t at = 0; at < line.size() && text.size() < kEvidenceMost;) {
    const auto byte = static_cast<unsigned char>(line[at]);
    std::size_t length = byte < 0x80 ? 1 : byte >= 0xc2 && byte < 0xe0 ? 2 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xf0 && byte < 0xf5 ? 4 : 0;
    if (length > line.size() - at) length = 0;
    for (std::size_t next = 1; next < length; ++next) {
      const auto follow = static_cast<unsigned char>(line[at + next]);
      const unsigned char low = next > 1 ? 0x80 : byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
      const unsigned char high = next > 1 ? 0xbf : byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
      if (follow < low || follow > high) {
        length = 0;
        break;
      }
    }
    if (length == 0) {
      text += '?';
      ++at;
      continue;
    }
    if (text.size() + length > kEvidenceMost) break;
    if (length == 1 && (byte < 0x20 || byte == 0x7f)) {
      if (byte == '\t') text += ' ';
    } else {
      text.append(line.substr(at, length));
    }
    at += length;
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

bool indented(std::string_view line) { return line.starts_with(' ') || line.starts_with('\t'); }

// torch 2 puts "[rank3]: " before each line of a traceback.
std::string_view without_rank(std::string_view line) {
  if (!line.starts_with("[rank")) return line;
  const std::size_t end = line.find("]: ");
  return end == std::string_view::npos || end > 16 ? line : line.substr(end + 3);
}

// An exception that no rule knows is what ended its process all the same: just below those that are known.
constexpr int kUnknownException = 89;

}  // namespace

std::string best_evidence(std::string_view log_tail) {
  std::string best;
  int best_rank = 0;
  bool in_traceback = false;
  LineScanner lines;
  const auto look = [&](std::string_view line) {
    int rank = engine::evidence_rank(line);
    const std::string_view bare = without_rank(line);
    if (bare.starts_with("Traceback (most recent call last)")) {
      in_traceback = true;
    } else if (in_traceback && !indented(bare)) {
      in_traceback = false;
      if (rank == 0) rank = kUnknownException;
    }
    if (rank > 0 && rank >= best_rank) {
      best_rank = rank;
      best.assign(line);
    }
  };
  lines.feed(log_tail, look);
  lines.finish(look);
  return printable(best);
}

}  // namespace muster::agent
