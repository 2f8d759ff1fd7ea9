// builtin:node-local-index. Every rank that misses the index files of a data set builds them on its
// own node, one rank at a time. The first rank to come takes a lock, and the others then find the
// files.
//
// Megatron-LM builds these files only on rank 0, and ranks of other nodes then search for them on
// their own disks. Vendors' tutorials let each node's first rank build instead (get_rank() %
// device_count() == 0). That fails on a node whose first rank has a middle pipeline stage, because
// only ranks of the first and the last stage build data sets (is_built_on_rank).
//
//   _build_document_sample_shuffle_indices, _build_indices, _build_sample_index
//       have no collectives inside, in any release; "not in the cache" is judged under the lock
//   build_generic_dataset, _build_megatron_datasets_parallel
//       unchanged: rank 0 first, a barrier, then the others. On rank 0's node the others find its
//       files. On another node the first rank builds them, which takes as long again. They meet at
//       the next data set's barrier, to which --distributed-timeout-minutes applies
//   _compile_dependencies
//       rank 0 compiles the C++ helpers of the tree, and a barrier follows. With one copy of the
//       tree on each node, each node's first rank (LOCAL_RANK 0) compiles them
//
// Known lines, megatron-core 0.4 to 0.19 and the main branch after it:
//   gpt_dataset.py        0.4, 0.5: "if not cache_hit and torch.distributed.get_rank() == 0:"; 0.6:
//                         "not torch.distributed.is_initialized() or ..."; 0.7 on: "and (not
//                         torch.distributed.is_initialized() or ...)"
//   blended_dataset.py    0.4 to 0.18: "if not path_to_cache or (not cache_hit and ...):"; 0.19: as
//                         gpt_dataset.py
//   masked_dataset.py     since 0.5, as gpt_dataset.py of 0.4
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/compat/code_patch/builtin.h"

namespace muster::code_patch {
namespace {

constexpr std::string_view kDatasets = "megatron/core/datasets/";
constexpr std::string_view kHelper = "muster_node_local_index";
constexpr std::string_view kRankZero = "torch.distributed.get_rank() == 0";
constexpr auto kConditions = std::to_array<std::string_view>({
    "        if not cache_hit and torch.distributed.get_rank() == 0:",
    "        if not path_to_cache or (not cache_hit and torch.distributed.get_rank() == 0):",
    "            not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0",
    "            and (not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0)",
});

struct Dataset {
  std::string_view file;
  std::string_view type;
  std::string_view method;
  bool needed;
};
constexpr auto kFiles = std::to_array<Dataset>({
    {.file = "gpt_dataset.py",
     .type = "GPTDataset",
     .method = "_build_document_sample_shuffle_indices",
     .needed = true},
    {.file = "blended_dataset.py",
     .type = "BlendedDataset",
     .method = "_build_indices",
     .needed = true},
    {.file = "masked_dataset.py",
     .type = "MaskedWordPieceDataset",
     .method = "_build_sample_index",
     .needed = false},
});

constexpr auto kInitialize =
    std::to_array<std::string_view>({"megatron/training/initialize.py", "megatron/initialize.py"});
constexpr std::string_view kCompile = "def _compile_dependencies():";
constexpr std::string_view kCompileOnce = "    if torch.distributed.get_rank() == 0:";
constexpr std::string_view kCompileOnNode =
    "    if int(__import__(\"os\").environ.get(\"LOCAL_RANK\", \"0\")) == 0:  # muster, "
    "builtin:node-local-index";

// MindSpeed-LLM and its predecessor replace Megatron's functions by their own at run time.
constexpr auto kMindSpeed = std::to_array<std::string_view>(
    {"mindspeed_llm/core/datasets/gpt_dataset.py", "modellink/core/datasets/gpt_dataset.py",
     "modellink/data/dataset_helpers.py"});

constexpr std::string_view kHelperText =
    R"(# muster, builtin:node-local-index: index files are built on every node that misses them, by one process at a time.
import fcntl
import functools
import hashlib
import os
import tempfile


def one_builder_a_node(build):
    @functools.wraps(build)
    def locked(self, *args, **kwargs):
        kept = getattr(self.config, "path_to_cache", None)
        if kept is None and (getattr(self.config, "mock", False) or not hasattr(self, "dataset")):
            return build(self, *args, **kwargs)  # in memory: each for itself
        what = [type(self).__name__, getattr(self, "unique_description_hash", "")]
        what += [str(getattr(self, name, "")) for name in ("index_split", "split")]
        what.append(str(kept or self.dataset.path_prefix))
        name = hashlib.sha256("\n".join(what).encode()).hexdigest()[:32]
        path = os.path.join(tempfile.gettempdir(), f"muster-index-{os.getuid()}-{name}.lock")
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return build(self, *args, **kwargs)
        finally:
            os.close(lock)

