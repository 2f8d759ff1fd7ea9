#include "controller/journal/head.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/assert.h"
#include "common/io/file.h"

namespace muster::journal {
namespace {

constexpr std::size_t kSlot = 512;
constexpr std::string_view kMagic = "muster-journal-head-1";
constexpr std::string_view kBehindMagic = "muster-journal-behind-1 ";

// The cluster id is there only for people: an id that does not fit this line is left out.
std::string shown(const ClusterId& cluster) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  const bool fits =
      !cluster.empty() && cluster.value.size() <= 128 && std::ranges::all_of(cluster.value, plain);
  return fits ? cluster.value : "-";
}

// The words with their checksum behind them.
std::string sealed(const std::string& words) { return words + " " + digest_of({words}).hex(); }

bool parse_number(std::string_view word, std::uint64_t& to) {
  const auto read = std::from_chars(word.data(), word.data() + word.size(), to);
  return read.ec == std::errc() && read.ptr == word.data() + word.size();
}

// One line of text, so that a person can read it, padded with spaces: magic, journal, index, chain,
// cluster, generation, and a checksum of all of these.
std::string slot_of(const Head& head) {
  std::string text =
      sealed(fmt::format("{} {} {} {} {} {}", kMagic, head.journal_id, head.index.value,
                         head.chain.hex(), shown(head.cluster), head.generation)) +
      " ";
  MUSTER_ASSERT(text.size() < kSlot, "a head that does not fit its slot");
  text.resize(kSlot - 1, ' ');
  return text + "\n";
}

std::optional<Head> head_of(std::string_view slot) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  std::size_t checksum_at = 0;
  while (words.size() < 7) {
    const std::size_t end = slot.find(' ', at);
    if (end == std::string_view::npos) return std::nullopt;
    if (words.size() == 6) checksum_at = at;
    words.push_back(slot.substr(at, end - at));
    at = end + 1;
  }
  if (words[0] != kMagic || digest_of({slot.substr(0, checksum_at - 1)}).hex() != words[6])
    return std::nullopt;
  Head head{.journal_id = std::string(words[1]),
            .index = {},
            .chain = {},
            .cluster = ClusterId(words[4] == "-" ? "" : std::string(words[4])),
            .generation = 0};
  if (!parse_number(words[2], head.index.value) || !Digest::parse_hex(words[3], head.chain) ||
      !parse_number(words[5], head.generation))
    return std::nullopt;
  return head;
}

constexpr std::string_view kMarking = "marking the journal as older than it must be";
constexpr std::string_view kNoReason =
    "the journal is marked as older than it must be, and the mark's reason is damaged";
// Two lines of text: magic, generation, and a checksum of both; then the sentence.
std::string mark_of(std::string_view why, std::uint64_t generation) {
  std::string text = sealed(fmt::format("{}{}", kBehindMagic, generation)) + "\n";
  text += why.substr(0, 2 * kSlot - text.size() - 1);
  return text + "\n";
}
// 0: the line is damaged.
std::uint64_t generation_of_mark(std::string_view line) {
  const std::size_t checksum_at = line.find(' ', kBehindMagic.size());
  std::uint64_t generation = 0;
  if (checksum_at == std::string_view::npos ||
      digest_of({line.substr(0, checksum_at)}).hex() != line.substr(checksum_at + 1) ||
      !parse_number(line.substr(kBehindMagic.size(), checksum_at - kBehindMagic.size()),
                    generation))
    return 0;
  return generation;
}
// `text` begins with kBehindMagic.
Behind mark_in(std::string_view text) {
  const std::size_t line_end = std::min(text.find('\n'), text.size());
  std::string_view why = text.substr(std::min(line_end + 1, text.size()));
  why = why.substr(0, why.find_first_of(std::string_view("\n\0", 2)));
  return {.why = std::string(why.empty() ? kNoReason : why),
          .generation = generation_of_mark(text.substr(0, line_end))};
}
std::filesystem::path before_mark(const std::filesystem::path& head) {
  return head.native() + ".before-mark";
}

}  // namespace

