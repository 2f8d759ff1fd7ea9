// A trainer without a model. It starts fast, is cheap to run by the hundred, and is deterministic,
// so that every mistake of a restart shows. The loss is a hash chain over step, seed, and every
// rank's own state: a resume from a torn, stale or mixed checkpoint prints another loss.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "tests/support/stub_trainer/checkpoint.h"
#include "tests/support/stub_trainer/mesh.h"
#include "tests/support/stub_trainer/options.h"
#include "tests/support/stub_trainer/stamp.h"

namespace {

using stub::Options;
using stub::State;

constexpr std::int64_t kBeforeFirstStep = -1;

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

void say(const std::string& text) { (void)!::write(1, text.data(), text.size()); }

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char room[1024];
  const int length = std::snprintf(room, sizeof room, pattern, args...);
  return std::string(room, static_cast<std::size_t>(std::min<int>(length, sizeof room - 1)));
}

std::string now_text() {
  char text[32];
  const time_t now = ::time(nullptr);
  tm local{};
  ::localtime_r(&now, &local);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

// Starts processes that leave session, group and parent, as a data loader's server or a profiler
// does.
void start_daemons(unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (::fork() != 0) continue;  // tidy: allow: a trainer forks
    ::setsid();
    if (::fork() != 0) ::_exit(0);  // tidy: allow
    for (;;) ::pause();
  }
}

double loss_of(const State& state) {
  const double noise = static_cast<double>(state.shared >> 11U) / 9007199254740992.0;
  return 10.0 / (1.0 + 0.01 * static_cast<double>(state.step)) + 0.1 * noise;
}

State begin(const Options& options) {
  const std::int64_t step = options.load.empty() ? -1 : stub::read_tracker(options.load);
  if (step < 0) {
    if (!options.load.empty() && options.rank == 0)
      say(format("WARNING: could not find the metadata file %s/latest_checkpointed_iteration.txt\n",
                 options.load.c_str()));
    return {
        .step = 0, .shared = mix(options.seed), .local = mix(options.seed ^ mix(options.rank + 1))};
  }
  if (options.rank == 0)
    say(format(" loading checkpoint from %s at iteration %lld\n", options.load.c_str(),
               static_cast<long long>(step)));
  State state = stub::load_shard(options, step);
  if (options.rank == 0) {
    say(format("  successfully loaded checkpoint from %s [ t 1/%u, p 1/1 ] at iteration %lld\n",
               options.load.c_str(), options.world, static_cast<long long>(step)));
  }
  return state;
}

void save(const Options& options, const State& state, stub::Mesh& mesh) {
  if (options.rank == 0)
    say(format("saving checkpoint at iteration %7lld to %s in torch format\n",
               static_cast<long long>(state.step), options.save.c_str()));
  stub::save_shard(options, state);
  mesh.sum(state.step, 0);
  if (options.rank != 0) return;
  stub::write_tracker(options, state.step);
  say(format("  successfully saved checkpoint from iteration %7lld to %s [ t 1/%u, p 1/1 ]\n",
             static_cast<long long>(state.step), options.save.c_str(), options.world));
}

void numbered_lines(const Options& options, std::uint64_t& number) {
  std::string text;
  for (std::uint64_t i = 0; i < options.lines; ++i) {
    std::string line =
        format("line %012llu of rank %u ", static_cast<unsigned long long>(number++), options.rank);
    line.resize(options.line_bytes - 1, '.');
    text += line + "\n";
    if (text.size() > 60000) {
      say(text);
      text.clear();
    }
  }
  say(text);
}

void trace(const Options& options, int fd, const State& state) {
  if (fd < 0) return;
  const auto line = format("%lld %a %llu %d\n", static_cast<long long>(state.step), loss_of(state),
                           static_cast<unsigned long long>(stub::monotonic_ns()), ::getpid());
  if (::write(fd, line.data(), line.size()) < 0)
    stub::die_like_python(options, "No space left on device");
}

void wait_until(std::uint64_t at) {  // the step's "computation"
  for (auto now = stub::monotonic_ns(); now < at; now = stub::monotonic_ns()) {
    const timespec left{.tv_sec = static_cast<time_t>((at - now) / 1'000'000'000U),
                        .tv_nsec = static_cast<long>((at - now) % 1'000'000'000U)};
    ::ppoll(nullptr, 0, &left, nullptr);
  }
}

std::int64_t last_step(const Options& options) {
  const int fd =
      options.end_file.empty() ? -1 : ::open(options.end_file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return options.steps;
  char text[24] = {};
  const auto size = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  return size > 0 ? std::atoll(text) : options.steps;
}

void train(const Options& options, stub::Mesh& mesh) {
  State state = begin(options);
  const auto trace_path = options.trace + "/rank-" + std::to_string(options.rank) + ".trace";
  const int trace_fd =
      options.trace.empty()
          ? -1
          : ::open(trace_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool fails_here = options.rank == options.fail_rank;
  std::uint64_t line_number = 0;
  std::uint64_t began = stub::monotonic_ns();
  for (std::int64_t steps = last_step(options); state.step < steps; steps = last_step(options)) {
    const std::int64_t step = state.step + 1;
    if (fails_here && step == options.hang_at) {
      for (;;) ::pause();
    }
    if (fails_here && step == options.exit_at) {
      if (options.exit_code == 0) ::_exit(0);
      const auto text = format(
          "Traceback (most recent call last):\n  File \"train.py\", line 1, in "
          "<module>\nValueError: asked to fail at step %lld\n",
          static_cast<long long>(step));
      (void)!::write(2, text.data(), text.size());
      ::_exit(options.exit_code);
    }
    wait_until(began + static_cast<std::uint64_t>(options.step_ms * 1e6));
    const std::uint64_t gathered =
        mesh.sum(step, mix(state.local ^ static_cast<std::uint64_t>(step)));
    const std::uint64_t ended = stub::monotonic_ns();
    state = {
        .step = step, .shared = mix(state.shared + gathered), .local = mix(state.local ^ gathered)};
    numbered_lines(options, line_number);
    trace(options, trace_fd, state);
    if (options.rank + 1 == options.world) {
      say(
          format(" [%s] iteration %8lld/%8lld | consumed samples: %12lld | elapsed time per "
                 "iteration (ms): %.1f | learning rate: 1.000000E-04 | global batch size: %5u | lm "
                 "loss: %.6E | loss scale: 1.0 | grad norm: 1.000 | number of skipped "
                 "iterations:   0 | number of nan iterations:   0 |\n",
                 now_text().c_str(), static_cast<long long>(step), static_cast<long long>(steps),
                 static_cast<long long>(step * options.world),
                 static_cast<double>(ended - began) / 1e6, options.world, loss_of(state)));
    }
    began = ended;
    if (step == options.truncate_at && ::ftruncate(1, 0) != 0)
      say("cannot truncate standard output\n");
    if (!options.save.empty() && options.save_interval > 0 && step % options.save_interval == 0)
      save(options, state, mesh);
  }
  if (options.rank + 1 == options.world)
    say("[after training is done] datetime: " + now_text() + " \n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t entered = stub::monotonic_ns();
  const Options options = stub::parse(argc, argv);
  if (options.ignore_sigterm) ::signal(SIGTERM, SIG_IGN);
  if (!options.stamp.empty()) stub::stamp(options.stamp, options.rank, entered);
  start_daemons(options.children);
  while (options.block) ::pause();
  stub::Mesh mesh(options);
  mesh.sum(kBeforeFirstStep, 0);
  train(options, mesh);
  return 0;
}
