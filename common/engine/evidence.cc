// Which line of a dead rank's log tells why it died. Signatures of PyTorch, torch_npu, CANN and the C library; the ranks order them: what caused a
// death stands above what another rank's death causes here (time-outs cascade through a gang).
#include <re2/re2.h>

#include <array>
#include <string_view>

#include "common/engine/grammar.h"

namespace muster::engine {
namespace {

constexpr std::size_t kLineBytesMax = 64 * 1024;
constexpr int kConsequence = 40;

struct Signature {
  std::string_view text;
  int rank;
};

// First match counts.
constexpr auto kSignatures = std::to_array<Signature>({
    // memory
    {"out of memory. Tried to allocate", 100},
    {"OutOfMemoryError", 100},
    {"Out of memory: Killed process", 100},
    {"EI0011", 100},
    {"EL0004", 100},
    {"Allocate continuous memory failed", 100},
    {"Memory not enough", 100},
    {"std::bad_alloc", 100},
    // storage
    {"No space left on device", 95},
    {"Disk quota exceeded", 95},
    {"Stale file handle", 95},
    {"file write failed", 95},
    // arguments
    {"unrecognized arguments", 92},
    {"the following arguments are required", 92},
    {": error: argument ", 92},
    // numbers
    {"found NaN in local", 88},
    // ports
    {"ddress already in use", 86},
    {"EI0019", 86},
    {"EI0020", 86},
    // crashes
    {"Fatal Python error", 85},
    {"Segmentation fault", 85},
    {"Bus error", 85},
    {"terminate called", 85},
    {"double free or corruption", 85},
    {"stack smashing detected", 85},
    {"Assertion `", 85},
    {"ERROR: AddressSanitizer", 85},
    // settings and device state
    {"EI0001", 80},
    {"EI0003", 80},
    {"EI0004", 80},
    {"EI0005", 80},
    {"EI0008", 80},
    {"EI0014", 80},
    {"EI0016", 80},
    {"EI0017", 80},
    {"EJ0001", 80},
    {"may be other processes occupying this card", 80},
    {"UCE ERROR", 80},
    {"command not found", 78},
    {"cannot execute", 78},
    {"Exec format error", 78},
    {"No such file or directory", 78},
    {"Permission denied", 78},
    // links and peers: the fault may be elsewhere
    {"EI0009", 60},
    {"EI0013", 60},
    {"EI0018", 60},
    {"error cqe", 60},
    {"EI0007", 55},
    {"EI0010", 55},
    {"E30008", 55},
    {"EI0002", kConsequence},
    {"EI0006", kConsequence},
    {"EI0012", kConsequence},
    {"EI0015", kConsequence},
    {"wait socket establish timeout", kConsequence},
    {"Watchdog caught collective operation timeout", kConsequence},
    {"Heartbeat Lost Occurred", kConsequence},
    {"Connection closed by peer", kConsequence},
    {"Connection reset by peer", kConsequence},
    {"Connection refused", kConsequence},
    {"Broken pipe", kConsequence},
    {"Traceback (most recent call last)", 10},
});

// The words by which an exception is known to be another rank's fault.
constexpr auto kFromElsewhere = std::to_array<std::string_view>({"Connection closed by peer", "Connection reset by peer", "Connection refused", "Broken pipe",
                                                                 "imed out", "imeout", "NCCL error", "NCCL communicator", "HCCL error", "gloo/transport",
                                                                 "DistBackendError", "DistNetworkError", "ChildFailedError", "another rank", "ERR02200"});

bool contains(std::string_view line, std::string_view text) { return line.find(text) != std::string_view::npos; }

// The last line of a traceback, plain or with torch's "[rank3]: " in front.
constexpr const char* kException = R"(^(?:\[rank\d+\]:\s*)?(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Timeout)(?::|\s*$))";
constexpr const char* kComplaint = R"(^\S{0,40}\s?(?:\[?(?:ERROR|FATAL|CRITICAL)\b|(?:[Ee]rror|[Ff]atal|panic): ))";
constexpr const char* kCannCode = R"(\b(?:E[A-Z0-9]\d{4}(?::|\):)|ERR\d{5}\b))";

// One automaton over the whole line decides whether it is worth a closer look.
struct Patterns {
  RE2 exception{kException};
  RE2 complaint{kComplaint};
  RE2 cann{kCannCode};
  RE2 any{all()};

  static std::string all() {
    std::string text = std::string(kException) + "|" + kComplaint + "|" + kCannCode + "|^Killed\\s*$";
    for (const Signature& signature : kSignatures) text += "|" + RE2::QuoteMeta(re2::StringPiece(signature.text.data(), signature.text.size()));
    return text;
  }
};

const Patterns& patterns() {
  static const Patterns all;
  return all;
}

}  // namespace

int evidence_rank(std::string_view line) {
  line = line.substr(0, kLineBytesMax);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  const re2::StringPiece piece(line.data(), line.size());
  const Patterns& known = patterns();
  if (line.empty() || !RE2::PartialMatch(piece, known.any)) return 0;

  if (RE2::PartialMatch(piece, known.exception)) {
    if (contains(line, "KeyboardInterrupt") || contains(line, "SystemExit")) return 15;
    for (const Signature& signature : kSignatures)
      if (signature.rank > 90 && contains(line, signature.text)) return signature.rank;
    for (const std::string_view text : kFromElsewhere)
      if (contains(line, text)) return kConsequence;
    return 90;
  }
  for (const Signature& signature : kSignatures)
    if (contains(line, signature.text)) return signature.rank;
  if (line == "Killed") return 70;
  if (RE2::PartialMatch(piece, known.cann)) return 30;
  return 20;
}

}  // namespace muster::engine
