// muster-scenarios [--rewrite] FILE|FOLDER...: runs scenario files against the controller's core
// and compares what they print.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/scenarios/commands.h"

namespace {

using namespace muster::scenarios;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns true if the file is as it should be, or was rewritten.
bool run_file(const std::filesystem::path& path, bool rewrite) {
  const std::string text = read_file(path);
  const Script script = read_script(text);
  World world;
  std::vector<std::string> outputs;
  bool same = true;
  for (const Block& block : script.blocks) {
    for (const Command& command : block.commands) run_command(world, command);
    std::string output = world.take_trace();
    if (output.empty()) output = "ok\n";
    if (output != block.expected && !rewrite) {
      std::printf("%s: behind '%s'\n--- expected\n%s--- printed\n%s", path.c_str(),
                  block.commands.back().text.c_str(), block.expected.c_str(), output.c_str());
      same = false;
    }
    outputs.push_back(std::move(output));
  }
  if (rewrite) {
    if (const std::string written = write_script(script, outputs); written != text) {
      std::ofstream(path) << written;
      std::printf("%s: rewritten\n", path.c_str());
    }
  }
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  bool rewrite = false;
  std::vector<std::filesystem::path> files;
  for (int at = 1; at < argc; ++at) {
    const std::string argument = argv[at];
    if (argument == "--rewrite") {
      rewrite = true;
    } else if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::directory_iterator(argument)) {
        if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt")
          files.push_back(entry.path());
      }
    } else {
      files.emplace_back(argument);
    }
  }
  std::ranges::sort(files);
  if (files.empty()) {
    std::fprintf(stderr, "usage: muster-scenarios [--rewrite] FILE|FOLDER...\n");
    return 64;
  }
  std::size_t failed = 0;
  for (const auto& file : files) {
    try {
      failed += run_file(file, rewrite) ? 0 : 1;
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", file.c_str(), error.what());
      ++failed;
    }
  }
  std::printf("%zu of %zu scenarios passed\n", files.size() - failed, files.size());
  return failed == 0 ? 0 : 1;
}
