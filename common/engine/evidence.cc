#include "common/engine/evidence.h"

#include <algorithm>
#include <array>

#include "common/engine/files/line_fields.h"
#include "common/engine/files/pattern_set.h"
#include "common/engine/model/grammar.h"

namespace muster::engine {
namespace {

constexpr std::size_t kLineBytesMax = 64 * 1024;
// rank of the program's exceptions; a signature with a higher rank names the same line better
constexpr int kException = 90;
constexpr int kConsequence = 40;  // usually of another rank's death
// the exception only points to a line of another component, which states more
constexpr int kWrapper = 35;

// How a pattern in a line is judged.
enum class Rule {
  Anywhere,  // it is a signature
  // words of an exception that show another rank's fault; a signature itself if its rank is not 0
  Elsewhere,
  Wrapper,   // the exception only points to other lines
  Type,      // end of an exception's name: at the start of the line, before ':' or the end
  Level,     // "ERROR", "[FATAL]": among the first words
  Word,      // "error: ", "panic: ": among the first words
  Begins,    // at the beginning, in a language without blanks; not a count ("失败: 0")
  KilledBy,  // bash: "run.sh: line 3: 4711 Killed    python train.py"
};

struct Signature {
  std::string_view text;
  int rank = 0;
  Trouble trouble = Trouble::None;
  Rule rule = Rule::Anywhere;
};

using enum Trouble;

constexpr auto kSignatures = std::to_array<Signature>({
    // memory
    {"out of memory. Tried to allocate", 100, DeviceMemory},  // CUDA and NPU, all releases
    {"OutOfMemoryError", 100, DeviceMemory},
    {"Allocate continuous memory failed", 100, DeviceMemory},
    {"Memory not enough", 100, DeviceMemory},
    {"memory isn't enough and alloc failed", 100, DeviceMemory},
    {"is smaller than required size[", 100, DeviceMemory},
    {"Out of memory: Killed process", 100, HostMemory},
    {"oom-kill:", 100, HostMemory},
    {"std::bad_alloc", 100, HostMemory},
    {"Cannot allocate memory", 100, HostMemory},
    {"DefaultCPUAllocator: ", 100, HostMemory},
    {"MemoryError", 100, HostMemory},
    {"insufficient shared memory", 100, HostMemory},
    // hardware
    {"uncorrectable ECC error", 97, DeviceFault},
    {"NVRM: Xid", 97, DeviceFault},
    {"UCE ERROR", 97, DeviceFault},
    {"multi bit ecc", 97, DeviceFault},
    {"CUDA error: an illegal instruction", 97, DeviceFault},
    {"GPU is lost", 97, DeviceFault},
    {"fallen off the bus", 97, DeviceFault},
    // storage
    {"No space left on device", 95, Storage},
    {"Disk quota exceeded", 95, Storage},
    {"Stale file handle", 95, Storage},
    {"file write failed", 95, Storage},
    // arguments
    {"unrecognized arguments", 92, Arguments},
    {"the following arguments are required", 92, Arguments},
    {": error: argument ", 92, Arguments},
    // numbers
    {"found NaN in local", 91, NotANumber},
    {"loss is NaN, terminate training", 91, NotANumber},
    {"loss is Inf, terminate training", 91, NotANumber},
    {"Invalid loss, terminate training", 91, NotANumber},
    // ports
    {"ddress already in use", 86, Port},
    {"Please check the port status and whether the port is being used by other process", 86, Port},
    // crashes
    {"Fatal Python error", 85, Crash},
    {"Segmentation fault", 85, Crash},
    {"Bus error", 85, Crash},
    {"terminate called", 85, Crash},
    {"double free or corruption", 85, Crash},
    {"stack smashing detected", 85, Crash},
    {"Assertion `", 85, Crash},
    {"ERROR: AddressSanitizer", 85, Crash},
    {"Aborted (core dumped)", 84, Crash},
    // rank table, settings, device state
    {"[RanktableCheck]", 80, RankTable},
    {"is not a valid real path", 80, RankTable},
    {"in the ranktable is inconsistent with the IP", 80, RankTable},
    {"devNum must be divisible by 8, or equal to 1, 2 or 4", 80, RankTable},
    {"may be other processes occupying this card", 80, DeviceBusy},
    {"command not found", 78, NotFound},
    {"cannot execute", 78, NotFound},
    {"Exec format error", 78, NotFound},
    {"No such file or directory", 78, NotFound},
    {"Permission denied", 78, NotFound},
    {"python: No module named ", 78, NotFound},  // of `python -m NAME`; an import's is an exception
    {"python3: No module named ", 78, NotFound},
    {"Killed ", 70, Killed, Rule::KilledBy},
    {"is killed by signal: Killed", 70, Killed},
    {"Signal 9 (SIGKILL) received by PID", 70, Killed},
    // links and peers: the fault may be elsewhere
    {"error cqe", 60, Link},
    {"Error cqe", 60, Link},
    {"unhandled cuda error", 60, Link},
    {"Spawned worker process number is not as expected", 55, PeerLost},
    {"FORCE STOP", kConsequence, PeerLost, Rule::Elsewhere},
    {"wait socket establish timeout", kConsequence, ConnectTimeout},
    {"[InitChannelStage][Timeout]", kConsequence, ConnectTimeout},
    {"topo exchange server get socket timeout", kConsequence, ConnectTimeout},
    {"Failed to connect to the meta server node url", kConsequence, ConnectTimeout,
     Rule::Elsewhere},
    {"Task run failed, base information is streamID", kConsequence, CollectiveTimeout},
    {"Watchdog caught collective operation timeout", kConsequence, CollectiveTimeout,
     Rule::Elsewhere},
    {"Exception (either an error or timeout) detected by watchdog", kConsequence,
     CollectiveTimeout},
    {"Heartbeat Lost Occurred", kConsequence, PeerLost},
    {"Stuck Occurred", kConsequence, PeerLost},
    {"The total number of timed out node is", kConsequence, PeerLost, Rule::Elsewhere},
    {"ncclRemoteError", kConsequence, PeerLost, Rule::Elsewhere},
    {"Connection closed by peer", kConsequence, PeerLost, Rule::Elsewhere},
    {"Connection reset by peer", kConsequence, PeerLost, Rule::Elsewhere},
    {"Connection refused", kConsequence, ConnectTimeout, Rule::Elsewhere},
    {"Broken pipe", kConsequence, PeerLost, Rule::Elsewhere},
    {"imed out", 0, CollectiveTimeout, Rule::Elsewhere},
    {"imeout", 0, CollectiveTimeout, Rule::Elsewhere},
    {"NCCL error", 0, PeerLost, Rule::Elsewhere},
    {"NCCL communicator", 0, PeerLost, Rule::Elsewhere},
    {"HCCL error", 0, PeerLost, Rule::Elsewhere},
    {"gloo/transport", 0, PeerLost, Rule::Elsewhere},
    {"DistBackendError", 0, PeerLost, Rule::Elsewhere},
    {"DistNetworkError", 0, PeerLost, Rule::Elsewhere},
    {"ChildFailedError", 0, PeerLost, Rule::Elsewhere},
    {"another rank", 0, PeerLost, Rule::Elsewhere},
    {"ERR02200", 0, PeerLost, Rule::Elsewhere},
    // MindSpore raises these together with a framed "- Ascend Error Message:" that has the reason
    {"refer to 'Ascend Error Message'", 0, Operator, Rule::Wrapper},
    {"Ascend kernel runtime initialization failed", 0, Operator, Rule::Wrapper},
    {"Ascend collective communication initialization failed", 0, Operator, Rule::Wrapper},
    {"Run task error", 0, Operator, Rule::Wrapper},
    {"Run task for graph", 0, Operator, Rule::Wrapper},
    // exceptions, complaints
    {"Error", kException, Exception, Rule::Type},
    {"Exception", kException, Exception, Rule::Type},
    {"Interrupt", kException, Interrupted, Rule::Type},
    {"Exit", kException, Interrupted, Rule::Type},
    {"Timeout", kException, Exception, Rule::Type},
    {"ERROR", 20, Complaint, Rule::Level},
    {"FATAL", 20, Complaint, Rule::Level},
    {"CRITICAL", 20, Complaint, Rule::Level},
    {"rror: ", 20, Complaint, Rule::Word},
    {"atal: ", 20, Complaint, Rule::Word},
    {"panic: ", 20, Complaint, Rule::Word},
    {"错误：", 20, Complaint, Rule::Begins},  // "error:"; but not 错误率, the rate of errors
    {"错误:", 20, Complaint, Rule::Begins},
    {"错误]", 20, Complaint, Rule::Begins},
    {"错误】", 20, Complaint, Rule::Begins},
    {"异常：", 20, Complaint, Rule::Begins},  // "exception:"
    {"异常:", 20, Complaint, Rule::Begins},
    {"失败：", 20, Complaint, Rule::Begins},  // "failed:"
    {"失败:", 20, Complaint, Rule::Begins},
    {"Distributed job exited with exception. Please check logs in directory", 15, Complaint},
    {"Root Cause (first observed failure):", 12, TracebackHead},
    {"raceback (most recent call last)", 10, TracebackHead},
    {"raceBack (most recent call last)", 10, TracebackHead},
});

// CANN's codes of HCCL (EI), the runtime (EL), HCCP (EJ) and AI CPU (E3). HCCL registers the
// messages EI0001 to EI0020.
struct Code {
  std::string_view code;
  int rank;
  Trouble trouble;
};
constexpr auto kCodes = std::to_array<Code>({
    {"EI0001", 80, Settings},
    {"EI0002", kConsequence, CollectiveTimeout},
    {"EI0003", 80, Settings},
    {"EI0004", 80, RankTable},
    {"EI0005", 80, Settings},
    {"EI0006", kConsequence, ConnectTimeout},
    {"EI0007", 55, Resource},
    {"EI0008", 80, Settings},
    {"EI0009", 60, Link},
    {"EI0010", 55, Link},
    {"EI0011", 100, DeviceMemory},
    {"EI0012", kConsequence, CollectiveTimeout},
    {"EI0013", 60, Link},
    {"EI0014", 80, RankTable},
    {"EI0015", kConsequence, ConnectTimeout},
    {"EI0016", 80, Settings},
    {"EI0017", 80, RankTable},
    {"EI0018", 60, Link},
    {"EI0019", 86, Port},
    {"EI0020", 86, Port},
    {"EL0004", 100, DeviceMemory},
    {"EJ0001", 80, DeviceBusy},
    {"E30008", 55, DataStall},
});
// The text of an inner error is in the lines after its code, and an inner error accompanies nearly
// every other error.
constexpr int kInnerCode = 38, kOtherCode = 65, kAdaptorCode = 30;

const PatternSet& signatures() {
  static const PatternSet set = [] {
    std::array<std::string_view, kSignatures.size()> texts;
    std::ranges::transform(kSignatures, texts.begin(), &Signature::text);
    return PatternSet(texts);
  }();
  return set;
}

// The start of a line's own text: torch 2 puts "[rank3]: " before each line of an exception.
std::size_t text_at(std::string_view line) {
  if (!line.starts_with("[rank")) return 0;
  std::size_t at = 5;
  while (at < line.size() && is_digit(line[at])) ++at;
  if (at == 5 || !line.substr(at).starts_with("]:")) return 0;
  at += 2;
  while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
  return at;
}

// Whether an exception's name ends at `end`, which is after "...Error": a dotted name from the
// start of the text, then ':' or nothing.
bool ends_exception(std::string_view line, std::size_t start, std::size_t at, std::size_t end) {
  if (at <= start || at - start > 200) return false;
  if (is_digit(line[start])) return false;
  for (std::size_t i = start; i < at; ++i) {
    if (line[i] == '.' ? !is_word(line[i + 1]) || is_digit(line[i + 1]) || i == start
                       : !is_word(line[i]))
      return false;
  }
  if (line[at - 1] == '.') return false;  // the suffix is not all of a name
  return end == line.size() || line[end] == ':' ||
         line.find_first_not_of(" \t", end) == std::string_view::npos;
}

// Whether a complaint at `at` is in the first word of a line or directly after it; `at` includes
// its bracket.
bool complains_at(std::string_view line, std::size_t at) {
  if (at > 41) return false;
  const std::string_view before = line.substr(0, at);
  const std::size_t blank = before.find_first_of(" \t");
  return blank == std::string_view::npos ? at <= 40 : blank + 1 == at;
}

struct Judge {
  std::string_view line;
  std::size_t start;  // where the line's own text starts
  Evidence best;
  bool exception = false, interrupted = false, elsewhere = false, wrapper = false,
       better_name = false;
  Trouble elsewhere_trouble = PeerLost;

