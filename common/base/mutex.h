// Mutex, MutexLock and CondVar wrap std::mutex and std::condition_variable, with annotations for
// clang's thread-safety analysis. A field that a mutex protects says so (MUSTER_GUARDED_BY), and a
// function that needs it locked says so (MUSTER_REQUIRES). tests/tidy/threads.py lets clang check
// both; gcc ignores them. A loop is guarded in the same way (common/async/loop.h).
//
// Use these types instead of std::mutex and std::condition_variable in all code of the product.
//
// Source of the annotations: "Thread Safety Analysis" of the Clang documentation.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define MUSTER_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define MUSTER_THREAD_ATTRIBUTE(x)
#endif

// Of a type: its objects can be held.
#define MUSTER_CAPABILITY(name) MUSTER_THREAD_ATTRIBUTE(capability(name))
#define MUSTER_SCOPED_CAPABILITY MUSTER_THREAD_ATTRIBUTE(scoped_lockable)
// Of a field: it is used only while that is held. The second form is for what a pointer points to.
#define MUSTER_GUARDED_BY(x) MUSTER_THREAD_ATTRIBUTE(guarded_by(x))
#define MUSTER_PT_GUARDED_BY(x) MUSTER_THREAD_ATTRIBUTE(pt_guarded_by(x))
// Of a mutex: whoever locks both locks this one first.
#define MUSTER_ACQUIRED_BEFORE(...) MUSTER_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))
// Of a function: its caller holds it, or must not hold it.
#define MUSTER_REQUIRES(...) MUSTER_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define MUSTER_EXCLUDES(...) MUSTER_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// Of a function: it takes it, gives it back, or stops the process if it is not held.
#define MUSTER_ACQUIRE(...) MUSTER_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define MUSTER_RELEASE(...) MUSTER_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define MUSTER_TRY_ACQUIRE(...) MUSTER_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define MUSTER_ASSERT_CAPABILITY(...) MUSTER_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))
#define MUSTER_RETURN_CAPABILITY(x) MUSTER_THREAD_ATTRIBUTE(lock_returned(x))

namespace muster {

class MUSTER_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() MUSTER_ACQUIRE() { mutex_.lock(); }
  void unlock() MUSTER_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds the mutex as long as it lives.
class MUSTER_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MUSTER_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() MUSTER_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits may end early: wait in a loop that checks the condition. The analysis does not look into a
// predicate, so there is no form with one.
class CondVar {
 public:
  void wait(Mutex& mutex) MUSTER_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  // False: `until` has passed.
  template <typename Time>
  bool wait_until(Mutex& mutex, const Time& until) MUSTER_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = changed_.wait_until(lock, until) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  // False: `most` has passed.
  template <typename Period>
  bool wait_for(Mutex& mutex, const Period& most) MUSTER_REQUIRES(mutex) {
    return wait_until(mutex, std::chrono::steady_clock::now() + most);
  }
  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace muster
