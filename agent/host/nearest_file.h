// What was probably meant by a path that is not there. Reads directories, a bounded part of each;
// any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// Of the names in a directory: the one that differs by a typing error; else one of the same ending
// that begins alike ("pretran.yaml", "pretrain_7b.yaml"). Empty: none.
std::string nearest_name(std::string_view missing, const std::vector<std::string>& names);

// A path that is there, in place of the first part of `missing` that is not. Empty: none.
std::filesystem::path nearest_file(const std::filesystem::path& missing);

// The name of a program in one of PATH's directories. Empty: none.
std::string nearest_program(std::string_view missing, std::string_view path);

// "; nearest: '/srv/a.yaml'", or nothing.
std::string nearest_text(const std::filesystem::path& missing);

}  // namespace muster::agent