    return locked
)";

std::unexpected<Error> unknown(std::string_view file, const std::string& what) {
  return fail(ErrorCode::InvalidArgument,
              fmt::format("'{}' {}; it knows Megatron-LM of megatron-core 0.4 to 0.19: leave the "
                          "patch out and copy the index files to every node, or write a diff",
                          file, what));
}

// The position where the line begins; npos: the text does not have it. `line` is a whole line.
std::size_t find_line(std::string_view text, std::string_view line, std::size_t from = 0) {
  for (std::size_t at = text.find(line, from); at != std::string_view::npos;
       at = text.find(line, at + 1)) {
    const std::size_t end = at + line.size();
    if ((at == 0 || text[at - 1] == '\n') && (end == text.size() || text[end] == '\n')) return at;
  }
  return std::string_view::npos;
}

Result<std::string> changed_dataset(const std::string& file, const Dataset& dataset,
                                    std::string text) {
  if (text.find(kHelper) != std::string::npos)
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("'{}' has it already: code.from is a copy that was patched before", file));
  const std::string type = fmt::format("\nclass {}(", dataset.type),
                    method = fmt::format("\n    def {}(", dataset.method);
  if (text.find(type) == std::string::npos || text.find(method) == std::string::npos)
    return unknown(file, fmt::format("has no {}.{}()", dataset.type, dataset.method));
  std::string_view known;
  std::size_t at = std::string::npos;
  for (const std::string_view line : kConditions) {
    const std::size_t found = find_line(text, line);
    if (found == std::string::npos) continue;
    if (at != std::string::npos || find_line(text, line, found + 1) != std::string::npos)
      return unknown(file,
                     "has more than one line that asks for rank 0 before it builds index files");
    known = line;
    at = found;
  }
  if (at == std::string::npos)
    return unknown(file,
                   "has none of the known lines that ask for rank 0 before it builds index files");
  text.replace(at + known.find(kRankZero), kRankZero.size(), "True");
  if (!text.ends_with('\n')) text += '\n';
  text += fmt::format(
      "\n\n# muster, builtin:node-local-index\nfrom megatron.core.datasets.{0} import "
      "one_builder_a_node  # noqa: E402\n\n{1}.{2} = one_builder_a_node({1}.{2})\n",
      kHelper, dataset.type, dataset.method);
  return text;
}

Result<ChangedSource> changed_initialize(const ReadSource& read) {
  for (const std::string_view name : kInitialize) {
    auto text = read(std::string(name));
    if (!text) return fail(std::move(text.error()));
    if (!*text) continue;
    std::string changed = std::move(**text);
    const std::size_t begin = find_line(changed, kCompile);
    const std::size_t end = begin == std::string::npos
                                ? begin
                                : std::min(changed.find("\ndef ", begin + 1), changed.size());
    const std::size_t at =
        begin == std::string::npos ? begin : find_line(changed, kCompileOnce, begin);
    if (at >= end || changed.find("compile_helpers", at) >= end)
      return unknown(
          name, "has no known form of _compile_dependencies(), where rank 0 compiles the helpers");
    changed.replace(at, kCompileOnce.size(), kCompileOnNode);
    return ChangedSource{.name = std::string(name), .text = std::move(changed)};
  }
  return unknown(kInitialize.front(), "is not there");
}

}  // namespace

Result<std::vector<ChangedSource>> node_local_index(const ReadSource& read) {
  for (const std::string_view name : kMindSpeed) {
    auto text = read(std::string(name));
    if (!text) return fail(std::move(text.error()));
    if (*text)
      return fail(
          ErrorCode::InvalidArgument,
          fmt::format("'{}' is there: MindSpeed-LLM builds index files by functions of its own, "
                      "and on every node with its --no-shared-storage; put that into launch.args "
                      "and leave the patch out",
                      name));
  }
  std::vector<ChangedSource> changed;
  for (const Dataset& dataset : kFiles) {
    const std::string file = fmt::format("{}{}", kDatasets, dataset.file);
    auto text = read(file);
    if (!text) return fail(std::move(text.error()));
    if (!*text && !dataset.needed) continue;
    if (!*text) return unknown(file, "is not there: code.from has to be the Megatron-LM tree");
    auto now = changed_dataset(file, dataset, std::move(**text));
    if (!now) return fail(std::move(now.error()));
    changed.push_back({.name = file, .text = std::move(*now)});
  }
  auto initialize = changed_initialize(read);
  if (!initialize) return fail(std::move(initialize.error()));
  changed.push_back(std::move(*initialize));
  changed.push_back(
      {.name = fmt::format("{}{}.py", kDatasets, kHelper), .text = std::string(kHelperText)});
  return changed;
}

}  // namespace muster::code_patch
