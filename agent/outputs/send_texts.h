// Sends small files of muster's own to the store of a job's outputs: lists of sums, and the mark of
// a checkpoint. A plain function, on the thread of an upload; it blocks.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "agent/outputs/send_files.h"

namespace muster::agent {

// By their names below the URL. They are written anew there, whatever is there. `is_last`: as in
// FilesToSend.
Uploaded send_texts(const UploadWork& work, const std::map<std::string, std::string>& texts,
                    std::function<bool(const std::string&)> is_last = nullptr);

}  // namespace muster::agent
