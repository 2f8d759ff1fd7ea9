// muster-worker RUN_DIR: claims the run directory and supervises its ranks to the end
// (supervisor.h). If it is started under the name of a launcher (torchrun, msrun, python), it is
// the launcher shim (shim/shim.h).
//
// Exit 0: another process has claimed the run, or everything is swept. 1: it could not begin, or
// the disk took no writes and the end is not recorded. 64: usage.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "common/process/identity.h"
#include "worker/shim/shim.h"
#include "worker/supervisor.h"

namespace {

int complain(const muster::Error& error) {
  std::fprintf(stderr, "muster-worker: %s\n", error.message.c_str());
  return 1;
}

int supervise(const muster::rundir::RunLayout& run) {
  using namespace muster;
  const auto boot = process::boot_id();
  if (!boot) return complain(boot.error());
  const auto self = process::self();
  if (!self) return complain(self.error());
  rundir::v1::Claim claim;
  claim.set_pid(static_cast<std::uint64_t>(self->pid));
  claim.set_start_time(self->start_time);
  claim.set_boot_id(boot->str());
  const auto first = rundir::write_claim(run, claim);
  if (!first) return complain(first.error());
  // another process has the claim: that process starts the run, or nothing ever does
  if (!*first) return 0;

  auto events = worker::EventQueue::open(run, *boot, system_clock());
  if (!events) return complain(events.error());
  worker::Supervisor supervisor(run, *boot, std::move(*events), system_clock());
  const auto ended = supervisor.run();
  return ended ? 0 : complain(ended.error());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 0) {
    const std::string_view path(argv[0]), name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    if (muster::shim::is_shim_name(name)) return muster::shim::run_shim(name, argc, argv);
  }
  if (argc != 2 || argv[1][0] == '-') {
    std::fprintf(stderr,
                 "usage: muster-worker RUN_DIR\nstarted by muster-agent; supervises the ranks of "
                 "one attempt on one node\n");
    return 64;
  }
  // Descriptors 0 to 2 are open after this. No other descriptor of the agent (sockets, journals)
  // stays open in a process that outlives the agent.
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR);
    if (fd < 0) break;
    if (fd > 2) {
      ::close(fd);
      break;
    }
  }
  ::close_range(3, ~0U, 0);
  ::setsid();  // fails for the leader of a group, which then already has a group of its own
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  muster::worker::block_signals();
  return supervise(muster::rundir::RunLayout(argv[1]));
}
