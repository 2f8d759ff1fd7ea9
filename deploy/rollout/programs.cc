#include "deploy/rollout/programs.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "common/base/assert.h"
#include "common/base/names.h"
#include "common/base/version.h"
#include "common/digest/sha256.h"
#include "common/io/file.h"
#include "common/spec/keys/values.h"
#include "deploy/rollout/bundle.h"

namespace muster::rollout {
namespace {

constexpr auto kAllPrograms = std::to_array<std::string_view>(
    {"muster", "muster-agent", "muster-controller", "muster-worker"});
constexpr std::size_t kProgramBytesMost = std::size_t{512} << 20U;

// Packages name the architectures as Debian does (cmake/MusterPackage.cmake), hosts as uname does.
std::string uname_architecture(std::string_view name) {
  if (name == "amd64") return "x86_64";
  if (name == "arm64") return "aarch64";
  return std::string(name);
}

std::string gzip(const std::string& raw) {
  constexpr int kGzipWindow = 15 + 16;  // zlib.h, deflateInit2: a gzip header
  z_stream stream{};
  const int begun =
      ::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  MUSTER_ASSERT(begun == Z_OK, "zlib accepts its own default settings");
  std::string out(::deflateBound(&stream, raw.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(raw.data()));
  stream.avail_in = static_cast<uInt>(raw.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int ended = ::deflate(&stream, Z_FINISH);
  MUSTER_ASSERT(ended == Z_STREAM_END, "deflateBound() is room enough");
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

}  // namespace

std::string elf_architecture(std::string_view bytes) {
  // elf(5): the magic, 64 bits, little-endian; e_machine is at 18.
  if (bytes.size() < 20 || !bytes.starts_with("\x7f"
                                              "ELF\x02\x01"))
    return {};
  const unsigned machine = static_cast<unsigned char>(bytes[18]) |
                           (static_cast<unsigned>(static_cast<unsigned char>(bytes[19])) << 8U);
  if (machine == 62) return "x86_64";
  if (machine == 183) return "aarch64";
  return {};
}

const std::string& ProgramBytes::compressed() const {
  std::call_once(once_, [this] { compressed_ = gzip(raw_); });
  return compressed_;
}

Result<void> Programs::add(const std::string& arch, std::string name, std::string raw,
                           std::string_view from) {
  const std::string machine = elf_architecture(raw);
  if (machine.empty() || (!arch.empty() && machine != arch))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("taking '{}' from '{}': it is {}; a program of Linux for {} is needed",
                            name, from, machine.empty() ? "no such program" : "for " + machine,
                            arch.empty() ? "x86_64 or aarch64" : arch));
  facts_[machine][name] = {.sha256 = sha256_hex(raw), .bytes = raw.size()};
  bytes_[machine][std::move(name)] = std::make_unique<ProgramBytes>(std::move(raw));
  return {};
}

Result<void> Programs::check_whole() const {
  for (const auto& [arch, set] : facts_) {
    for (const std::string_view name : kAllPrograms) {
      if (!set.contains(std::string(name)))
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("taking the programs for {}: '{}' is missing", arch, name));
    }
  }
  return {};
}

Result<Programs> Programs::from_directory(const std::filesystem::path& dir) {
  Programs out;
  out.version_ = kVersion;
  for (const std::string_view name : kAllPrograms) {
    auto raw = io::read_file(dir / name, kProgramBytesMost);
    if (!raw)
      return fail(std::move(raw.error())
                      .in("taking the programs next to this one; name a release with --bundle"));
    if (auto added = out.add({}, std::string(name), std::move(*raw), dir.string()); !added)
      return fail(std::move(added.error()));
  }
  if (auto whole = out.check_whole(); !whole) return fail(std::move(whole.error()));
  return out;
}

Result<Programs> Programs::from_bundles(const std::vector<std::string>& files) {
  Programs out;
  for (const std::string& file : files) {
    auto read = read_bundle(file, [&](std::string_view path, std::string bytes) -> Result<void> {
      while (path.starts_with("./")) path.remove_prefix(2);
      // muster-VERSION-ARCH/bin/PROGRAM
      constexpr std::string_view kBegin = "muster-", kBin = "/bin/";
      const std::size_t bin = path.find(kBin);
      if (!path.starts_with(kBegin) || bin == std::string_view::npos) return {};
      const std::string_view name = path.substr(bin + kBin.size());
      const std::string_view top = path.substr(kBegin.size(), bin - kBegin.size());
      const std::size_t dash = top.rfind('-');
      if (std::ranges::find(kAllPrograms, name) == kAllPrograms.end() ||
          dash == std::string_view::npos)
        return {};
      const std::string version(top.substr(0, dash));
      if (!is_node_name(version) || version == "current")
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("reading the release '{}': '{}' is no version", file,
                                spec::shown(version)));
      if (!out.version_.empty() && out.version_ != version)
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("reading the release '{}': it has version {}, another one has {}",
                                file, version, out.version_));
      out.version_ = version;
      return out.add(uname_architecture(top.substr(dash + 1)), std::string(name), std::move(bytes),
                     file);
    });
    if (!read) return fail(std::move(read.error()));
  }
  if (out.facts_.empty())
    return fail(ErrorCode::InvalidArgument,
                fmt::format("reading the release '{}': it has no muster-VERSION-ARCH/bin/muster",
                            files.empty() ? "" : files.front()));
  if (auto whole = out.check_whole(); !whole) return fail(std::move(whole.error()));
  return out;
}

const ProgramSet* Programs::set_for(const std::string& arch) const {
  const auto at = facts_.find(arch);
  return at == facts_.end() ? nullptr : &at->second;
}

const ProgramBytes& Programs::bytes(const std::string& arch, const std::string& name) const {
  return *bytes_.at(arch).at(name);
}

std::string Programs::architectures() const {
  std::string text;
  for (const auto& [arch, set] : facts_) text += (text.empty() ? "" : ", ") + arch;
  return text;
}

}  // namespace muster::rollout
