// muster-worker RUN_DIR: claims the run directory and minds its ranks to the end (supervisor.h).
// Exit 0: it was claimed by somebody, or all is swept; 1: it could not even begin; 64: usage. By
// the name of a launcher (torchrun, msrun, python) it is the launcher shim (shim/shim.h).
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
  if (!*first) return 0;  // somebody else's; theirs to start, or never to be started

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
                 "usage: muster-worker RUN_DIR\nstarted by muster-agent; minds the ranks of one "
                 "attempt on one node\n");
    return 64;
  }
  // 0 to 2 are taken, and nothing else of the agent's (sockets, journals) lives on in a process
  // that outlives it.
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR);
    if (fd < 0) break;
    if (fd > 2) {
      ::close(fd);
      break;
    }
  }
  ::close_range(3, ~0U, 0);
  ::setsid();  // fails for a group's leader, which then is on its own already
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  muster::worker::block_signals();
  return supervise(muster::rundir::RunLayout(argv[1]));
}