  void take(int rank, Trouble trouble) {
    if (rank <= best.rank) return;
    best.rank = rank;
    best.trouble = trouble;
  }

  // Finds codes anywhere in the line: CANN's "EI0006:", "(EI0011):" (E, a capital or a digit, four
  // digits) and torch_npu's "ERR01100".
  void take_codes() {
    for (std::size_t at = line.find('E'); at != std::string_view::npos;
         at = line.find('E', at + 1)) {
      if (at + 6 > line.size()) return;
      if (at > 0 && is_word(line[at - 1])) continue;
      const char kind = line[at + 1];
      if (is_digit(line[at + 3]) && is_digit(line[at + 4]) && is_digit(line[at + 5])) {
        if (is_digit(line[at + 2]) && (is_digit(kind) || (kind >= 'A' && kind <= 'Z')))
          take_code(at);
        if (kind == 'R' && line[at + 2] == 'R') take_adaptor_code(at);
      }
    }
  }

  void take_adaptor_code(std::size_t at) {
    const std::size_t end = at + 8;
    if (end > line.size() || !is_digit(line[at + 6]) || !is_digit(line[at + 7]) ||
        (end < line.size() && is_word(line[end])))
      return;
    if (best.code.empty()) best.code = line.substr(at, 8);
    take(kAdaptorCode, Operator);
  }

