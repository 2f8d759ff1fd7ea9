// Classes and functions that show the progress of loading or pulling an image, as far as it is
// visible from outside the tool. container_image.cc creates an ImageProgress per call of the tool;
// Host::Impl owns the node's ImageTurns. ImageNews and ImageTurns are thread-safe; an ImageProgress
// belongs to one thread.
//
// podman and docker draw progress bars only on a terminal. Without one:
//
//   docker pull  prints the state of every layer: "7a1b: Pulling fs layer", "7a1b: Pull complete".
//                So layers done, of all, are known.
//   podman pull  prints which layers it has begun, "Copying blob sha256:...". Their number is known
//                only at the end, "Copying config". Until then the fetched bytes are in its own
//                directory ($TMPDIR/storage123/4), which its descriptors lead to.
//   podman load  also copies the archive to such a directory: its bytes, of the archive's size.
//   docker load  sends the archive to the daemon: its position in that file.
//
// Sources of the formats: docker/cli and moby (pkg/jsonmessage, distribution/pull_v2.go),
// containers/image (copy/, storage/storage_dest.go). If another release differs, there are fewer
// numbers, or none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "common/base/mutex.h"
#include "common/base/time.h"

namespace muster::agent {

// Progress of the image that a start fetches. The start's thread writes it; any thread may read it.
class ImageNews {
 public:
  void tell(std::string text);
  // Another start fetches the image: from now on its progress is shown. Do not pass this object
  // itself. A follower is not followed by others.
  void follow(std::shared_ptr<const ImageNews> other);
  [[nodiscard]] std::string text() const;  // empty: nothing is known

 private:
  mutable Mutex mutex_;
  std::string text_ MUSTER_GUARDED_BY(mutex_);
  std::shared_ptr<const ImageNews> other_ MUSTER_GUARDED_BY(mutex_);
};

// One start at a time fetches an image to this node. The others wait, and then find it there.
// Thread-safe.
class ImageTurns {
 public:
  class Turn {
   public:
    Turn(ImageTurns& turns, std::string image, bool waited)
        : turns_(turns), image_(std::move(image)), waited_(waited) {}
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    [[nodiscard]] bool waited() const { return waited_; }  // another start has tried meanwhile

   private:
    ImageTurns& turns_;
    const std::string image_;
    const bool waited_;
  };
  // Null: the turn has not come by `until`. A turn must not outlive this object.
  std::unique_ptr<Turn> take(const std::string& image, BootTime until,
                             const std::shared_ptr<ImageNews>& news);

 private:
  Mutex mutex_;
  CondVar free_;
  std::map<std::string, std::shared_ptr<ImageNews>> under_way_ MUSTER_GUARDED_BY(mutex_);
};

// Progress of one call of the tool. Used on one thread.
class ImageProgress {
 public:
  // `archive`: the file that is loaded, of `size` bytes. Empty: an image is pulled.
  ImageProgress(bool docker, std::string archive, std::uint64_t size)
      : docker_(docker), archive_(std::move(archive)), size_(size) {}
  // Returns "3 of 7 layers"; empty: nothing is known yet. `output`: all that the tool has printed
  // so far. `pid`: its process, which is read through /proc.
  std::string update(pid_t pid, std::string_view output);

 private:
  const bool docker_;
  const std::string archive_;
  const std::uint64_t size_;
  std::set<std::string> staging_;  // directories that the tool has written to
  std::uint64_t bytes_ = 0;
};

// Progress from the output of a pull. `bytes`: what podman has fetched.
std::string docker_layers(std::string_view output);
std::string podman_layers(std::string_view output, std::uint64_t bytes);

}  // namespace muster::agent
