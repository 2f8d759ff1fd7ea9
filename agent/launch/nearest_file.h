// Functions that guess what a missing path was meant to be. They keep no state. They read a bounded
// part of each directory, and may run on any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// Returns the name in `names` that differs by a typing error, else one with the same ending and the
// same beginning ("pretran.yaml", "pretrain_7b.yaml"). Empty: there is none.
std::string nearest_name(std::string_view missing, const std::vector<std::string>& names);

// Returns an existing path that replaces the first missing part of `missing`. Empty: there is none.
std::filesystem::path nearest_file(const std::filesystem::path& missing);

// Returns the name of a program in one of PATH's directories. Empty: there is none.
std::string nearest_program(std::string_view missing, std::string_view path);

// "; nearest: '/srv/a.yaml'", or an empty text.
std::string nearest_text(const std::filesystem::path& missing);

}  // namespace muster::agent