  void take_code(std::size_t at) {
    const std::string_view behind = line.substr(at + 6);
    // "E39999 TsdOpen failed": in the second line of a message no colon follows the code.
    const bool opens = line.find_first_not_of(" \t", start) == at && behind.starts_with(' ');
    if (!behind.starts_with(':') && !behind.starts_with("):") && !opens) return;
    const std::string_view code = line.substr(at, 6);
    if (best.code.empty()) best.code = code;
    const auto* const known = std::ranges::find(kCodes, code, &Code::code);
    if (known != kCodes.end()) {
      if (known->rank > kException) better_name = true;
      take(known->rank, known->trouble);
    } else {
      take(code.ends_with("9999") ? kInnerCode : kOtherCode, Operator);
    }
  }

  void take_signature(const Signature& signature, std::size_t at) {
    const std::size_t end = at + signature.text.size();
    switch (signature.rule) {
      case Rule::Elsewhere:
        if (!elsewhere) elsewhere_trouble = signature.trouble;
        elsewhere = true;
        return take(signature.rank, signature.trouble);
      case Rule::Anywhere:
        if (signature.rank > kException) better_name = true;
        return take(signature.rank, signature.trouble);
      case Rule::Wrapper: wrapper = true; return;
      case Rule::Type:
        if (!ends_exception(line, start, at, end)) return;
        exception = true;
        interrupted = interrupted ||
                      line.substr(start, end - start).ends_with("KeyboardInterrupt") ||
                      line.substr(start, end - start).ends_with("SystemExit");
        return;
      case Rule::Level: {
        if (end < line.size() && is_word(line[end])) return;
        const std::size_t from = at > 0 && line[at - 1] == '[' ? at - 1 : at;
        // the loggers of MindFormers and of most python programs: "2023-12-04 10:22:31,118 -
        // mindformers[trainer.py:60] - ERROR - ..."
        const bool logger = at >= 3 && line.substr(at - 3, 3) == " - " &&
                            line.substr(end).starts_with(" - ") && at < 256;
        if (complains_at(line, from) || logger) take(signature.rank, signature.trouble);
        return;
      }
      case Rule::Word:
        if (complains_at(line, signature.text[0] == 'p' ? at
                               : at > 0                 ? at - 1
                                                        : 0) &&
            (signature.text[0] == 'p' || names_it(signature, at)))
          take(signature.rank, signature.trouble);
        return;
      case Rule::Begins: {
        const std::size_t next = line.find_first_not_of(" \t", end);
        // only a date and a time, and words of a language without blanks, come before it
        const bool early = at <= 96 && std::ranges::count(line.substr(0, at), ' ') <= 2;
        if (early && (next == std::string_view::npos || !is_digit(line[next])))
          take(signature.rank, signature.trouble);
        return;
      }
      case Rule::KilledBy:
        if (at > 1 && line[at - 1] == ' ' && is_digit(line[at - 2]))
          take(signature.rank, signature.trouble);
        return;
    }
  }

