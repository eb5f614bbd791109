// Importing archives: what comes out is what the layers say, and nothing a hostile one wants.
#include "common/images/image_store.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <thread>

#include "common/base/digest.h"
#include "common/base/json.h"
#include "common/base/subprocess.h"
#include "tests/support/test_image.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

struct Shelf {
  TempDir dir = TempDir::create("proctor-images-test").value();
  ImageStore store = ImageStore::open(dir.path() / "store").value();
  int next = 0;

  std::string run(std::vector<std::string> argv) {
    const auto out =
        run_for_output({.argv = std::move(argv), .cwd = {}, .env = {}, .stdin_bytes = {}});
    if (!out.ok()) FAIL(out.error().detail);
    return *out;
  }
  // A tar of what `script` makes in an empty folder.
  fs::path layer(const std::string& script, std::vector<std::string> options = {}) {
    const fs::path root = dir.path() / ("root" + std::to_string(++next));
    REQUIRE(make_dirs(root).ok());
    run({"sh", "-c", "cd " + root.string() + " && " + script});
    const fs::path tar = root.string() + ".tar";
    std::vector<std::string> argv = {"tar", "-C", root.string(), "-cf", tar.string()};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.push_back(".");
    run(argv);
    return tar;
  }
  TestImage image(const std::string& name, const std::vector<fs::path>& layers) {
    return write_image_of(dir.path(), name, layers).value();
  }
  fs::path import(const TestImage& image) {
    const auto made = store.import_archive(image.archive);
    if (!made.ok()) FAIL(made.error().detail);
    return store.root_of(made->front());
  }
  // Nothing half-done is left after an import, failed or not.
  bool tidy() const {
    for (const auto& entry : fs::directory_iterator(store.dir()))
      if (entry.path().filename().string().starts_with("unfinished")) return false;
    return true;
  }
};

std::string text(const fs::path& file) {
  return read_file(file, 1 << 20).value();
}

}  // namespace

