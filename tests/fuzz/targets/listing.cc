// What rclone says is at the URL of an input: the output of `rclone lsjson` -> Manifest. Its names
// are a store's, and become files below a directory of a node.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/store/contents.h"
#include "common/store/manifest.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

using store::Manifest;
using store::Object;

void check_local(const std::string& name) {
  const std::string local = store::local_name(name);
  require(local.size() <= 3000, "a name leaves room for the place above it");
  require(local.find('\0') == std::string::npos, "a name has no byte 0");
  require(name.find('\n') == std::string::npos, "a name fits in a line");
  for (std::size_t at = 0; at <= local.size();) {
    const std::size_t end = std::min(local.find('/', at), local.size());
    const std::string part = local.substr(at, end - at);
    require(!part.empty() && part != "." && part != ".." && part.size() <= 255,
            "each part is a name in its directory");
    at = end + 1;
  }
}

void check_files(const Manifest& manifest) {
  std::set<std::string> files, dirs;
  for (const Object& one : manifest.objects) {
    check_local(one.name);
    require(files.insert(store::local_name(one.name)).second, "no two objects are one file");
  }
  for (const std::string& dir : manifest.empty) {
    check_local(dir);
    require(dirs.insert(store::local_name(dir)).second, "an empty directory is there once");
  }
  const auto above_is_free = [&](const std::string& name) {
    for (std::size_t slash = name.find('/'); slash != std::string::npos;
         slash = name.find('/', slash + 1)) {
      const std::string above = name.substr(0, slash);
      require(!files.contains(above), "nothing is below a file");
      require(!dirs.contains(above), "nothing is below an empty directory");
    }
  };
  for (const std::string& file : files) above_is_free(file);
  for (const std::string& dir : dirs) {
    above_is_free(dir);
    require(!files.contains(dir), "no directory is a file");
  }
}

std::string listing_of(const Manifest& manifest) {
  std::string text = "[\n";
  const auto add = [&](const std::string& name, const nlohmann::ordered_json& more) {
    nlohmann::ordered_json entry = {{"Path", name}};
    entry.update(more);
    text += (text.size() > 2 ? ",\n" : "") + entry.dump();
  };
  for (const std::string& dir : manifest.empty) add(dir, {{"Size", -1}, {"IsDir", true}});
  for (const Object& one : manifest.objects)
    add(one.name, {{"Size", one.size},
                   {"ModTime", one.modified},
                   {"IsDir", false},
                   {"Hashes", {{"md5", one.md5}}}});
  return text + "\n]\n";
}

}  // namespace

void listing(std::string_view input) {
  const auto read = store::parse_listing(input);
  if (!read) {
    require(is_message(read.error().message), "a refusal is a sentence", read.error().message);
    return;
  }
  check_files(*read);
  for (const Object& one : read->objects) {
    require(read->bytes() >= one.size, "the sum of all sizes is no less than one");
    require(is_plain(one.modified) && is_plain(one.md5), "a version is a plain text");
  }
  const auto again = store::parse_listing(listing_of(*read));
  require(again.has_value(), "what was read can be listed", again ? "" : again.error().message);
  require(store::change_between(*read, *again).empty(), "and is the same then");
  require(store::check_names(*read).has_value(), "a node can have all of it");
  store::Contents contents{.is_file = false, .objects = {}, .empty = read->empty};
  for (const Object& one : read->objects)
    contents.objects.push_back(
        {.name = one.name, .size = one.size, .sha256 = std::string(64, 'a')});
  const auto kept = store::parse_contents(contents.text());
  require(kept && kept->objects == contents.objects && kept->empty == contents.empty,
          "and what it has can be kept");
  const std::string change = store::change_between(*read, {});
  require(change.empty() ? read->objects.empty() && read->empty.empty() : is_message(change),
          "a change is a sentence", change);
  std::vector<Object> together;
  for (const auto& batch : store::batches(read->objects, 1000, 3)) {
    require(!batch.empty() && batch.size() <= 3, "a batch is bounded");
    together.insert(together.end(), batch.begin(), batch.end());
  }
  require(together == read->objects, "batches are all objects, in their order");
}

}  // namespace muster::fuzz
