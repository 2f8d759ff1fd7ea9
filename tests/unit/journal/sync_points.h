// Every fsync and fdatasync of this test program, SQLite's too: counted, and a place to die at.
// They do nothing else: no test here cuts the power of the machine, and on a busy disk thousands of
// them would take minutes.
#pragma once

#include <cstdint>
#include <functional>

namespace muster::journal {

std::uint64_t syncs_so_far();

// Calls `at(true)` before and `at(false)` after each sync, until an empty function is set. One
// thread.
void on_sync(std::function<void(bool before)> at);

}  // namespace muster::journal
