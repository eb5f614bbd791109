#include "common/images/image_list.h"

#include <sys/utsname.h>

#include "common/base/digest.h"
#include "common/base/json.h"
#include "common/base/text.h"

namespace proctor {
namespace {

constexpr std::size_t kImagesMax = 100;
constexpr std::size_t kLayersMax = 500;  // overlay drivers stop at 128
constexpr std::string_view kSha = "sha256:";

Error wrong(const std::string& what) {
  return Error{Errc::kInvalid, "image archive: " + what};
}

// A member that must be a string; empty: it is none.
std::string text_of(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const Json& list_of(const Json& object, const char* key) {
  static const Json kNone = Json::array();
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kNone;
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
  if (!configuration.is_object() || !configuration.contains("config")) return {};
  const Json& config = configuration["config"];
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
  const Json rootfs = config.is_object() && config.contains("rootfs") ? config["rootfs"] : Json();
  const Json& contents = list_of(rootfs, "diff_ids");
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
    const auto platform = item.is_object() ? item.find("platform") : item.end();
    if (item.is_object() && platform != item.end()) {
      const std::string architecture = text_of(*platform, "architecture");
      if (!architecture.empty() && architecture != host_architecture()) continue;
    }
    std::vector<std::string> own = names;
    if (item.is_object() && item.contains("annotations")) {
      const Json& notes = item["annotations"];
      const std::string name = text_of(notes, "org.opencontainers.image.ref.name");
      if (!name.empty()) own = {plain_image_name(name)};
    }
    const std::string digest = text_of(item, "digest");
    PROCTOR_TRY(const Json blob, json_blob(archive, digest));
    if (blob.is_object() && blob.contains("manifests")) {
      PROCTOR_CHECK_OK(list_index(archive, blob, own, depth + 1, out));
      continue;
    }
    ListedImage image;
    image.names = std::move(own);
    image.manifest = digest;
    std::vector<std::string> layers;
    for (const Json& layer : list_of(blob, "layers"))
      layers.push_back(blob_of(text_of(layer, "digest")));
    const Json config = blob.is_object() && blob.contains("config") ? blob["config"] : Json();
    PROCTOR_CHECK_OK(
        read_configuration(archive, blob_of(text_of(config, "digest")), layers, image));
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

}  // namespace proctor
