// Ctrl-C and time-outs for verbs that block: Ctrl-C detaches, it never kills a job. One a process. Owns a thread that waits for SIGINT and
// SIGTERM (blocked everywhere else: so it is made before the first thread, that is before connect()) and for the deadline; it cancels the calls that were registered.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

namespace muster::client {

class Interrupt {
 public:
  // `timeout`: nothing = none.
  explicit Interrupt(std::optional<std::chrono::milliseconds> timeout);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] bool interrupted() const { return interrupted_; }
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  [[nodiscard]] bool fired() const { return interrupted_ || timed_out_; }

  // A call to cancel when it fires (at once if it has). `call` outlives its registration.
  class Guard {
   public:
    Guard(Interrupt& owner, grpc::ClientContext& call);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Interrupt& owner_;
    grpc::ClientContext& call_;
  };
  // Cancels everything registered now, without being an interrupt: a stream that is not needed any more.
  // `callback` is called at most once at a time, on the thread here or (if it has fired already) at once; it must not call back into this.
  void on_fire(std::function<void()> callback);

 private:
  void run(std::optional<std::chrono::milliseconds> timeout);
  std::mutex mutex_;
  std::set<grpc::ClientContext*> calls_;
  std::function<void()> on_fire_;
  std::atomic<bool> interrupted_ = false;
  std::atomic<bool> timed_out_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace muster::client
