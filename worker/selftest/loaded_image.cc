#include "worker/selftest/loaded_image.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "common/base/digest.h"
#include "common/base/json.h"
#include "common/images/image_store.h"
#include "worker/sandbox/docker_http.h"
#include "worker/selftest/attack_program.h"

namespace proctor {
namespace {

constexpr std::size_t kBlock = 512;

// POSIX ustar: name at 0, mode at 100, size at 124, time at 136, checksum at 148, type at 156.
std::string tar_entry(const std::string& name, char type, unsigned mode, std::string_view bytes) {
  std::array<char, kBlock> head{};
  std::memcpy(head.data(), name.data(), name.size());
  std::snprintf(head.data() + 100, 8, "%07o", mode);
  std::snprintf(head.data() + 108, 8, "%07o", 0U);
  std::snprintf(head.data() + 116, 8, "%07o", 0U);
  std::snprintf(head.data() + 124, 12, "%011zo", bytes.size());
  std::snprintf(head.data() + 136, 12, "%011o", 0U);
  std::memset(head.data() + 148, ' ', 8);
  head[156] = type;
  std::memcpy(head.data() + 257, "ustar\00000", 8);
  unsigned sum = 0;
  for (const char c : head) sum += static_cast<unsigned char>(c);
  std::snprintf(head.data() + 148, 8, "%06o", sum);
  std::string out(head.data(), head.size());
  out += bytes;
  out.append((kBlock - bytes.size() % kBlock) % kBlock, '\0');
  return out;
}

std::string ended(std::string tar) {
  return tar.append(2 * kBlock, '\0');
}

// An image that holds the attack program and nothing else, in the format of `docker save`: engines
// and the image store load it without a registry.
struct AttackImage {
  std::string archive;  // a tar
  std::string id;       // "sha256:..."
};
AttackImage make_attack_image(const std::string& name) {
  std::string layer;
  for (const char* folder : {"bin/", "dev/", "etc/", "home/", "opt/", "proc/", "run/", "sbin/",
                             "sys/", "tmp/", "workspace/"})
    layer += tar_entry(folder, '5', 0755, {});
  layer += tar_entry("bin/sh", '0', 0755, attack_program());
  layer += tar_entry("etc/passwd", '0', 0644, "root:x:0:0:root:/:/bin/sh\n");
  layer = ended(std::move(layer));
  const Json config = {
      {"architecture", host_architecture()},
      {"os", "linux"},
      {"config", {{"Env", Json::array({"PATH=/bin"})}}},
      {"rootfs", {{"type", "layers"}, {"diff_ids", {"sha256:" + sha256(layer).hex()}}}}};
  const std::string text = config.dump();
  const std::string hex = sha256(text).hex();
  const Json manifest = Json::array({{{"Config", hex + ".json"},
                                      {"RepoTags", Json::array({name})},
                                      {"Layers", Json::array({"layer.tar"})}}});
  return {
      ended(tar_entry(hex + ".json", '0', 0644, text) + tar_entry("layer.tar", '0', 0644, layer) +
            tar_entry("manifest.json", '0', 0644, manifest.dump())),
      "sha256:" + hex};
}

}  // namespace

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
