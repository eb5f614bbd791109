#pragma once
// What setup made of an untouched snapshot, kept as a further read-only layer below workspaces:
// made once per host, by the first run that needs it, before its agent begins.  The key says all
// that setup can depend on (worker/shell/setup_key.h); who makes one holds a lock between processes
// and renames it into place, so what a killed maker left is never used.  Layers of an earlier boot
// were not synced and are made again.  Blocking.  Thread-safe, but one SetupMaking belongs to one
// thread.
//   <root>/layers/<key>/{work, home, output, layer.json, boot}; <key>.lock, <key>.use, <key>.new
//   work: the upper layer of an overlay, or the whole copy; home: what setup left in its home
#include <cstdint>
#include <memory>

#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/file_lock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/result.h"

namespace proctor {
struct SetupLayer {
  fs::path dir;
  Digest content;  // of every name, mode and byte in work and home
  // On disk: what setup made of the workspace; and of a copy, what counts as there before it.
  std::uint64_t bytes = 0, files = 0, bytes_before = 0, files_before = 0;
  Json steps;                           // what its maker says of each step
  std::shared_ptr<const FileLock> use;  // nobody evicts it while this lives
  fs::path work() const { return dir / "work"; }
  fs::path home() const { return dir / "home"; }
  fs::path output() const { return dir / "output"; }
};
// As its layer.json holds it.
void fields(auto& v, Is<SetupLayer> auto& layer) {
  v("content", layer.content);
  v("bytes", layer.bytes);
  v("files", layer.files);
  v("bytes_before", layer.bytes_before);
  v("files_before", layer.files_before);
  v("steps", layer.steps);
  v.require(layer.steps.is_array(), "steps", "expected a list");
}

// One that lies there, whoever made it: for workspaces of an earlier life.
Result<SetupLayer> open_setup_layer(const fs::path& dir);

// The right to make one.
class SetupMaking {
 public:
  // What a step has left in `output()` is kept with the layer.
  fs::path output() const { return fresh_ / "output"; }
  // Renames both folders into the layer.  `made`: all of it but dir, content and use.
  // kInvalid: there is something that a layer cannot hold (a device, a socket, too deep); both
  // folders are then where they were.
  Result<SetupLayer> keep(const fs::path& work, const fs::path& home, SetupLayer made) const;
  // Would keep() take them?
  static Status keepable(const fs::path& work, const fs::path& home);

 private:
  friend class SetupLayers;
  SetupMaking(fs::path dir, FileLock lock);
  fs::path dir_, fresh_;
  FileLock lock_;
};

class SetupLayers {
 public:
  static Result<SetupLayers> create(const fs::path& root);
  // kNotFound: there is none (yet).
  Result<SetupLayer> find(const Digest& key) const;
  // kConflict: somebody makes it now.
  Result<SetupMaking> begin(const Digest& key) const;

 private:
  explicit SetupLayers(fs::path root) : root_(std::move(root)) {}
  fs::path root_;
};
}  // namespace proctor
