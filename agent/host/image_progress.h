// How far podman or docker is with bringing an image, in figures, as well as it can be told from
// outside. Both draw bars on a terminal alone; without one
//   docker pull  says of every layer of the image what becomes of it: "7a1b: Pulling fs layer",
//                "7a1b: Pull complete": layers done, of all
//   podman pull  says which layers it has begun, "Copying blob sha256:...", and how many there are
//                not before the end, "Copying config"; the bytes that it has fetched lie in a
//                directory of its own until then ($TMPDIR/storage123/4), which its descriptors lead
//                to
//   podman load  copies the archive to such a directory as well: bytes of it, of the archive's size
//   docker load  sends the archive to the daemon: its place in that file
// Formats: docker/cli and moby (pkg/jsonmessage, distribution/pull_v2.go), containers/image (copy/,
// storage/storage_dest.go).
// Where another release does it otherwise there are fewer figures, or none.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "common/base/time.h"

namespace muster::agent {

// What a start tells of the image that it brings: written by its thread, read by any.
class ImageNews {
 public:
  void tell(std::string text);
  // Another start brings it: what that one tells, from here on. Never its own; one that follows is
  // followed by nobody.
  void follow(std::shared_ptr<const ImageNews> other);
  [[nodiscard]] std::string text() const;  // empty: nothing to tell

 private:
  mutable std::mutex mutex_;
  std::string text_;
  std::shared_ptr<const ImageNews> other_;
};

// One start at a time brings an image to this node; the others wait, and find it there. Any thread.
class ImageTurns {
 public:
  class Turn {
   public:
    Turn(ImageTurns& turns, std::string image, bool waited)
        : turns_(turns), image_(std::move(image)), waited_(waited) {}
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    [[nodiscard]] bool waited() const { return waited_; }  // somebody else has tried meanwhile

   private:
    ImageTurns& turns_;
    const std::string image_;
    const bool waited_;
  };
  // Null: it has not come by `until`. A turn must not outlive this object.
  std::unique_ptr<Turn> take(const std::string& image, BootTime until,
                             const std::shared_ptr<ImageNews>& news);

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  std::map<std::string, std::shared_ptr<ImageNews>> under_way_;
};

// Of one call of the tool; one thread.
class ImageProgress {
 public:
  // `archive`: what is loaded, of `size` bytes; empty: an image is pulled.
  ImageProgress(bool docker, std::string archive, std::uint64_t size)
      : docker_(docker), archive_(std::move(archive)), size_(size) {}
  // "3 of 7 layers"; empty: nothing can be told yet. `output`: all that it has said so far. `pid`:
  // its process, which is looked at through /proc.
  std::string update(pid_t pid, std::string_view output);

 private:
  const bool docker_;
  const std::string archive_;
  const std::uint64_t size_;
  std::set<std::string> staging_;  // directories that it was seen writing to
  std::uint64_t bytes_ = 0;
};

// Of what a pull says; `bytes`: that podman has fetched.
std::string docker_layers(std::string_view output);
std::string podman_layers(std::string_view output, std::uint64_t bytes);
// "2.1 of 8.4 GiB".
std::string part_text(std::uint64_t bytes, std::uint64_t size);

}  // namespace muster::agent
