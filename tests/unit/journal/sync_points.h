// Replaces every fsync and fdatasync of this test program, also SQLite's, so that a test can count
// them or die at them. It belongs to the whole program. One thread at a time sets the hook.
//
// The replacements do nothing else. No test here cuts the power of the machine, and on a busy disk
// thousands of syncs would take minutes.
#pragma once

#include <cstdint>
#include <functional>

namespace muster::journal {

std::uint64_t syncs_so_far();

// Calls `at(true)` before and `at(false)` after each sync, until an empty function is set. One
// thread.
void on_sync(std::function<void(bool before)> at);

}  // namespace muster::journal
