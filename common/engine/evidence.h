// Finds the line of a dead rank's log that shows why the rank died, and the kind of trouble. Pure:
// one pass over the line, linear time, any bytes.
//
// It knows signatures of PyTorch, torch_npu, CANN, HCCL, NCCL, MindSpore, the kernel and the C
// library. Evidence::rank orders the lines: a cause of a death has a higher rank than a consequence
// of another rank's death (time-outs cascade through a gang).
#pragma once

#include <string_view>

namespace muster::engine {

enum class Trouble {
  None,
  DeviceMemory,  // of the accelerator
  HostMemory,
  Storage,      // full, over quota, gone
  Arguments,    // the program does not know an argument that it was given
  NotANumber,   // loss or gradients
  DeviceFault,  // ECC, Xid, UCE: a hardware fault
  DeviceBusy,   // another process uses the device
  Port,
  Crash,  // of native code
  RankTable,
  Settings,   // environment, versions, operator arguments that differ between ranks
  NotFound,   // a program or a file, or no permission for it
  Killed,     // from outside, usually by the kernel's OOM killer
  Exception,  // of the program, of none of the kinds above
  Link,       // error CQE, transport: the fault may be at the other end
  Resource,   // streams, notifies and similar things are used up
  DataStall,
  ConnectTimeout,  // from here to PeerLost: usually consequences of a rank that died or never came
  CollectiveTimeout,
  PeerLost,
  Operator,     // CANN code without a better name
  Complaint,    // "ERROR ...", "fatal: ..."
  Interrupted,  // KeyboardInterrupt, SystemExit
  TracebackHead,
};
std::string_view trouble_name(Trouble trouble);  // "device memory", ...

struct Evidence {
  int rank = 0;  // higher = better; 0 = the line shows nothing
  Trouble trouble = Trouble::None;
  // CANN's or torch_npu's code: "EI0006", "ERR01100"; points into the line; empty = none
  std::string_view code;
};
// `line` has no line end. Only the first 64 KiB of it are read.
Evidence evidence_in(std::string_view line);

}  // namespace muster::engine
