#include "coordinator/cvdp/dataset/import.h"

#include <doctest/doctest.h>

#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::cvdp;
using namespace proctor::cvdp::testing;

namespace {
std::string planned(std::string_view yaml) {
  const auto file = normalise_compose(yaml, {});
  if (!file.ok()) return "! " + file.error().detail;
  const auto plans = plan_services(file->value);
  if (!plans.ok()) return "! " + plans.error().detail;
  std::string out;
  for (const ServicePlan& p : *plans) {
    out += p.name + "|" + p.image + "|" + p.build + "|";
    for (const std::string& w : p.entrypoint) out += "<" + w + ">";
    for (const std::string& w : p.command) out += "[" + w + "]";
    for (const auto& [k, v] : p.environment) out += " " + k + (v ? "=" + *v : "");
    for (const auto& m : p.mounts)
      out += " " + m.source + ">" + m.target + (m.read_only ? ":ro" : "");
    for (const std::string& d : p.depends_on) out += " after " + d;
    out += "\n";
  }
  return out;
}
Record problem(const char* category = "cid003", const char* compose_extra = "") {
  std::vector<Finding> f;
  Record r = check_record(
      json_of(
          std::string(R"({"id":"cvdp_copilot_H.264_0001","categories":[")") + category +
          R"(","easy"],"input":{"prompt":"Do it.","context":{"rtl/a.sv":"old"}},"output":{"context":)" +
          R"({"rtl/a.sv":"new\n","rtl/b.sv":""}},"harness":{"files":{"docker-compose.yml":)" +
          R"("services:\n  direct:\n    image: x\n    env_file: ./src/.env\n    command: pytest /src/t.py -o d=/rundir/x\n)" +
          compose_extra +
          R"(","src/.env":"A  = /code/rtl/a.sv\n# c\nB='x y'\n","src/t.py":"it's"}}})"),
      1, f);
  REQUIRE(f.empty());
  return r;
}
std::string file_of(const std::vector<ContractFile>& files, const std::string& path) {
  for (const ContractFile& f : files)
    if (f.path == path) return f.bytes;
  return "none";
}
}  // namespace

