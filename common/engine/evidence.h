// Which line of a dead rank's log tells why it died, and what kind of trouble it tells of.
// Signatures of PyTorch, torch_npu, CANN, HCCL, NCCL, MindSpore, the kernel and the C library.
// Pure; one pass over the line, linear time, any bytes. The ranks order them: what caused a death
// stands above what another rank's death causes here (time-outs cascade through a gang).
#pragma once

#include <string_view>

namespace muster::engine {

enum class Trouble {
  None,
  DeviceMemory,  // of the accelerator
  HostMemory,
  Storage,      // full, over quota, gone
  Arguments,    // the program does not know what it was given
  NotANumber,   // loss or gradients
  DeviceFault,  // ECC, Xid, UCE: the hardware
  DeviceBusy,   // another process has it
  Port,
  Crash,  // of native code
  RankTable,
  Settings,   // environment, versions, operator arguments that differ between ranks
  NotFound,   // a program, a file; or no permission for it
  Killed,     // from outside, as a rule by the kernel's OOM killer
  Exception,  // of the program, of no kind above
  Link,       // error CQE, transport: the fault may be at the other end
  Resource,   // streams, notifies and the like are used up
  DataStall,
  ConnectTimeout,  // consequences, as a rule: of a rank that died or never came
  CollectiveTimeout,
  PeerLost,
  Operator,     // CANN code without a better name
  Complaint,    // "ERROR ...", "fatal: ..."
  Interrupted,  // KeyboardInterrupt, SystemExit
  TracebackHead,
};
std::string_view trouble_name(Trouble trouble);  // "device memory", ...

struct Evidence {
  int rank = 0;  // higher = better; 0 = the line tells nothing
  Trouble trouble = Trouble::None;
  // CANN's or torch_npu's: "EI0006", "ERR01100"; into the line; empty = none
  std::string_view code;
};
// `line` without its end; of more than 64 KiB only the first 64 KiB are looked at.
Evidence evidence_in(std::string_view line);

}  // namespace muster::engine
