#include "common/base/git_program.h"

#include <doctest/doctest.h>

#include <map>

#include "worker/git/object_db.h"

namespace proctor {
namespace {

TEST_SUITE("git") {
  TEST_CASE("sources that are programs or options are refused") {
    for (const char* bad : {"ext::sh -c id", "fd::17", "-u./evil", "", "foo://host/x",
                            "ssh://-oProxy/x", "https:///x", "file://host/x", "a\nb"}) {
      CAPTURE(bad);
      const auto source = parse_source(bad, "/base");
      REQUIRE_FALSE(source.ok());
      CHECK(source.error().code == Errc::kInvalid);
    }
  }

  TEST_CASE("two spellings of one local path share a mirror") {
    const auto a = parse_source("repo", "/no/such/base");
    const auto b = parse_source("/no/such/x/../base/repo/", "/");
    const auto c = parse_source("file:///no/such/base/repo", "/");
    REQUIRE((a.ok() && b.ok() && c.ok()));
    CHECK(a->key == b->key);
    CHECK(a->key == c->key);
    CHECK(a->local);
    CHECK(a->location == "/no/such/base/repo");
  }

  TEST_CASE("credentials are in no shown text and do not choose the mirror") {
    const auto a = parse_source("https://user:hunter2@host.example/a.git", "/");
    const auto b = parse_source("https://other:token@host.example/a.git", "/");
    REQUIRE((a.ok() && b.ok()));
    CHECK(a->shown == "https://***@host.example/a.git");
    CHECK(a->location == "https://user:hunter2@host.example/a.git");
    CHECK(a->key == b->key);
    CHECK(redact_urls("fatal: 'https://u:p@h/x' and http://t@g/") ==
          "fatal: 'https://***@h/x' and http://***@g/");
    CHECK(redact_urls("https://u:p'q\"r@h/x") == "https://***@h/x");
    const char* const shown[][2] = {
        {"http://us@er:tok3n@AB/C@host/x.git", "http://***@host/x.git"},
        {"http://u:tok/3n@host/x", "http://***@host/x"},
        {"http://h:1/x.git?access_token=tok3nABC", "http://h:1/x.git?***"},
        {"http://u@h/x?a=tok3n&b=u@3n: no", "http://***@3n: no"},
        {"at 'http://h/x?a=tok3n': 403, see https://h/y?b\nmore a@b?c",
         "at 'http://h/x?***': 403, see https://h/y?***\nmore a@b?c"},
        {"://", "://"},
        {"http://?", "http://?***"}};
    for (const auto& [text, safe] : shown) CHECK(redact_urls(text) == safe);
    for (const auto& [url, address] :
         std::map<std::string, std::string>{{"https://u:p@h:1/a", "https://h:1/a"},
                                            {"https://token@h/a", "https://h/a"},
                                            {"ssh://git@h/a", "ssh://git@h/a"},
                                            {"ssh://git:p@h/a", "ssh://git@h/a"},
                                            {"git@h:a", "git@h:a"},
                                            {"git@h:a@b", "git@h:a@b"},
                                            {"https://u:p%2Fq@h/a", "https://h/a"},
                                            {"https://u:p?q@h/a%40b", "https://h/a%40b"},
                                            {"ssh://git@h/a?b", "ssh://git@h/a?b"},
                                            {"https://h/a@b", "https://h/a@b"}}) {
      CAPTURE(url);
      const auto source = parse_source(url, "/");
      REQUIRE(source.ok());
      CHECK(source->address == address);
    }
  }

  TEST_CASE("a source whose secret would be an argument of git's is refused without it") {
    for (const char* bad :
         {"https://h/x.git?access_token=sesame", "https://u:p@h?sesame", "http://h/sesame?a",
          "https://u:sesame/C@h/x", "https://u:12/sesame@h/x", "https://u@v:w/sesame@h/x",
          "https://u:p sesame@h/x", "https://p sesame@h/x", "ssh://u:sesame/p@h/x",
          "git://u:sesame/p@h/x", "u:sesame@h:x", "u:sesame@h/x", "u@v:sesame@h:x",
          "u:sesame/p@h:x"}) {
      CAPTURE(bad);
      const auto source = parse_source(bad, "/base");
      REQUIRE_FALSE(source.ok());
      CHECK(source.error().code == Errc::kInvalid);
      CHECK(source.error().detail.find("sesame") == std::string::npos);
    }
    for (const char* good : {"https://h/a@b", "./u:p@h:x", "a/u:p@h", "h:a?b", "/x?y@z:a"})
      CHECK_MESSAGE(parse_source(good, "/base").ok(), good);
  }

  TEST_CASE("a repository has one name however it is spelled") {
    for (const char* same :
         {"https://h.example/Org/x", "https://h.example/Org/x/", "https://h.example/Org/x.git",
          "https://h.example/Org/x.git/", "https://H.Example/Org/x", "http://u:p@h.example/Org//x",
          "https://token@h.example/Org/x", "ssh://git@h.example/Org/x.git",
          "git@h.example:Org/x.git", "h.example:/Org/./x"}) {
      CAPTURE(same);
      CHECK(repository_name(same, "/base") == "h.example/Org/x");
    }
    for (const char* same : {"x", "x/", "./x", "x.git", "x/.git", "x/.git/", "y/../x", "/base/x",
                             "//base/x", "file:///base/x", "file:///base/x/.git"}) {
      CAPTURE(same);
      CHECK(repository_name(same, "/base") == "/base/x");
    }
    for (const char* other : {"https://h.example/org/x", "https://h.example:1/Org/x",
                              "https://i.example/Org/x", "h.example/Org/x", "/h.example/Org/x"}) {
      CAPTURE(other);
      CHECK(repository_name(other, "/base") != "h.example/Org/x");
    }
  }

  TEST_CASE("submodule urls are resolved against their superproject") {
    struct Row {
      const char* parent;
      const char* url;
      const char* want;
    };
    const Row rows[] = {
        {"https://h.example/org/super.git", "../lib.git", "https://h.example/org/lib.git"},
        {"https://h.example/org/super.git", "./lib", "https://h.example/org/super.git/lib"},
        {"git@h.example:org/super", "../lib", "git@h.example:org/lib"},
        {"git@h.example:super", "../lib", "git@h.example:lib"},
        {"/srv/super", "../lib", "/srv/lib"},
        {"/srv/super", "https://h.example/lib", "https://h.example/lib"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.parent);
      CAPTURE(row.url);
      const auto parent = parse_source(row.parent, "/");
      REQUIRE(parent.ok());
      const auto got = resolve_submodule_url(*parent, row.url);
      REQUIRE(got.ok());
      CHECK(got->location == row.want);
    }
    const auto parent = parse_source("https://h.example/a", "/");
    CHECK_FALSE(resolve_submodule_url(*parent, "../../../x").ok());
    CHECK_FALSE(resolve_submodule_url(*parent, "ext::sh").ok());
  }

  TEST_CASE("object ids are 40 lower-case digits and nothing else") {
    const std::string good = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    CHECK(ObjectId::from_hex(good)->hex() == good);
    for (const std::string& bad : {std::string("HEAD"), good.substr(1), good + "0",
                                   std::string(40, 'G'), std::string(40, 'A')}) {
      CHECK_FALSE(ObjectId::from_hex(bad).ok());
    }
    const auto sha256 = ObjectId::from_hex(std::string(64, 'a'));
    REQUIRE_FALSE(sha256.ok());
    CHECK(sha256.error().detail.find("SHA-256") != std::string::npos);
  }

  TEST_CASE("trees hash as git hashes them") {
    CHECK(hash_object(ObjectType::kTree, encode_tree({})).hex() ==
          "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    // A folder sorts as if its name ended in a slash: "a.b" < "a/" < "a0".
    const ObjectId id = hash_object(ObjectType::kBlob, "");
    CHECK(id.hex() == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    const std::string bytes = encode_tree(
        {{git_mode::kBlob, "a0", id}, {git_mode::kTree, "a", id}, {git_mode::kBlob, "a.b", id}});
    CHECK(bytes.find("a.b") < bytes.find("40000 a"));
    CHECK(bytes.find("40000 a") < bytes.find("a0"));
  }

  TEST_CASE("trees with names that must never be files are refused") {
    for (const char* name : {"..", ".", ".git", ".GIT", ".gIt", "a/b", ""}) {
      CAPTURE(name);
      auto db = ObjectDb::open({});
      REQUIRE(db.ok());
      const auto id = db->write_tree({{git_mode::kBlob, name, {}}});
      REQUIRE(id.ok());
      const auto tree = db->tree(*id);
      REQUIRE_FALSE(tree.ok());
      CHECK(tree.error().code == Errc::kInvalid);
    }
  }

  TEST_CASE("an entry by a doubled name gets other contents only where its kind is meant") {
    auto db = ObjectDb::open({});
    REQUIRE(db.ok());
    const ObjectId blob = *db->write(ObjectType::kBlob, "b"), other = *db->write_tree({});
    const auto tree = db->write_tree({{git_mode::kBlob, "a", blob},
                                      {git_mode::kSymlink, "a", blob},
                                      {git_mode::kGitlink, "a", blob}});
    REQUIRE(tree.ok());
    for (const ObjectType type : {ObjectType::kTree, ObjectType::kBlob}) {
      const auto made = replace_in_tree(*db, *tree, type, {{"a", other}});
      REQUIRE(made.ok());
      const auto entries = db->tree(*made);
      REQUIRE(entries.ok());
      for (const GitTreeEntry& e : *entries) {
        CAPTURE(e.mode);
        const bool meant =
            e.mode == (type == ObjectType::kTree ? git_mode::kTree : git_mode::kBlob);
        CHECK(e.id == (meant ? other : blob));
      }
    }
  }

  TEST_CASE("every cut of a tree object is an error and never a crash") {
    const std::string whole =
        encode_tree({{git_mode::kBlob, "name", {}}, {git_mode::kTree, "sub", {}}});
    const std::size_t first = whole.find("40000");
    for (std::size_t n = 1; n < whole.size(); ++n) {
      if (n == first) continue;
      auto db = ObjectDb::open({});
      const auto id = db->write(ObjectType::kTree, whole.substr(0, n));
      REQUIRE(id.ok());
      CHECK_FALSE(db->tree(*id).ok());
    }
  }
}

}  // namespace
}  // namespace proctor
