#include "common/images/image_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "common/base/file_lock.h"
#include "common/base/json_fields.h"
#include "common/base/owned.h"
#include "common/base/text.h"

namespace proctor {
namespace {
constexpr std::size_t kImagesMax = 100;
constexpr std::size_t kLayersMax = 500;  // overlay drivers stop at 128
constexpr std::string_view kSha = "sha256:";

Error wrong(const std::string& what) {
  return Error{Errc::kInvalid, "image archive: " + what};
}

// A member; null, or empty where it must be a string or list: it is none.
const Json& member_of(const Json& object, std::string_view key) {
  static const Json kNone;
  const auto found = object.items().find(key);
  return found == object.items().end() ? kNone : found->second;
}

std::string text_of(const Json& object, std::string_view key) {
  const Json& text = member_of(object, key);
  return text.is_string() ? text.string() : "";
}

const Json& list_of(const Json& object, std::string_view key) {
  static const Json kNone = Json::array();
  const Json& list = member_of(object, key);
  return list.is_array() ? list : kNone;
}

Result<Digest> digest_of(const std::string& text) {
  if (!text.starts_with(kSha)) return wrong("'" + printable(text) + "' is no sha256 digest");
  return Digest::from_hex(std::string_view(text).substr(kSha.size()));
}

std::string blob_of(const std::string& digest) {
  return "blobs/sha256/" + digest.substr(std::min(kSha.size(), digest.size()));
}

Result<Json> json_file(const ImageArchive& archive, const std::string& name) {
  PROCTOR_TRY(const std::string bytes, archive.text(name));
  auto json = parse_json(bytes);
  if (!json.ok()) return wrong(printable(name) + ": " + json.error().detail);
  return json;
}

// A blob whose bytes are what its digest says.
Result<Json> json_blob(const ImageArchive& archive, const std::string& digest) {
  PROCTOR_TRY(const Digest expected, digest_of(digest));
  PROCTOR_TRY(const std::string bytes, archive.text(blob_of(digest)));
  if (sha256(bytes) != expected) return wrong("the bytes of " + digest + " are others");
  return json_file(archive, blob_of(digest));
}

std::vector<std::string> strings_of(const Json& list) {
  std::vector<std::string> out;
  for (const Json& item : list)
    if (item.is_string()) out.push_back(item.get<std::string>());
  return out;
}

ImageConfig config_of(const Json& configuration) {
  const Json& config = member_of(configuration, "config");
  return {strings_of(list_of(config, "Env")), strings_of(list_of(config, "Entrypoint")),
          strings_of(list_of(config, "Cmd")), text_of(config, "WorkingDir")};
}

// Fills id, architecture and the layers' contents from the configuration.
Status read_configuration(const ImageArchive& archive, const std::string& file,
                          const std::vector<std::string>& layer_files, ListedImage& out) {
  PROCTOR_TRY(const std::string bytes, archive.text(file));
  out.id = std::string(kSha) + sha256(bytes).hex();
  PROCTOR_TRY(const Json config, json_file(archive, file));
  out.architecture = text_of(config, "architecture");
  out.config = config_of(config);
  if (const std::string os = text_of(config, "os"); os != "linux")
    return wrong("image " + out.id + " is for '" + printable(os) + "', not for linux");
  if (out.architecture != host_architecture()) {
    return wrong("image " + out.id + " is for " + printable(out.architecture) + ", this host is " +
                 host_architecture());
  }
  const Json& contents = list_of(member_of(config, "rootfs"), "diff_ids");
  if (contents.size() != layer_files.size() || kLayersMax < contents.size())
    return wrong("image " + out.id + ": the manifest has " + std::to_string(layer_files.size()) +
                 " layers, the configuration " + std::to_string(contents.size()));
  for (std::size_t i = 0; i < contents.size(); ++i) {
    if (!contents[i].is_string()) return wrong("image " + out.id + ": a layer without digest");
    PROCTOR_TRY(const Digest digest, digest_of(contents[i].get<std::string>()));
    out.layers.push_back({layer_files[i], digest});
  }
  return ok_status();
}

Result<std::vector<ListedImage>> list_saved(const ImageArchive& archive) {
  PROCTOR_TRY(const Json manifest, json_file(archive, "manifest.json"));
  if (!manifest.is_array()) return wrong("manifest.json: not a list");
  std::vector<ListedImage> out;
  for (const Json& item : manifest) {
    if (out.size() == kImagesMax) return wrong("more than 100 images");
    ListedImage image;
    for (const std::string& name : strings_of(list_of(item, "RepoTags")))
      image.names.push_back(plain_image_name(name));
    PROCTOR_CHECK_OK(read_configuration(archive, text_of(item, "Config"),
                                        strings_of(list_of(item, "Layers")), image));
    out.push_back(std::move(image));
  }
  return out;
}

// An index within an index holds the same image for several architectures.
Status list_index(const ImageArchive& archive, const Json& index,
                  const std::vector<std::string>& names, int depth, std::vector<ListedImage>& out) {
  constexpr int kDepthMax = 3;
  if (depth == kDepthMax) return wrong("an index within an index within an index");
  for (const Json& item : list_of(index, "manifests")) {
    if (out.size() == kImagesMax) return wrong("more than 100 images");
    const std::string architecture = text_of(member_of(item, "platform"), "architecture");
    if (!architecture.empty() && architecture != host_architecture()) continue;
    std::vector<std::string> own = names;
    const std::string name =
        text_of(member_of(item, "annotations"), "org.opencontainers.image.ref.name");
    if (!name.empty()) own = {plain_image_name(name)};
    const std::string digest = text_of(item, "digest");
    PROCTOR_TRY(const Json blob, json_blob(archive, digest));
    if (!member_of(blob, "manifests").is_null()) {
      PROCTOR_CHECK_OK(list_index(archive, blob, own, depth + 1, out));
      continue;
    }
    ListedImage image;
    image.names = std::move(own);
    image.manifest = digest;
    std::vector<std::string> layers;
    for (const Json& layer : list_of(blob, "layers"))
      layers.push_back(blob_of(text_of(layer, "digest")));
    const std::string config = text_of(member_of(blob, "config"), "digest");
    PROCTOR_CHECK_OK(read_configuration(archive, blob_of(config), layers, image));
    out.push_back(std::move(image));
  }
  return ok_status();
}
}  // namespace

std::string host_architecture() {
  struct utsname host {};
  ::uname(&host);
  const std::string machine = static_cast<const char*>(host.machine);
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return machine;
}

std::string plain_image_name(std::string name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t last = slash == std::string::npos ? 0 : slash + 1;
  if (name.find_first_of(":@", last) == std::string::npos) name += ":latest";
  return name;
}

std::string image_feature(const std::string& reference) {
  constexpr std::size_t kKeyMax = 90;
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:/_@+-";
  const std::size_t at = reference.find("sha256:");
  const bool by_digest = at == 0 || (at != std::string::npos && reference[at - 1] == '@');
  std::string key = by_digest ? reference.substr(at) : plain_image_name(reference);
  if (kKeyMax < key.size() || key.find_first_not_of(kPlain) != std::string::npos)
    key = sha256(key).hex();
  return "image:" + key;
}

Result<std::vector<ListedImage>> list_images(const ImageArchive& archive) {
  std::vector<ListedImage> out;
  if (archive.has("manifest.json")) {
    PROCTOR_TRY(out, list_saved(archive));
  } else if (archive.has("index.json")) {
    PROCTOR_TRY(const Json index, json_file(archive, "index.json"));
    PROCTOR_CHECK_OK(list_index(archive, index, {}, 0, out));
  } else {
    return wrong(
        "neither manifest.json nor index.json: not made by docker save, nor an OCI layout");
  }
  if (out.empty()) return wrong("no image for " + host_architecture() + " in it");
  return out;
}

// ImageStore.

namespace {
constexpr const char* kUnfinished = "unfinished-";
constexpr const char* kRecord = "image.json";
constexpr std::size_t kRecordMax = std::size_t{1} << 20;

Status write_record(const fs::path& folder, const StoredImage& image) {
  return write_file(folder / kRecord, to_json(image).dump(1) + "\n", Durability::kSync, kOpenFile);
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
  const fs::path record = folder_of(id) / kRecord;
  PROCTOR_TRY(const std::string bytes, read_file(record, kRecordMax));
  PROCTOR_TRY(const Json json, parse_json(bytes));
  StoredImage image;
  PROCTOR_CHECK_OK(read_json(image, json, record.string(), Errc::kCorrupt, Versions::kAny));
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
      PROCTOR_CHECK_OK(unpack(unpacked, image, folder));
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
  const bool by_digest =
      digest.starts_with(kSha) && Digest::from_hex(std::string_view(digest).substr(7)).ok();
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
    if (!Digest::from_hex(name).ok()) continue;
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