TEST_SUITE("cvdp") {
  TEST_CASE("services are planned by name with their words and mounts") {
    CHECK(
        planned(
            "services:\n  b:\n    image: x\n    command: [run, 5, true]\n    depends_on: [a]\n"
            "    environment: {K: 1, N: }\n"
            "  a:\n    build: {context: ., dockerfile: D}\n    entrypoint: sh -c 'a b' \"c\\\"d\"\n"
            "    volumes: ['./src/:/src/:ro', {type: bind, source: ./x, target: /y}]\n"
            "    environment: [K=v=w, P]\n") ==
        "a||.|<sh><-c><a b><c\"d> K=v=w P ./src/>/src/:ro ./x>/y\n"
        "b|x||[run][5][true] K=1 N after a\n");
  }

  TEST_CASE("what the subset does not know is named") {
    const auto says = [](const char* yaml, const char* part) {
      const std::string all = planned(yaml);
      CHECK_MESSAGE(all.find(part) != std::string::npos, all);
    };
    says("services: {a: {image: x, deploy: {replicas: 2}}}", "\"deploy\" is not in the subset");
    says("services: {a: {command: x}}", "no image and no build");
    says("services: {a: {image: x, depends_on: [z]}}", "depends on \"z\", which there is not");
    says("services: {a: {image: x, command: \"'open\"}}", "open quote");
    says("services: {a: {image: x, volumes: ['a:/b:Z']}}", "the volume mode \"Z\"");
    says("services: {a: {image: x}}\nsecrets: {s: 1}", "\"secrets\" is not in the subset");
    says("services: {a: {image: x, build: {args: {A: 1}}}}", "\"build.args\"");
  }

  TEST_CASE("variables of a compose file are replaced as compose does where none is set") {
    CHECK(planned("services: {a: {image: 'x:${TAG:-1}', command: [a$$b, 'c${X}d$Y-', '${Z-e f}', "
                  "'${Z+no}'], environment: {K: $$V}}}") == "a|x:1||[a$b][cd-][e f][] K=$V\n");
    const auto says = [](const char* yaml, const char* part) {
      const std::string all = planned(yaml);
      CHECK_MESSAGE(all.find(part) != std::string::npos, all);
    };
    says("services: {a: {image: x, command: [$HOME]}}", "\"${HOME}\" is not in the subset");
    says("services: {a: {image: x, command: ['${A:?must}']}}",
         "\"${A:?must}\" is not in the subset");
    says("services: {a: {image: x, command: ['${A']}}", "has an open");
    says("services: {a: {image: x, command: ['$']}}", "is not in the subset");
  }

  TEST_CASE("what services depend on runs beside their checks, healthy where that is asked for") {
    const std::string extra =
        R"(    depends_on:\n      db: {condition: service_healthy}\n      log: {condition: service_started}\n)"
        R"(  log:\n    image: x\n    command: [log]\n    depends_on: [db]\n)"
        R"(  db:\n    image: x\n    working_dir: /db\n    volumes: ['./src:/src:ro']\n)"
        R"(    healthcheck: {test: [CMD, ping, \"it's\"], interval: 2s, timeout: 1s, retries: 4, start_period: 3s}\n)";
    ImportSettings s;
    s.image_id = [](const std::string&) { return "sha256:" + std::string(64, 'a'); };
    const auto made = [&](const ImportSettings& settings, const std::string& compose) {
      return make_contract(problem("cid003", compose.c_str()), "../r", std::string(40, 'b'),
                           settings);
    };
    const auto files = made(s, extra);
    REQUIRE_MESSAGE(files.ok(), files.error().detail);
    const std::string& yaml = files->at(0).bytes;
    CAPTURE(yaml);
    for (const char* part : {"services:\n", "name: db\n", "name: log\n", "interval: 500ms\n",
                             "timeout: 15000ms\n", "working_dir: /db\n", "'ping"}) {
      CAPTURE(part);
      CHECK(yaml.find(part) != std::string::npos);
    }
    CHECK(yaml.find("name: direct") == std::string::npos);
    const auto says = [&](const ImportSettings& settings, const std::string& compose,
                          std::string_view part) {
      const auto refused = made(settings, compose);
      const std::string text = refused.ok() ? "taken" : refused.error().detail;
      CHECK_MESSAGE(text.find(part) != std::string::npos, text);
      CHECK((!refused.ok() && refused.error().code == kBeyondSubset) == (part == kNeedsCompose));
    };
    const std::string plain = R"(    depends_on: [db]\n  db: {image: x, command: y}\n)";
    says(s, plain, "taken");
    says(s, R"(    depends_on: [D_b]\n  D_b: {image: x, command: y}\n)", kNeedsCompose);
    says(s, R"(    depends_on: {db: {condition: service_healthy}}\n  db: {image: x, command: y}\n)",
         "nothing says when");
    says(s,
         R"(    depends_on: {db: {condition: service_completed_successfully}}\n  db: {image: x}\n)",
         kNeedsCompose);
    ImportSettings open = s;
    open.network = true;
    says(open, plain, "share a network");
  }

  TEST_CASE("an environment file may have blanks round the equals sign") {
    const auto e = parse_env_file("SIM   = icarus\r\n# no\n\nexport X=\"a b\"\nP\nV = a # c\n");
    REQUIRE(e.ok());
    CHECK(*e == EnvPairs{{"SIM", "icarus"}, {"X", "a b"}, {"P", std::nullopt}, {"V", "a"}});
    CHECK_FALSE(parse_env_file("= x").ok());
  }

  TEST_CASE("a problem becomes a contract with its context as a commit") {
    const Record r = problem();
    ImportSettings settings;
    settings.containers = false;
    const auto files = make_contract(r, "../repos/cvdp.git", std::string(40, 'a'), settings);
    REQUIRE(files.ok());
    CHECK((*files)[0].path == "cvdp_copilot_h.264_0001.yaml");
    CHECK((*files)[0].bytes.find("category: cid003\n") != std::string::npos);
    CHECK((*files)[0].bytes.find("from: cvdp_copilot_h.264_0001/harness/src/t.py\n") !=
          std::string::npos);
    CHECK(
        file_of(*files, "cvdp_copilot_h.264_0001/reference.patch") ==
        "diff --git a/rtl/a.sv b/rtl/a.sv\n--- a/rtl/a.sv\n+++ b/rtl/a.sv\n@@ -1,1 +1,1 @@\n-old\n"
        "\\ No newline at end of file\n+new\n"
        "diff --git a/rtl/b.sv b/rtl/b.sv\nnew file mode 100644\nindex 0000000..e69de29\n");
    const std::string script = file_of(*files, "cvdp_copilot_h.264_0001/service-1.sh");
    CHECK(script.find("export A=\"$code\"'/rtl/a.sv'\nexport B='x y'\ncd \"$code/rundir\"\n"
                      "exec 'pytest' \"$code\"/src'/t.py' '-o' 'd='\"$code\"/rundir'/x'\n") !=
          std::string::npos);
    CHECK(file_of(*files, "cvdp_copilot_h.264_0001/harness/src/t.py") == "it's");
    const auto stream = commit_stream(r, 3);
    REQUIRE(stream.ok());
    CHECK(stream->starts_with("commit refs/heads/cvdp_copilot_h.264_0001\nmark :3\n"));
    CHECK(stream->find("M 100644 inline \"rtl/a.sv\"\ndata 3\nold\n") != std::string::npos);
  }

  TEST_CASE("a service becomes the container that upstream's command line makes of it") {
    ImportSettings settings;
    const std::string digest = "sha256:" + std::string(64, 'b');
    std::vector<std::string> asked;
    settings.image_id = [&](const std::string& name) -> Result<std::string> {
      asked.push_back(name);
      if (name == "gone") return Error{Errc::kInvalid, "image gone is not here"};
      return digest;
    };
    const Record r = problem("cid003", "    volumes: ['./src/:/src/:ro', './x:/code/x']\\n");
    const auto files = make_contract(r, "../repos/cvdp.git", std::string(40, 'a'), settings);
    REQUIRE(files.ok());
    CHECK(asked == std::vector<std::string>{"x"});
    const std::string& yaml = (*files)[0].bytes;
    const auto has = [&](const std::string& part) {
      CHECK_MESSAGE(yaml.find(part) != std::string::npos, yaml);
    };
    has("environment:\n  image: " + digest);
    has("    command:\n    - pytest\n    - /src/t.py\n    - -o\n    - d=/rundir/x\n");
    has("    - at: /code/src\n      from: src\n    - at: /src\n      from: src\n      writable: "
        "false\n");
    has("      A: /code/rtl/a.sv\n      B: x y\n      HOME: /code/rundir\n    working_dir: "
        "/code/rundir\n");
    has("  disk: 200MiB\n");
    CHECK(yaml.find("/code/x") == std::string::npos);  // dropped by upstream's normalisation
    CHECK(yaml.find("script:") == std::string::npos);
    const auto gone = make_contract(problem("cid003", "  other:\\n    image: gone\\n"), "",
                                    std::string(40, 'a'), settings);
    REQUIRE_FALSE(gone.ok());
    CHECK(gone.error().detail == "image gone is not here");
  }

  TEST_CASE("what no check can be made of is left out with the reason") {
    const auto why = [](const Record& r) {
      ImportSettings settings;
      settings.containers = false;
      const auto files = make_contract(r, "", "", settings);
      return files.ok() ? "" : files.error().detail;
    };
    CHECK(why(problem("cid006")) == "answers in words are scored by a text metric, not by a check");
    CHECK(why(problem("cid012")).starts_with("needs licensed tools: --verif-eda-image and "));
    CHECK(why(problem("cid003", "    environment: {'A B': 1}\\n")) ==
          "\"A B\" is no variable's name");
    CHECK(why(problem("cid003", "    privileged: true\\n")).find("privileged") !=
          std::string::npos);
    CHECK(why(problem("cid003", "  other:\\n    image: y\\n")) == "its command is in the image");
  }
}
