// Checks the directory below which outputs of jobs are: can it be written, and who else sees the
// same files. Blocking, and a network file system may hang for ever: OutputsWatch calls it on a
// thread of its own. One caller at a time.
//
//   ROOT/.muster/storage           32 hex digits that name the storage. The first agent makes it,
//                                  and it never changes.
//   ROOT/.muster/seen/INSTANCE.M   an agent's mark, empty. M: when it was last here, in minutes of
//                                  the file system's own clock, so that the machines' clocks do not
//                                  matter. Renewing it is a rename.
//
// Two agents that see each other's marks have the same storage. The same id alone may be a copy of
// a disk. Marks of more than a day are removed. Only names are read, so that 1,024 agents on one
// NFS cost its server some hundred calls in a second.
//
// What others have put there is not trusted: links are not followed, only so many names are read.
// A mark is a regular file with one name. Anything else that has the name of the own mark is
// removed, and no file elsewhere is changed through it.
#pragma once

#include <string>

#include "muster/v1/node.pb.h"

namespace muster::agent::probe {

// Makes what is missing, `root` and its parents included, as a start of a job would. `instance`: of
// this agent. On a file system that is mounted read-only nothing is written.
v1::OutputsReading check_outputs(const std::string& root, const std::string& instance);

}  // namespace muster::agent::probe
