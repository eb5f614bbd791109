#include "coordinator/cvdp/dataset/prepare.h"

#include <doctest/doctest.h>

#include "common/base/digest.h"
#include "coordinator/cvdp/pycompat/python_text.h"
#include "coordinator/cvdp/pycompat/yaml.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::cvdp;
using namespace proctor::cvdp::testing;

namespace {
ComposeSettings shared_only() {
  ComposeSettings out;
  out.names.oss_sim = "sim:1";
  out.shared_network = "net";
  return out;
}
std::string normalised(std::string_view text, const ComposeSettings& s = shared_only()) {
  const auto c = normalise_compose(text, s);
  return c.ok() ? c->text : "! " + c.error().detail;
}
std::string service(const std::string& lines) {
  return "services:\n  a:\n    image: x\n" + lines;
}
Record agentic_record(std::string_view context, std::string_view patch, std::string_view harness) {
  std::vector<Finding> f;
  return check_record(json_of(R"({"id":"cvdp_agentic_a_0007","categories":["cid003","easy"],)"
                              R"("prompt":"p __OSS_SIM_IMAGE__","context":)" +
                              std::string(context) + ",\"patch\":" + std::string(patch) +
                              ",\"harness\":" + std::string(harness) + "}"),
                      1, f);
}
std::string laid_out(const Record& record, bool no_patch = false) {
  PrepareSettings s;
  s.no_patch = no_patch;
  s.names.oss_sim = "sim:1";
  const auto p = prepare(record, s);
  if (!p.ok()) return "! " + p.error().detail;
  std::string out = p->folder;
  for (const AnsweredFile& f : p->files) out += "\n" + f.path + "=" + f.text;
  return out;
}
}  // namespace

