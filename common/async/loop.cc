#include "common/async/loop.h"

#ifdef __SANITIZE_THREAD__
// GCC's ThreadSanitizer does not understand fences. Asio's queue has a mutex in addition.
#define BOOST_ASIO_DISABLE_FENCED_BLOCK
#endif

#include <pthread.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "common/base/assert.h"
#include "common/base/mutex.h"

namespace muster::async {
namespace asio = boost::asio;
using Steady = std::chrono::steady_clock;

struct Loop::Impl {
  explicit Impl(std::string thread_name)
      : name(std::move(thread_name)), work(asio::make_work_guard(context)) {}

  void run(const char* task_name, Steady::time_point posted, Task task) {
    const Steady::time_point begin = Steady::now();
    task();
    const Steady::time_point end = Steady::now();
    const MutexLock lock(mutex);
    PostStats& stat = stats[task_name];
    ++stat.count;
    stat.queued += begin - posted;
    stat.queued_max = std::max<Duration>(stat.queued_max, begin - posted);
    stat.ran += end - begin;
    stat.ran_max = std::max<Duration>(stat.ran_max, end - begin);
  }

  std::string name;
  asio::io_context context{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  std::atomic<bool> posted = false;  // a task, at least once
  std::atomic<bool> stopping = false;
  std::thread thread;
  Mutex mutex;
  // The key is the literal's address. One name in two files makes two rows; Loop::stats adds them
  // up.
  std::map<const char*, PostStats> stats MUSTER_GUARDED_BY(mutex);
};

Loop::Loop(std::string name) : impl_(std::make_unique<Impl>(std::move(name))) {
  impl_->thread = std::thread([impl = impl_.get()] {
    pthread_setname_np(pthread_self(), impl->name.substr(0, 15).c_str());
    impl->context.run();
  });
}

Loop::~Loop() { MUSTER_ASSERT(!impl_->thread.joinable(), "a loop was destroyed before stop()"); }

void Loop::post(const char* name, Task task) {
  if (impl_->stopping.load(std::memory_order_acquire)) return;
  if (!impl_->posted.load(std::memory_order_relaxed))
    impl_->posted.store(true, std::memory_order_relaxed);
  asio::post(impl_->context,
             [impl = impl_.get(), name, posted = Steady::now(), task = std::move(task)]() mutable {
               impl->run(name, posted, std::move(task));
             });
}

bool Loop::on_this() const { return impl_->thread.get_id() == std::this_thread::get_id(); }

void Loop::assert_on() const {
  MUSTER_ASSERT(on_this(), "what belongs to a loop was used elsewhere");
}

void Loop::assert_idle() const {
  MUSTER_ASSERT(!impl_->posted.load(std::memory_order_relaxed) || !impl_->thread.joinable(),
                "what belongs to a loop was used elsewhere while the loop ran");
}

void Loop::stop() {
  if (!impl_->thread.joinable()) return;
  MUSTER_ASSERT(!on_this(), "a loop cannot join itself");
  // This task runs after everything posted so far. Only then does the loop drop later posts and
  // release the context. Timers and signals that are still armed would otherwise keep the context
  // running.
  asio::post(impl_->context, [impl = impl_.get()] {
    impl->stopping.store(true, std::memory_order_release);
    impl->work.reset();
    impl->context.stop();
  });
  impl_->thread.join();
}

std::vector<PostStats> Loop::stats() const {
  std::map<std::string, PostStats> by_name;
  {
    const MutexLock lock(impl_->mutex);
    for (const auto& [name, stat] : impl_->stats) {
      PostStats& sum = by_name[name];
      sum.name = name;
      sum.count += stat.count;
      sum.queued += stat.queued;
      sum.ran += stat.ran;
      sum.queued_max = std::max(sum.queued_max, stat.queued_max);
      sum.ran_max = std::max(sum.ran_max, stat.ran_max);
    }
  }
  std::vector<PostStats> out;
  for (auto& [name, stat] : by_name) out.push_back(std::move(stat));
  return out;
}

struct Timer::Impl {
  Impl(Loop::Impl& owner, const char* timer_name)
      : loop(owner), timer(owner.context), name(timer_name) {}
  Loop::Impl& loop;
  asio::steady_timer timer;
  const char* name;
  // A handler of an expired wait may already be queued when the timer is armed again or cancelled.
  // The generation keeps such a handler from running.
  std::uint64_t generation = 0;
};

Timer::Timer(Loop& loop, const char* name) : impl_(std::make_shared<Impl>(*loop.impl_, name)) {}
Timer::~Timer() { cancel(); }

void Timer::arm(Duration after, Task task) {
  const std::uint64_t generation = ++impl_->generation;
  impl_->timer.expires_after(
      std::chrono::duration_cast<Steady::duration>(std::max(after, Duration::zero())));
  impl_->timer.async_wait([impl = impl_, generation, due = impl_->timer.expiry(),
                           task = std::move(task)](const boost::system::error_code& error) mutable {
    if (error || generation != impl->generation) return;
    impl->loop.run(impl->name, due, std::move(task));
  });
}

void Timer::cancel() {
  ++impl_->generation;
  impl_->timer.cancel();
}

struct Signals::Impl : std::enable_shared_from_this<Signals::Impl> {
  Impl(Loop::Impl& loop, std::move_only_function<void(int)> on_signal)
      : set(loop.context), handler(std::move(on_signal)) {}
  void wait() {
    set.async_wait([self = shared_from_this()](const boost::system::error_code& error, int number) {
      if (error) return;
      self->handler(number);
      self->wait();
    });
  }
  asio::signal_set set;
  std::move_only_function<void(int)> handler;
};

Signals::Signals(Loop& loop, std::initializer_list<int> numbers,
                 std::move_only_function<void(int)> handler)
    : impl_(std::make_shared<Impl>(*loop.impl_, std::move(handler))) {
  for (const int number : numbers) impl_->set.add(number);
  impl_->wait();
}
Signals::~Signals() { cancel(); }
void Signals::cancel() {
  boost::system::error_code ignored;
  impl_->set.cancel(ignored);
}

struct Readable::Impl : std::enable_shared_from_this<Readable::Impl> {
  Impl(Loop::Impl& owner, const char* readable_name, int fd, std::function<void()> on_ready,
       Ready kind)
      : loop(owner),
        descriptor(owner.context, fd),
        name(readable_name),
        handler(std::move(on_ready)),
        ready(kind) {}
  void wait() {
    const auto kind = ready == Ready::Read ? asio::posix::descriptor_base::wait_read
                                           : asio::posix::descriptor_base::wait_error;
    descriptor.async_wait(kind,
                          [self = shared_from_this()](const boost::system::error_code& error) {
                            if (error || self->cancelled) return;
                            self->loop.run(self->name, Steady::now(), [&self] { self->handler(); });
                            if (!self->cancelled) self->wait();
                          });
  }
  Loop::Impl& loop;
  asio::posix::stream_descriptor descriptor;
  const char* name;
  std::function<void()> handler;
  Ready ready;
  bool cancelled = false;
};

Readable::Readable(Loop& loop, const char* name, int fd, std::function<void()> handler, Ready ready)
    : impl_(std::make_shared<Impl>(*loop.impl_, name, fd, std::move(handler), ready)) {
  impl_->wait();
}
Readable::~Readable() { cancel(); }
void Readable::cancel() {
  if (impl_->cancelled) return;
  impl_->cancelled = true;
  impl_->descriptor.release();  // cancels the wait; the owner keeps the descriptor
}

}  // namespace muster::async
