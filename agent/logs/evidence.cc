#include "agent/logs/evidence.h"

#include <fmt/format.h>

#include "agent/logs/line_scanner.h"

namespace muster::agent {
namespace {

// Returns the length of a terminal color sequence ("ESC [ 1 ; 31 m") at the beginning of `text`; 0:
// none.
std::size_t paint_length(std::string_view text) {
  constexpr std::size_t kMost = 64;
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.substr(0, kMost).find_first_not_of("0123456789;:", 2);
  return end != std::string_view::npos && (text[end] == 'm' || text[end] == 'K') ? end + 1 : 0;
}

// Returns `line` if it has no color sequences, else `room` with the line without them.
std::string_view without_paint(std::string_view line, std::string& room) {
  if (line.find('\x1b') == std::string_view::npos) return line;
  room.clear();
  for (std::size_t at = 0; at < line.size();) {
    if (const std::size_t skip = paint_length(line.substr(at)); skip > 0) {
      at += skip;
    } else {
      room += line[at++];
    }
  }
  return room;
}

// Returns the line without control bytes. No writer promises valid UTF-8, so every byte that
// protobuf could refuse is replaced.
std::string printable(std::string_view line, std::size_t most = kEvidenceMost) {
  std::string text;
  text.reserve(std::min(line.size(), most));
  for (std::size_t at = 0; at < line.size() && text.size() < most;) {
    if (const std::size_t skip = paint_length(line.substr(at)); skip > 0) {
      at += skip;
      continue;
    }
    const auto byte = static_cast<unsigned char>(line[at]);
    std::size_t length = byte < 0x80                   ? 1
                         : byte >= 0xc2 && byte < 0xe0 ? 2
                         : byte >= 0xe0 && byte < 0xf0 ? 3
                         : byte >= 0xf0 && byte < 0xf5 ? 4
                                                       : 0;
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
    if (text.size() + length > most) break;
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

// An exception that no rule knows has ended its process all the same. It ranks just below the known
// ones.
constexpr int kUnknownException = 89;
// "Exception ignored in: ...", and the traceback below it: Python hit the exception during cleanup,
// mostly while it exited because of a real error, and continued.
constexpr int kIgnored = 5;
// The training continued with a loss that is no number. This ranks above the traces of another
// rank's death, and below any line that names an end of its own.
constexpr int kVanishedLoss = 50;

// Lines up to this rank point to other lines (common/engine/evidence.cc): "refer to 'Ascend Error
// Message'", EE9999, ERR01100; "Please check logs in directory".
constexpr int kPointer = 38, kLauncherWord = 15;

// Turns "  File "train.py", line 214, in build_model" into "train.py:214, in build_model"; else
// empty.
std::string frame_in(std::string_view line) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ";
  if (!line.starts_with(kFile)) return {};
  const std::size_t end = line.find(kLine, kFile.size());
  if (end == std::string_view::npos) return {};
  const std::string_view number = line.substr(end + kLine.size());
  return fmt::format("{}:{}", line.substr(kFile.size(), end - kFile.size()), number);
}

// Appends the frame to the last line of a traceback. The line is cut so that the frame fits.
std::string with_frame(const std::string& line, const std::string& frame) {
  if (frame.empty()) return line;
  const std::string place = fmt::format(" ({})", printable(frame));
  return place.size() > kEvidenceMost / 2
             ? line
             : fmt::format("{}{}", printable(line, kEvidenceMost - place.size()), place);
}

bool ends_with_unseen(std::string_view line) {
  const std::size_t last = line.find_last_not_of(" \t\r");
  return last != std::string_view::npos &&
         line.substr(0, last + 1).ends_with("unrecognized arguments:");
}

}  // namespace

v1::EvidenceKind kind_of(const engine::Evidence& evidence) {
  using enum engine::Trouble;
  switch (evidence.trouble) {
    case None:
    case Interrupted:
    case TracebackHead: return v1::EVIDENCE_KIND_UNSPECIFIED;
    case Link:
    case ConnectTimeout:
    case CollectiveTimeout:
    case PeerLost: return v1::EVIDENCE_KIND_CONSEQUENCE;
    case Operator:
      return evidence.rank > kPointer ? v1::EVIDENCE_KIND_CAUSE : v1::EVIDENCE_KIND_UNSPECIFIED;
    case Complaint:
      return evidence.rank > kLauncherWord ? v1::EVIDENCE_KIND_CAUSE
                                           : v1::EVIDENCE_KIND_UNSPECIFIED;
    case DeviceMemory:
    case HostMemory:
    case Storage:
    case Arguments:
    case NotANumber:
    case DeviceFault:
    case DeviceBusy:
    case Port:
    case Crash:
    case RankTable:
    case Settings:
    case NotFound:
    case Killed:
    case Exception:
    case Resource:
    case DataStall: return v1::EVIDENCE_KIND_CAUSE;
  }
  return v1::EVIDENCE_KIND_UNSPECIFIED;
}

FoundEvidence as_reported(std::string_view line, const engine::Evidence& evidence) {
  FoundEvidence found{.line = printable(line), .kind = kind_of(evidence), .rank = evidence.rank};
  const std::string code(evidence.code);
  if (!code.empty() && found.line.find(code) == std::string::npos)
    found.line = printable(fmt::format("{}: {}", code, line));
  return found;
}

FoundEvidence find_evidence(std::string_view log_tail, const engine::Grammar* grammar) {
  std::string best, best_frame, code, vanished, frame, room;
  engine::Evidence best_is;  // its code would point into a line that is gone
  bool in_traceback = false, ignored = false;
  LineScanner lines;
  const auto examine = [&](std::string_view raw) {
    const std::string_view line = without_paint(raw, room);
    engine::Evidence evidence = engine::evidence_in(line);
    const std::string_view bare = without_rank(line);
    const bool heads = bare.starts_with("Traceback (most recent call last)");
    bool ends_traceback = false;
    if (bare.starts_with("Exception ignored ")) {
      ignored = true;
      evidence = {};
    } else if (heads) {
      in_traceback = true;
      frame.clear();
    } else if (in_traceback && indented(bare)) {
      if (std::string found = frame_in(bare); !found.empty()) frame = std::move(found);
    } else if (in_traceback) {
      in_traceback = false;
      ends_traceback = true;
      if (evidence.rank == 0)
        evidence = {.rank = kUnknownException, .trouble = engine::Trouble::Exception, .code = {}};
    }
    if (ignored && evidence.rank > 0)
      evidence = {.rank = kIgnored, .trouble = engine::Trouble::TracebackHead, .code = {}};
    if (!heads && !in_traceback && !bare.starts_with("Exception ignored ")) ignored = false;
    if (evidence.rank > 0 && evidence.rank >= best_is.rank) {
      best_is = evidence;
      best.assign(line);
      best_frame = ends_traceback ? frame : "";
      code.assign(evidence.code);
    }
    if (!grammar) return;
    const auto step = grammar->step(line);
    if (!step) return;
    if (engine::nan_sign(*step)) {
      if (vanished.empty()) vanished.assign(line);  // the line at which it began
    } else if (step->has_loss) {
      vanished.clear();
    }
  };
  lines.feed(log_tail, examine);
  lines.finish(examine);
  if (!vanished.empty() && best_is.rank < kVanishedLoss)
    return {.line = printable(vanished), .kind = v1::EVIDENCE_KIND_CAUSE, .rank = kVanishedLoss};
  best_is.code = code;
  // argparse joins the arguments with blanks: if nothing visible follows the colon, each of them is
  // a blank.
  if (best_is.trouble == engine::Trouble::Arguments && ends_with_unseen(best))
    best.append(best.ends_with(' ') ? "" : " ")
        .append("(a lone blank: in the script a line ends with a backslash and a blank behind it)");
  return as_reported(with_frame(best, best_frame), best_is);
}

std::string best_evidence(std::string_view log_tail) { return find_evidence(log_tail).line; }

}  // namespace muster::agent
