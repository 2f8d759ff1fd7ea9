// Makes the shell's completion out of the tree of commands: verbs, options, the values of options
// that have a list. Names of jobs and nodes are asked for while the user completes, by 'muster ps'
// and 'muster node ls'. Pure; one thread.
//
// The scripts follow the programmable completion of bash(1) ("complete -F") and of zsh(1)
// (zshcompsys: "#compdef", _describe). They use nothing of the package bash-completion.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace muster::client {

std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);

}  // namespace muster::client