TEST_SUITE("cvdp") {
  // Oracle: PyYAML 6.
  TEST_CASE("YAML is read and written as PyYAML does") {
    const auto again = [](std::string_view text) {
      const auto v = read_yaml(text, "f");
      return v.ok() ? write_yaml(*v) : "! " + v.error().detail;
    };
    CHECK(again("b: [1, yes, ~, '1', 017, 1:30, 1.50, 1e3, x]\na: {}\n") ==
          "a: {}\nb:\n- 1\n- true\n- null\n- '1'\n- 15\n- 90\n- 1.5\n- 1e3\n- x\n");
    CHECK(again("a: \"caf\\u00e9\"\nb: '# x'\nc: |\n  two\n  lines\n") ==
          "a: \"caf\\xE9\"\nb: '# x'\nc: 'two\n\n  lines\n\n  '\n");
    CHECK(again("c: pytest -s --log-cli-level=INFO -o cache_dir=/rundir/harness/.cache "
                "/src/test_runner.py -v\n") ==
          "c: pytest -s --log-cli-level=INFO -o cache_dir=/rundir/harness/.cache "
          "/src/test_runner.py\n"
          "  -v\n");
    CHECK(again("a:\n- - 1\n- b: 1\n  c: []\n") == "a:\n- - 1\n- b: 1\n  c: []\n");
    // Numbers to the base of 60 that do not fit are texts; PyYAML has longer integers.
    for (const char* beyond : {"a: 99999999999999999999:30\n", "a: 1:0:0:0:0:0:0:0:0:0:0:0\n"})
      CHECK(again(beyond) == beyond);
    CHECK(again("a: &x 1\nb: *x\n").starts_with("! "));
    CHECK(again("a: [").starts_with("! "));
    CHECK(again("a: 1\na: 2\n").starts_with("! "));
  }

  TEST_CASE("a compose file is changed as upstream changes it") {
    CHECK(
        normalised("services:\n  b:\n    image: __OSS_SIM_IMAGE__ # which\n    volumes:\n"
                   "      - ./src/:/src/:ro\n      - ./x:/codegen\n  a:\n    build: .\n") ==
        "networks:\n  default:\n    external: true\n    name: net\nservices:\n  a:\n    build: .\n"
        "  b:\n    image: sim:1\n    volumes:\n    - ./src/:/src/:ro\n");
    ComposeSettings eda;
    eda.needs_eda = true;
    eda.names.license_network = "lic2";
    CHECK(normalised("services:\n  a:\n    image: x\n    networks: [licnetwork]\n", eda) ==
          "networks:\n  lic2:\n    external: true\n    name: lic2\nservices:\n  a:\n    image: x\n"
          "    networks:\n    - lic2\n");
  }

  TEST_CASE("a compose file that asks for the host is refused") {
    for (const char* lines :
         {"    privileged: true\n", "    network_mode: host\n", "    pid: host\n",
          "    volumes: ['/etc:/x']\n", "    volumes: ['~/x:/x']\n", "    volumes: ['../x:/x']\n",
          "    volumes: [{type: bind, source: /var/run/docker.sock, target: /s}]\n",
          "    volumes: ['./a/../../b:/x']\n", "    devices: [/dev/sda]\n", "    cap_add: [ALL]\n",
          "    build: /\n", "    build: {context: ../..}\n", "    env_file: /etc/passwd\n",
          "    network_mode: 'service:other'\n", "volumes: {v: {driver_opts: {device: /}}}\n",
          "include: [other.yml]\n"})
      CHECK_MESSAGE(normalised(service(lines)).starts_with("! "), lines);
    CHECK(normalised("") == "! docker-compose.yml is no mapping");
    CHECK(normalised("services: {}\n") == "! docker-compose.yml has no services");
    CHECK(normalised("services: {a: 5}\n") == "! service a: is a number, not a mapping");
    std::string bomb = "a0: &a0 x\n";
    for (int i = 1; i < 40; ++i)
      bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" +
              std::to_string(i - 1) + ", *a" + std::to_string(i - 1) + "]\n";
    CHECK(normalised(bomb).find("anchor") != std::string::npos);
  }

  TEST_CASE("a problem is laid out with and without its solution") {
    const Record r = agentic_record(
        R"({"rtl/a.sv":"x\n"})", R"({"rtl/a.sv":"@@ -1 +1 @@\n-x\n+y"})",
        R"({"src/t.py":"t","docker-compose.yml":"services: {b: {image: __OSS_SIM_IMAGE__}}"})");
    CHECK(laid_out(r) ==
          "cvdp_agentic_a/harness/7\nrtl/a.sv=y\n\nprompt.json={\"prompt\": \"p "
          "sim:1\"}\nsrc/t.py=t\n"
          "docker-compose.yml=services:\n  b:\n    image: sim:1\n");
    CHECK(laid_out(r, true).find("rtl/a.sv=x\n") != std::string::npos);
    CHECK(prompt_response_line(r, nullptr) ==
          R"({"cvdp_agentic_a_0007": {"input": {}, "output": {}, "obj": false}})");
  }

  TEST_CASE("hostile paths and solutions that are none are refused") {
    CHECK(laid_out(agentic_record("{}", R"({"../x":"@@ -0,0 +1 @@\n+y"})", "{}"))
              .find("no path inside") != std::string::npos);
    CHECK(
        laid_out(agentic_record("{}", "{}", R"({"src/../../../x":"y"})")).starts_with("! harness"));
    CHECK(laid_out(agentic_record("{}", R"({"a":null})", "{}")).starts_with("! patch.a is null"));
    CHECK(laid_out(agentic_record(R"({"a":"","a/b":""})", "{}", "{}")) ==
          "! \"a\" is a file and a folder");
    CHECK(laid_out(agentic_record(R"({"rtl":""})", "{}", "{}")) ==
          "! \"rtl\" is a file and a folder");
    CHECK(laid_out(agentic_record("{}", R"({"a":"@@ lies @@"})", "{}")).find("no hunk header") !=
          std::string::npos);
    CHECK(laid_out(agentic_record("{}", "{}", R"({"docker-compose.yml":"a: &x 1"})"))
              .starts_with("! harness.docker-compose.yml"));
  }

  TEST_CASE("MD5 is RFC 1321's") {
    CHECK(md5_hex("") == "d41d8cd98f00b204e9800998ecf8427e");
    CHECK(md5_hex("message digest") == "f96b697d7cb7938d525a2f31aaf161d0");
    CHECK(md5_hex(std::string(100, 'a')) == "36a92cc94a9e0fa21f625f8bfb007adf");
  }

  TEST_CASE("upstream's own network names and EDA detection") {
    if (!have_shared_data("upstream's own network names and EDA detection")) return;
    const Value names = units("network_names");
    for (const Member& m : *names.object())
      CHECK(upstream_network_name(m.key) == *m.value.string());
    const Value eda = units("eda_datapoint");
    for (const Value& c : *eda.array()) CHECK(needs_eda(in(c, "dp")) == *in(c, "req").boolean());
    CHECK(names.object()->size() == 3);
    CHECK(eda.array()->size() == 5);
  }
}
