#include "common/images/image_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "common/base/file_lock.h"
#include "common/base/json.h"
#include "common/base/owned.h"
#include "common/base/text.h"
#include "common/images/image_archive.h"
#include "common/images/image_layers.h"
#include "common/images/image_list.h"

namespace proctor {
namespace {

constexpr std::string_view kSha = "sha256:";
constexpr const char* kUnfinished = "unfinished-";
constexpr const char* kRecord = "image.json";
constexpr std::size_t kRecordMax = std::size_t{1} << 20;

bool is_hex_id(std::string_view text) {
  return Digest::from_hex(text).ok();
}

Status write_record(const fs::path& folder, const StoredImage& image) {
  Json json = {{"schema_version", 1},
               {"id", image.id},
               {"manifest", image.manifest},
               {"names", image.names},
               {"bytes", image.bytes}};
  if (image.config)
    json["config"] = {{"env", image.config->env},
                      {"entrypoint", image.config->entrypoint},
                      {"command", image.config->command},
                      {"working_dir", image.config->working_dir}};
  return write_file(folder / kRecord, json.dump(1) + "\n", Durability::kSync, kOpenFile);
}

// On disk before its name is: after a power failure there is all of it or nothing.
Status sync_all(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::syncfs(fd.get()) != 0) return errno_error("sync " + folder.string(), errno);
  return ok_status();
}

Result<StoredImage> unpack(const ImageArchive& archive, const ListedImage& listed,
                           const fs::path& folder) {
  const fs::path root = folder / "rootfs";
  PROCTOR_CHECK_OK(make_dirs(root));
  StoredImage image{listed.id, listed.manifest, {}, 0, listed.config};
  for (const ImageLayer& layer : listed.layers) {
    PROCTOR_TRY(const fs::path file, archive.file(layer.file));
    PROCTOR_TRY(const std::uint64_t bytes, apply_layer(file, layer.contents, root));
    image.bytes += bytes;
  }
  PROCTOR_CHECK_OK(write_record(folder, image));
  PROCTOR_CHECK_OK(sync_all(folder));
  return image;
}

}  // namespace

fs::path default_image_store() {
  const auto set = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
  };
  if (const fs::path named = set(kImageStoreVariable); !named.empty()) return named;
  if (const fs::path state = set("XDG_STATE_HOME"); state.is_absolute())
    return state / "proctor/images";
  const fs::path home = set("HOME");
  return (home.is_absolute() ? home : fs::path("/tmp")) / ".local/state/proctor/images";
}

Result<ImageStore> ImageStore::open(const fs::path& dir) {
  std::error_code ec;
  const fs::path whole = fs::absolute(dir, ec);
  PROCTOR_CHECK_OK(make_dirs(whole));
  constexpr mode_t kOwnerOnly = 0700;
  if (::chmod(whole.c_str(), kOwnerOnly) != 0) return errno_error("chmod " + whole.string(), errno);
  return ImageStore(whole);
}

fs::path ImageStore::folder_of(const std::string& id) const {
  return dir_ / id.substr(kSha.size());
}

fs::path ImageStore::root_of(const StoredImage& image) const {
  return folder_of(image.id) / "rootfs";
}

Result<StoredImage> ImageStore::read(const std::string& id) const {
  PROCTOR_TRY(const std::string bytes, read_file(folder_of(id) / kRecord, kRecordMax));
  PROCTOR_TRY(const Json json, parse_json(bytes));
  StoredImage image;
  try {
    json.at("id").get_to(image.id);
    json.at("manifest").get_to(image.manifest);
    json.at("names").get_to(image.names);
    json.at("bytes").get_to(image.bytes);
    if (const auto config = json.find("config"); config != json.end()) {
      image.config.emplace();
      config->at("env").get_to(image.config->env);
      config->at("entrypoint").get_to(image.config->entrypoint);
      config->at("command").get_to(image.config->command);
      config->at("working_dir").get_to(image.config->working_dir);
    }
  } catch (const Json::exception& e) {
    return Error{Errc::kCorrupt, (folder_of(id) / kRecord).string() + ": " + e.what()};
  }
  return image;
}

void ImageStore::sweep() const {
  std::error_code ec;
  for (fs::directory_iterator it(dir_, ec), end; !ec && it != end; it.increment(ec))
    if (it->path().filename().string().starts_with(kUnfinished)) (void)remove_tree(it->path()).ok();
}

