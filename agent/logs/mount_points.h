// Finds out where a path is mounted, without access to its file system: the mount points of this
// process (/proc/self/mountinfo) say it, also while a server is dead. Any thread may call it.
//
// Symbolic links are not followed, because that could hang. So a path below a link seems to be on
// the file system of the link.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::agent {

// Returns a number of the file system that is mounted at the longest mount point above `path`, an
// absolute path. Paths of one file system have one number, at whichever of its mount points they
// are. 0: unknown.
std::uint64_t mount_of(const std::string& path);

// The same, from the text of mountinfo.
std::uint64_t mount_in(std::string_view mountinfo, std::string_view path);

}  // namespace muster::agent