  // Whether the letter before `at` completes the word: "rror: " is "Error: " or "error: ", and
  // "atal: " likewise.
  bool names_it(const Signature& signature, std::size_t at) const {
    if (at == 0) return false;
    const char c = line[at - 1];
    return signature.text[0] == 'r' ? c == 'e' || c == 'E' : c == 'f' || c == 'F';
  }

  Evidence verdict() {
    if (!exception) return best;
    if (interrupted) return {.rank = 15, .trouble = Interrupted, .code = best.code};
    if (better_name) return best;
    if (elsewhere) return {.rank = kConsequence, .trouble = elsewhere_trouble, .code = best.code};
    if (wrapper) return {.rank = kWrapper, .trouble = Operator, .code = best.code};
    // The line may name the trouble more exactly than the exception's type: "OSError: [Errno 98]
    // Address already in use".
    return {.rank = kException,
            .trouble = best.rank >= 55 ? best.trouble : Exception,
            .code = best.code};
  }
};

}  // namespace

Evidence evidence_in(std::string_view line) {
  line = line.substr(0, kLineBytesMax);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r' || line.back() == ' '))
    line.remove_suffix(1);
  if (line == "Killed") return {.rank = 70, .trouble = Killed, .code = {}};
  Judge judge{.line = line, .start = text_at(line), .best = {}};
  signatures().scan(line, [&](std::size_t pattern, std::size_t at) {
    judge.take_signature(kSignatures[pattern], at);
    return true;
  });
  judge.take_codes();
  return judge.verdict();
}

int evidence_rank(std::string_view line) { return evidence_in(line).rank; }

std::string_view trouble_name(Trouble trouble) {
  switch (trouble) {
    case None: return "none";
    case DeviceMemory: return "device memory";
    case HostMemory: return "host memory";
    case Storage: return "storage";
    case Arguments: return "arguments";
    case NotANumber: return "not a number";
    case DeviceFault: return "device fault";
    case DeviceBusy: return "device busy";
    case Port: return "port";
    case Crash: return "crash";
    case RankTable: return "rank table";
    case Settings: return "settings";
    case NotFound: return "not found";
    case Killed: return "killed";
    case Exception: return "exception";
    case Link: return "link";
    case Resource: return "resource";
    case DataStall: return "data stall";
    case ConnectTimeout: return "connect time-out";
    case CollectiveTimeout: return "collective time-out";
    case PeerLost: return "peer lost";
    case Operator: return "operator";
    case Complaint: return "complaint";
    case Interrupted: return "interrupted";
    case TracebackHead: return "traceback head";
  }
  return "none";
}

}  // namespace muster::engine
