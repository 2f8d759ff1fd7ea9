// SingleFlight is for work of which at most one piece is under way: a scan, a write, a posted turn.
// What is wanted meanwhile is done once more afterwards. Plain value; whoever owns it decides the
// thread.
//
//   if (scan_.want()) start();             // nothing was under way: the caller starts now
//   ... at its end:
//   if (scan_.landed()) start();           // it was wanted again meanwhile: the caller starts now
#pragma once

#include <utility>

namespace muster {

class SingleFlight {
 public:
  // True: the caller starts the work now. False: it is under way, and is due once more after it.
  bool want() {
    if (!std::exchange(under_way_, true)) return true;
    due_ = true;
    return false;
  }
  // True: the caller starts the work now. False: it is under way, and that is enough.
  bool want_one() { return !std::exchange(under_way_, true); }
  // Marks it as due without a start: a later take() or landed() finds it.
  void set_due() { due_ = true; }
  // True: it is due and nothing is under way. The caller starts it now.
  bool take() {
    if (!due_ || under_way_) return false;
    due_ = false;
    return under_way_ = true;
  }
  // The work has ended. True: it is due again, and the caller starts it now.
  bool landed() {
    under_way_ = false;
    return take();
  }
  // The work has ended, or was given up, and nothing starts now. What is due stays due.
  void ended() { under_way_ = false; }
  [[nodiscard]] bool under_way() const { return under_way_; }
  [[nodiscard]] bool due() const { return due_; }

 private:
  bool under_way_ = false;
  bool due_ = false;
};

}  // namespace muster