Result<std::vector<StoredImage>> ImageStore::import_archive(const fs::path& archive) const {
  PROCTOR_TRY(const FileLock lock, FileLock::acquire(dir_ / "lock"));
  sweep();  // under the lock nobody else is half-way
  PROCTOR_TRY(const TempDir scratch, TempDir::create(kUnfinished, dir_));
  const fs::path files = scratch.path() / "archive";
  PROCTOR_CHECK_OK(make_dirs(files));
  PROCTOR_TRY(const ImageArchive unpacked, ImageArchive::unpack(archive, files));
  PROCTOR_TRY(const std::vector<ListedImage> listed, list_images(unpacked));
  std::vector<StoredImage> out;
  for (const ListedImage& image : listed) {
    const Result<StoredImage> known = read(image.id);
    if (known.ok() && !known->config) {
      StoredImage whole = *known;
      whole.config = image.config;
      PROCTOR_CHECK_OK(write_record(folder_of(image.id), whole));
    }
    if (!known.ok()) {
      const fs::path folder = scratch.path() / std::to_string(out.size());
      PROCTOR_TRY([[maybe_unused]] const StoredImage made, unpack(unpacked, image, folder));
      PROCTOR_CHECK_OK(remove_tree(folder_of(image.id)));  // one whose record is damaged
      if (::rename(folder.c_str(), folder_of(image.id).c_str()) != 0)
        return errno_error("publish image " + image.id, errno);
      PROCTOR_CHECK_OK(sync_path(dir_));
    }
    PROCTOR_CHECK_OK(take_names(image.names, image.id));
    PROCTOR_TRY(StoredImage stored, read(image.id));
    out.push_back(std::move(stored));
  }
  return out;
}

// A name is one image's: the newest import's.
Status ImageStore::take_names(const std::vector<std::string>& names,
                              const std::string& owner) const {
  PROCTOR_TRY(const std::vector<StoredImage> all, list());
  for (StoredImage image : all) {
    std::vector<std::string> left = image.names;
    for (const std::string& name : names) {
      std::erase(left, name);
      if (image.id == owner) left.push_back(name);
    }
    std::sort(left.begin(), left.end());
    if (left == image.names) continue;
    image.names = std::move(left);
    PROCTOR_CHECK_OK(write_record(folder_of(image.id), image));
  }
  return ok_status();
}

Result<StoredImage> ImageStore::find(const std::string& reference) const {
  const std::size_t at = reference.find('@');
  const std::string digest = at == std::string::npos ? reference : reference.substr(at + 1);
  const bool by_digest = digest.starts_with(kSha) && is_hex_id(std::string_view(digest).substr(7));
  if (by_digest) {
    if (auto image = read(digest); image.ok()) return image;
  }
  PROCTOR_TRY(const std::vector<StoredImage> all, list());
  const std::string name = by_digest ? std::string() : plain_image_name(reference);
  for (const StoredImage& image : all) {
    if (by_digest ? image.manifest == digest : std::ranges::binary_search(image.names, name))
      return image;
  }
  return Error{Errc::kNotFound, "no image " + printable(reference) + " in the store " +
                                    dir_.string() + " (see proctor images import)"};
}

Result<std::vector<StoredImage>> ImageStore::list() const {
  std::vector<StoredImage> out;
  std::error_code ec;
  for (fs::directory_iterator it(dir_, ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (!is_hex_id(name)) continue;
    if (auto image = read(std::string(kSha) + name); image.ok()) out.push_back(*std::move(image));
  }
  if (ec) return errno_error("read " + dir_.string(), ec.value());
  std::ranges::sort(out, {}, &StoredImage::id);
  return out;
}

Status ImageStore::remove(const std::string& reference) const {
  PROCTOR_TRY(const FileLock lock, FileLock::acquire(dir_ / "lock"));
  PROCTOR_TRY(const StoredImage image, find(reference));
  // Out of sight first: nobody finds a half of it.
  const fs::path away = dir_ / (kUnfinished + image.id.substr(kSha.size()));
  if (::rename(folder_of(image.id).c_str(), away.c_str()) != 0)
    return errno_error("remove image " + image.id, errno);
  return remove_tree(away);
}

}  // namespace proctor