TEST_SUITE("images") {
  TEST_CASE("upper layers replace and take away what lower ones brought") {
    Shelf s;
    const fs::path root = s.import(s.image(
        "a:1",
        {s.layer("mkdir -p d/sub e; echo old > d/f; echo x > d/sub/g; echo y > e/h; "
                 "ln -s d link; echo t > kind"),
         s.layer("mkdir -p d e; echo new > d/f; touch d/.wh.sub e/.wh..wh..opq; echo z > e/i; "
                 "mkdir kind; chmod 4711 d/f; ln d/f d/hard")}));
    CHECK(text(root / "d/f") == "new\n");
    CHECK_FALSE(fs::exists(root / "d/sub"));
    CHECK_FALSE(fs::exists(root / "d/.wh.sub"));
    CHECK_FALSE(fs::exists(root / "e/h"));
    CHECK(text(root / "e/i") == "z\n");
    CHECK(fs::is_symlink(root / "link"));
    CHECK(fs::is_directory(root / "kind"));
    CHECK(fs::hard_link_count(root / "d/hard") == 2);
    struct stat st {};
    REQUIRE(::stat((root / "d/f").c_str(), &st) == 0);
    if (::geteuid() == 0) CHECK((st.st_mode & 07777) == 04711);
    CHECK(s.tidy());
  }

  TEST_CASE("an image is found by id and name and digest and a name is the newest's") {
    Shelf s;
    const TestImage one = s.image("base:1", {s.layer("echo 1 > v")});
    s.import(one);
    CHECK(s.store.find(one.id).value().id == one.id);
    CHECK(s.store.find("base:1").value().id == one.id);
    CHECK(s.store.find("anything@" + one.id).value().id == one.id);
    CHECK(s.store.find("base").error().code == Errc::kNotFound);
    const TestImage two = s.image("base:1", {s.layer("echo 2 > v")});
    s.import(two);
    CHECK(s.store.find("base:1").value().id == two.id);
    CHECK(s.store.find(one.id).value().names.empty());
    CHECK(s.store.list().value().size() == 2);
    CHECK(s.store.remove("base:1").ok());
    CHECK(s.store.find("base:1").error().code == Errc::kNotFound);
    CHECK(s.store.list().value().size() == 1);
  }

  TEST_CASE("a layer that leads out of the image is refused and nothing is published") {
    Shelf s;
    const auto refused = [&](const fs::path& layer) {
      const auto made = s.store.import_archive(s.image("bad:1", {layer}).archive);
      REQUIRE_FALSE(made.ok());
      CHECK(made.error().code == Errc::kInvalid);
      CHECK(s.store.list().value().empty());
      CHECK(s.tidy());
    };
    refused(s.layer("echo x > f", {"--transform=s,^./f,../f,", "-P"}));
    refused(s.layer("echo x > f", {"--transform=s,^./f,/f,", "-P"}));
    CHECK_FALSE(fs::exists("/f"));
    // Marks that would take away the folder they stand in, or the one above.
    for (const char* mark : {".wh.", ".wh..", ".wh..."})
      refused(s.layer("touch " + std::string(mark)));
    const auto through = s.store.import_archive(
        s.image("bad:2",
                {s.layer("ln -s " + s.dir.path().string() + " out"),
                 s.layer("mkdir out; echo x > out/escaped", {"--exclude=./out", "./out/escaped"})})
            .archive);
    CHECK_FALSE(fs::exists(s.dir.path() / "escaped"));
    CHECK(s.tidy());
    (void)through;
  }

  TEST_CASE("archives that do not hold together are refused with a reason") {
    Shelf s;
    const fs::path parts = s.dir.path() / "parts";
    const auto says = [&](const std::string& script, const std::string& reason) {
      const TestImage good = s.image("x:1", {s.layer("echo 1 > v")});
      REQUIRE(remove_tree(parts).ok());
      REQUIRE(make_dirs(parts).ok());
      s.run({"sh", "-c",
             "cd " + parts.string() + " && tar -xf " + good.archive.string() + " && " + script +
                 " && tar -cf ../bad.tar ."});
      const auto made = s.store.import_archive(s.dir.path() / "bad.tar");
      REQUIRE_FALSE(made.ok());
      CAPTURE(made.error().detail);
      CHECK(made.error().detail.find(reason) != std::string::npos);
      CHECK(s.store.list().value().empty());
    };
    says("rm manifest.json", "neither manifest.json nor index.json");
    says("echo '[{' > manifest.json", "manifest.json");
    says("echo '[]' > manifest.json", "no image for");
    says("rm 0.tar", "no 0.tar");
    says("echo more >> 0.tar", "the image names sha256:");
    says("sed -i 's/\"amd64\"/\"s390x\"/; s/\"arm64\"/\"s390x\"/' *[0-9a-f].json", "this host is");
    CHECK(s.store.import_archive(s.dir.path() / "absent.tar").error().code == Errc::kNotFound);
    REQUIRE(write_file(s.dir.path() / "noise", "not a tar at all").ok());
    CHECK_FALSE(s.store.import_archive(s.dir.path() / "noise").ok());
  }

  TEST_CASE("an OCI layout gives the same image under its manifest's digest too") {
    Shelf s;
    const TestImage saved = s.image("x:1", {s.layer("echo 1 > v")});
    const fs::path parts = s.dir.path() / "layout";
    REQUIRE(make_dirs(parts / "blobs/sha256").ok());
    const std::string hex = saved.id.substr(7);
    s.run({"sh", "-c",
           "cd " + parts.string() + " && tar -xf " + saved.archive.string() +
               " && gzip -n 0.tar && mv " + hex + ".json blobs/sha256/" + hex +
               " && rm manifest.json && mv 0.tar.gz blobs/sha256/$(sha256sum 0.tar.gz | "
               "cut -c1-64)"});
    std::string layer;
    for (const auto& blob : fs::directory_iterator(parts / "blobs/sha256"))
      if (blob.path().filename() != hex) layer = blob.path().filename().string();
    const Json manifest = {{"schemaVersion", 2},
                           {"config", {{"digest", saved.id}}},
                           {"layers", Json::array({Json{{"digest", "sha256:" + layer}}})}};
    const std::string text_of_manifest = manifest.dump();
    const std::string digest = sha256(text_of_manifest).hex();
    REQUIRE(write_file(parts / "blobs/sha256" / digest, text_of_manifest).ok());
    const Json entry = {{"digest", "sha256:" + digest},
                        {"annotations", {{"org.opencontainers.image.ref.name", "laid:out"}}}};
    REQUIRE(
        write_file(parts / "index.json", Json{{"manifests", Json::array({entry})}}.dump()).ok());
    s.run({"tar", "-C", parts.string(), "-cf", (s.dir.path() / "layout.tar").string(), "."});
    const auto made = s.store.import_archive(s.dir.path() / "layout.tar");
    if (!made.ok()) FAIL(made.error().detail);
    CHECK(made->front().id == saved.id);
    CHECK(s.store.find("laid:out").value().id == saved.id);
    CHECK(s.store.find("laid@sha256:" + digest).value().id == saved.id);
    CHECK(text(s.store.root_of(made->front()) / "v") == "1\n");
  }

  TEST_CASE("imports at the same time unpack once and both succeed") {
    Shelf s;
    const TestImage image = s.image("x:1", {s.layer("echo 1 > v")});
    std::vector<int> good(4, 0);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < good.size(); ++i)
        threads.emplace_back([&, i] { good[i] = s.store.import_archive(image.archive).ok(); });
    }
    CHECK(good == std::vector<int>(4, 1));
    CHECK(s.store.list().value().size() == 1);
    CHECK(s.tidy());
  }
}
