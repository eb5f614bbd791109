#pragma once
// The attack's image where an engine or a store has it.  Blocking; one thread.
// Fails with kUnavailable: the engine does not take it; else with what the store fails with.
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

// In a Docker Engine until its end, under a name of its own: others may have the same image.
class LoadedImage {
 public:
  explicit LoadedImage(std::string socket);
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;
  ~LoadedImage();
  Status load();
  const std::string& id() const { return id_; }

 private:
  Status call(const char* method, const std::string& target, const std::string& body) const;
  std::string socket_, name_, id_;
  bool loaded_ = false;
};

// Into the store at `store`, by way of a file in `dir`; the image's id.
Result<std::string> import_attack_image(const fs::path& store, const fs::path& dir);

}  // namespace proctor