std::uint64_t generation_of(const HeadContent& content) {
  if (const auto* head = std::get_if<Head>(&content)) return head->generation;
  const auto* mark = std::get_if<Behind>(&content);
  return mark != nullptr ? mark->generation : 0;
}

Result<HeadContent> HeadFile::read(const std::filesystem::path& file) {
  const io::UniqueFd descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor) {
    if (errno == ENOENT) return NoHead{};
    return fail_errno(fmt::format("opening the journal's head '{}'", file.native()), errno);
  }
  std::array<char, 2 * kSlot> content{};
  const ssize_t size = ::pread(descriptor.get(), content.data(), content.size(), 0);
  if (size < 0)
    return fail_errno(fmt::format("reading the journal's head '{}'", file.native()), errno);
  const std::string_view text(content.data(), static_cast<std::size_t>(size));
  if (text.starts_with(kBehindMagic)) return mark_in(text);
  std::optional<Head> newest;
  for (std::size_t slot = 0; slot < 2; ++slot) {
    auto head = head_of(std::string_view(content.data() + slot * kSlot, kSlot));
    if (head && (!newest || newest->index < head->index)) newest = std::move(head);
  }
  if (newest) return std::move(*newest);
  return DamagedHead{fmt::format(
      "reading the journal's head '{}': neither of its two slots is sound", file.native())};
}

Result<HeadFile> HeadFile::create(const std::filesystem::path& file, const Head& head) {
  const std::string slot = slot_of(head);
  if (auto made = io::replace_file(file, slot + slot, io::Durable::Yes); !made)
    return fail(std::move(made.error()).in("making the journal's head"));
  io::UniqueFd descriptor(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  if (!descriptor)
    return fail_errno(fmt::format("opening the journal's head '{}'", file.native()), errno);
  return HeadFile(std::move(descriptor), file);
}

Result<void> HeadFile::mark_behind(const std::filesystem::path& file, std::string_view why,
                                   std::uint64_t generation) {
  const std::filesystem::path kept = before_mark(file);
  ::unlink(kept.c_str());
  ::link(file.c_str(), kept.c_str());  // if this fails, a false alarm cannot be undone
  if (auto made = io::replace_file(file, mark_of(why, generation), io::Durable::Yes); !made)
    return fail(std::move(made.error()).in(kMarking));
  return {};
}

Result<void> HeadFile::mark_behind_in_place(const std::filesystem::path& file, std::string_view why,
                                            std::uint64_t generation) {
  ::unlink(before_mark(file).c_str());  // it may use the same blocks
  std::string text = mark_of(why, generation);
  text.resize(2 * kSlot, ' ');
  const io::UniqueFd descriptor(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!descriptor)
    return fail_errno(fmt::format("{}: opening '{}'", kMarking, file.native()), errno);
  if (::pwrite(descriptor.get(), text.data(), text.size(), 0) !=
          static_cast<ssize_t>(text.size()) ||
      ::fdatasync(descriptor.get()) != 0)
    return fail_errno(fmt::format("{}: writing '{}'", kMarking, file.native()), errno);
  return {};
}

Result<void> HeadFile::write(const Head& head) {
  const std::string slot = slot_of(head);
  // The blocks exist since create(). On a file system that overwrites files in place, this write
  // cannot run out of room.
  if (::pwrite(descriptor_.get(), slot.data(), slot.size(),
               next_slot_ * static_cast<off_t>(kSlot)) != static_cast<ssize_t>(slot.size())) {
    return fail_errno(fmt::format("writing the journal's head '{}'", file_.native()), errno);
  }
  next_slot_ = 1 - next_slot_;
  return {};
}

Result<void> HeadFile::sync() {
  if (::fdatasync(descriptor_.get()) != 0)
    return fail_errno(fmt::format("syncing the journal's head '{}'", file_.native()), errno);
  return {};
}

}  // namespace muster::journal
