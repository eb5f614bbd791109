#include "worker/selftest/loaded_image.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "common/images/image_store.h"
#include "worker/sandbox/docker_http.h"
#include "worker/selftest/attack_image.h"

namespace proctor {

LoadedImage::LoadedImage(std::string socket) : socket_(std::move(socket)) {
  static std::atomic<int> next{0};
  name_ = "proctor-selftest:p" + std::to_string(::getpid()) + "." + std::to_string(next++);
}

LoadedImage::~LoadedImage() {
  if (loaded_) (void)call("DELETE", "/images/" + name_, "").ok();
}

Status LoadedImage::load() {
  AttackImage image = make_attack_image(name_);
  id_ = std::move(image.id);
  PROCTOR_CHECK_OK(call("POST", "/images/load?quiet=1", image.archive));
  loaded_ = true;
  return ok_status();
}

Status LoadedImage::call(const char* method, const std::string& target,
                         const std::string& body) const {
  const auto deadline = DockerConnection::Clock::now() + std::chrono::seconds(20);
  PROCTOR_TRY(DockerConnection c, DockerConnection::open(socket_, deadline));
  PROCTOR_TRY(const HttpReply reply, c.call(method, "/v1.41" + target, body, deadline));
  if (reply.status <= 299) return ok_status();
  return Error{Errc::kUnavailable, "docker engine: " + std::to_string(reply.status)};
}

Result<std::string> import_attack_image(const fs::path& store, const fs::path& dir) {
  const AttackImage image = make_attack_image("proctor-selftest:oci");
  const fs::path archive = dir / "image.tar";
  PROCTOR_CHECK_OK(write_file(archive, image.archive, Durability::kLazy));
  PROCTOR_TRY(const ImageStore opened, ImageStore::open(store));
  PROCTOR_TRY([[maybe_unused]] const auto imported, opened.import_archive(archive));
  return image.id;
}

}  // namespace proctor
