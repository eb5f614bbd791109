#include "coordinator/cvdp/dataset/dataset.h"

#include <doctest/doctest.h>

#include "coordinator/cvdp/pycompat/python_text.h"
#include "coordinator/cvdp/pycompat/yaml.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::cvdp;
using namespace proctor::cvdp::testing;

namespace {
std::string lines_of(std::string_view text, std::size_t piece, std::size_t line_max = 100) {
  LineFeed feed(line_max);
  std::string out;
  const auto take = [&](const LineFeed::Line& l) {
    out += std::to_string(l.number) + (l.too_long ? "!" : "") + "<" + std::string(l.text) + ">";
  };
  for (std::size_t i = 0; i < text.size(); i += piece) feed.feed(text.substr(i, piece), take);
  feed.finish(take);
  return out;
}

struct Reading {
  std::vector<std::string> ids;
  std::string findings;
  DatasetSummary summary;
};
Reading read(std::string_view text, const DatasetBounds& bounds = {}) {
  Reading out;
  DatasetReader reader([&](const Record& r) { out.ids.push_back(r.id.text); },
                       [&](const Finding& f) { out.findings += to_string(f) + "\n"; }, bounds);
  reader.feed(text);
  reader.finish();
  out.summary = reader.summary();
  return out;
}
std::string record(const std::string& id) {
  return R"({"id":")" + id + R"(","categories":["cid003","easy"],"prompt":"p","context":{},)" +
         R"("patch":{},"harness":{"docker-compose.yml":"x"}})";
}
using Ids = std::vector<std::string>;
}  // namespace

TEST_SUITE("cvdp") {
  TEST_CASE("lines end as in Python's text mode however the pieces are cut") {
    for (std::size_t piece = 1; piece < 12; ++piece) {
      CHECK(lines_of("a\nb\r\nc\rd", piece) == "1<a>2<b>3<c>4<d>");
      CHECK(lines_of("\n\r\n\r\rx\n", piece) == "1<>2<>3<>4<>5<x>");
      CHECK(lines_of("abcdef\nxy\n", piece, 4) == "1!<>2<xy>");
    }
    CHECK(lines_of("", 1) == "");
  }

  TEST_CASE("a bad line is told and the others are read") {
    const Reading r =
        read(record("cvdp_agentic_a_1") + "\n\nnot json\n[1]\n" + record("cvdp_agentic_b_1") +
             "\n" + record("nounderscore") + "\n" + record("cvdp_agentic_c_x"));
    CHECK(r.ids == Ids{"cvdp_agentic_a_1", "cvdp_agentic_b_1"});
    CHECK(r.summary.errors == 5);
    CHECK(r.summary.records == 2);
    CHECK(r.findings.find("2: error: a blank line") != std::string::npos);
    CHECK(r.findings.find("3: error: column 1: a value is expected") != std::string::npos);
  }

  TEST_CASE("an id that comes again is a warning and a shared folder an error") {
    const Reading r = read(record("cvdp_agentic_a_1") + "\n" + record("cvdp_agentic_a_1") + "\n" +
                           record("cvdp_agentic_a_0001") + "\n");
    CHECK(r.ids == Ids{"cvdp_agentic_a_1", "cvdp_agentic_a_1"});
    CHECK(r.findings.find("2: warning: id: \"cvdp_agentic_a_1\" is also on line 1") !=
          std::string::npos);
    CHECK(r.findings.find("3: error: id: \"cvdp_agentic_a_0001\" shares the folder") !=
          std::string::npos);
  }

  TEST_CASE("an empty file and lines and files that are too large are refused") {
    CHECK(read("").findings == "0: error: the file holds no record\n");
    CHECK(read(record("a_1") + "\n" + record("a_2"), {.line_bytes_max = 10}).summary.errors == 2);
    CHECK(read(record("a_1") + "\n" + record("a_2") + "\n" + record("a_3"), {.records_max = 1})
              .ids.size() == 2);
  }

  TEST_CASE("the published examples have no error") {
    if (!have_shared_data("the published examples have no error")) return;
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(shared_data() / "datasets")) {
      CAPTURE(entry.path().string());
      const Reading r = read(bytes_of(entry.path()));
      CHECK(r.findings == "");
      CHECK(r.summary.records == 1);
      CHECK(r.summary.redacted ==
            (entry.path().string().find("no_commercial.jsonl") != std::string::npos ? 1 : 0));
      ++files;
    }
    CHECK(files == 4);
  }

  TEST_CASE("a record comes back from YAML as it was, and texts of several lines are blocks") {
    const std::string records[] = {
        R"({"id": "cvdp_a_1", "categories": ["cid003", "easy"], "n": 7, "x": 0.5, "no": null, "y": true})",
        R"({"a/b.sv": "module a;\n  x\n\nendmodule\n", "b": "no end\nhere", "c": "more\n\n\n"})",
        R"({"a": "  begins\n with blanks\n", "b": "\nfirst empty\n", "c": "\n", "d": "", "e": "yes"})",
        R"({"a": "trailing  \n\t tab\n   \nb", "b": "\r\n\u2028\n\u0085", "c": "\u0007\n", "d": "---\n--- x\n"})",
        R"({"on": {"true": {"1": []}}, "l": [[], {}, [1, "a\nb"], {"k": "v"}], "q": "a: b # c", "- x": "|"})",
        R"({"#": "\u00e9\n\ud83d\ude00", "": "empty key", "long": ")" + std::string(5000, 'x') +
            R"("})",
    };
    std::string all;
    for (const std::string& record : records) {
      CAPTURE(record);
      const auto yaml = record_yaml(json_of(record));
      REQUIRE_MESSAGE(yaml.ok(), yaml.error().detail);
      all += *yaml;
    }
    CHECK(all.find("a/b.sv: |\nmodule a;") == std::string::npos);
    CHECK(all.find("a/b.sv: |\n  module a;\n    x\n\n  endmodule\n") != std::string::npos);
    const auto documents = split_documents(all);
    REQUIRE(documents.size() == std::size(records));
    for (std::size_t i = 0; i < documents.size(); ++i) {
      const auto back = read_yaml(documents[i].text, "f", kRecordBytes);
      REQUIRE_MESSAGE(back.ok(), back.error().detail);
      CHECK(write_json(*back) == write_json(json_of(records[i])));
    }
    CHECK(split_documents("a: 1\n--- \nb: 2\n---\n").size() == 2);
    CHECK(split_documents("# c\n---\nb: 2\n")[1].line == 2);
    const auto odd = record_yaml(json_of(R"({"half": "\ud800"})"));
    CHECK_FALSE(odd.ok());
  }

  TEST_CASE("a .env gives what is known of it, as upstream reads it") {
    const auto read = read_dotenv(
        "# OSS_SIM_IMAGE=no\n\n OSS_SIM_IMAGE = 'a b' \nPATH=/evil\nLD_PRELOAD=x\n"
        "DOCKER_TIMEOUT=5\nDOCKER_TIMEOUT=6\nOPENAI_USER_KEY=\"k=v\nMODEL_TIMEOUT\n"
        "DEFAULT_MODEL=\"\"\r\n");
    std::string said;
    for (const auto& [key, value] : read) said += key + "[" + value + "]";
    CHECK(said == "OSS_SIM_IMAGE[a b]DOCKER_TIMEOUT[5]OPENAI_USER_KEY[\"k=v]DEFAULT_MODEL[]");
  }
}
