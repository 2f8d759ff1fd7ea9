#include "common/rundir/event_log.h"

namespace muster::rundir {
namespace {

template <class Record>
Record stamped(const Stamp& stamp) {
  Record record;
  record.set_wall_ns(stamp.now.wall.time_since_epoch().count());
  record.set_boot_ns(stamp.now.boot.time_since_epoch().count());
  record.set_boot_id(stamp.boot.str());
  return record;
}

}  // namespace

v1::Event stamped_event(const Stamp& stamp) { return stamped<v1::Event>(stamp); }
v1::Mark stamped_mark(const Stamp& stamp) { return stamped<v1::Mark>(stamp); }
WallTime wall_time(const v1::Event& event) { return WallTime(Duration(event.wall_ns())); }
WallTime wall_time(const v1::Mark& mark) { return WallTime(Duration(mark.wall_ns())); }

}  // namespace muster::rundir
