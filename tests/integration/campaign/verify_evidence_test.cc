// `proctor verify`: evidence that is missing, changed, elsewhere or nobody's is a problem, counted.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/digest.h"
#include "tests/support/books.h"
#include "tests/support/campaign_scene.h"
#include "tests/support/journal_schemas.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

CampaignShape small() {
  CampaignShape shape;
  shape.methods = {"noop", "reference"};
  shape.replicates = 1;
  shape.ledger = "journal";
  return shape;
}

// Exit code 1, and this stands in a line of its own beside what it is about.
void finds(const CampaignScene& scene, const std::string& text) {
  const CommandOutcome verified = scene.run("verify");
  CHECK_MESSAGE(verified.exit_code == 1, verified.out);
  CHECK_MESSAGE(contains(verified.out, text), verified.out);
  CHECK_FALSE(contains(verified.out, " events: 0 problems"));
}
void finds_nothing(const CampaignScene& scene) {
  const CommandOutcome verified = scene.run("verify");
  CHECK_MESSAGE(verified.exit_code == 0, verified.out << verified.err);
}

}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("verify counts evidence that is missing") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    finds_nothing(scene);
    const fs::path runs = scene.folder() / "runs", kept = scene.temp() / "kept";
    fs::rename(runs, kept);
    finds(scene, "reference/r1/attempt-1: the run directory is missing; the journal says success");
    CHECK(contains(scene.run("verify").out, " events: 4 problems"));
    const std::string run = "add/reference/r1", gone = "    its evidence is gone from ";
    const std::string from = "its evidence is gone from " + (runs / run / "attempt-1").string();
    for (const char* command : {"logs", "diff"}) {
      const CommandOutcome told = scene.run(command, {run});
      CHECK(told.exit_code != 0);
      CHECK_MESSAGE(contains(told.err, from), told.err);
    }
    const auto tells_that_it_is_gone = [&] {
      const CommandOutcome told = scene.run("explain", {run});
      CHECK_MESSAGE(told.exit_code == 0, told.err);
      CHECK_MESSAGE(contains(told.out, gone + (runs / run / "attempt-1").string()), told.out);
      CHECK_FALSE_MESSAGE(contains(told.err, "No such file"), told.err);
    };
    tells_that_it_is_gone();
    CHECK(scene.run("explain", {run, "--calls"}).exit_code == 0);
    // All of it is to be read through a link, which is not where it is kept.
    fs::create_directory_symlink(kept, runs);
    finds(scene, runs.string() + ": a symbolic link, where the campaign's own folder must be");
    fs::remove(runs);
    fs::rename(kept, runs);
    const fs::path archive = runs / "add/reference/r1/attempt-1.tar.zst";
    fs::rename(archive, kept);
    finds(scene, "attempt-1.tar.zst: the archive is missing");
    fs::rename(kept, archive);
    CHECK_FALSE(contains(scene.run("explain", {run}).out, gone));
    fs::permissions(runs / run / "attempt-1", fs::perms::owner_all);
    for (const char* file : {"report.json", "events.jsonl"}) {
      fs::rename(runs / run / "attempt-1" / file, kept);
      tells_that_it_is_gone();
      fs::rename(kept, runs / run / "attempt-1" / file);
    }
    const fs::path patch = runs / run / "attempt-1/patch.diff";
    fs::rename(patch, kept);
    const CommandOutcome no_patch = scene.run("diff", {run});
    CHECK(no_patch.exit_code != 0);
    CHECK_MESSAGE(contains(no_patch.err, from), no_patch.err);
    fs::rename(kept, patch);
    finds_nothing(scene);
    // A row that was decided without any: as a lying worker would have it.
    const std::string where = " WHERE run = 0";
    const Json row = scene.sql("SELECT outcome, hex(report) AS report FROM attempts" + where);
    scene.sql("UPDATE attempts SET archive = NULL, archive_bytes = 0, report = NULL" + where);
    finds(scene, "the journal says " + row[0]["outcome"].get<std::string>() +
                     ", and names no evidence for it");
    // By the name that people know the run by, beside the journal's number.
    scene.sql("UPDATE attempts SET ask = ask + 1" + where);
    finds(scene, "journal: attempt 0.1 (add/");
  }

  TEST_CASE("explain shows no report that was edited, with --json or without") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const std::string run = "add/noop/r1";
    const fs::path dir = scene.folder() / "runs" / run / "attempt-1", report = dir / "report.json";
    const std::string whole = scene.read(report);
    std::string edited = whole;
    const std::size_t at = edited.find("\"fail\"");
    REQUIRE(at != std::string::npos);
    edited.replace(at, 6, "\"pass\"");
    fs::permissions(dir, fs::perms::owner_all);
    fs::remove(report);
    scene.write(report, edited);
    for (const std::vector<std::string>& how :
         std::vector<std::vector<std::string>>{{run}, {run, "--json"}}) {
      const CommandOutcome told = scene.run("explain", how);
      CHECK(told.exit_code == 2);
      for (const std::string& bytes : {edited, whole})
        CHECK_MESSAGE(contains(told.err, sha256(bytes).hex()), told.err);
      CHECK_FALSE_MESSAGE(contains(told.out, "satisfied"), told.out);
      CHECK_FALSE_MESSAGE(contains(told.out, "    gate "), told.out);
    }
    scene.write(report, whole);
    const CommandOutcome told = scene.run("explain", {run});
    CHECK_MESSAGE(told.exit_code == 0, told.err);
    CHECK_MESSAGE(contains(told.out, "    satisfied: no\n"), told.out);
  }

  TEST_CASE("verify finds an archive that was changed, cut or replaced") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path archive = scene.folder() / "runs/add/reference/r1/attempt-1.tar.zst";
    const std::string bytes = scene.read(archive);
    for (const std::size_t at : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      scene.write(archive, changed);
      finds(scene, "attempt-1.tar.zst: " + std::to_string(bytes.size()) + " bytes with digest ");
    }
    scene.write(archive, bytes.substr(0, bytes.size() - 1));
    finds(scene, "attempt-1.tar.zst: ");
    scene.write(archive, scene.read(scene.folder() / "runs/add/noop/r1/attempt-1.tar.zst"));
    finds(scene, "attempt-1.tar.zst: ");
    fs::remove(archive);
    scene.write(scene.temp() / "elsewhere", bytes);
    fs::create_symlink(scene.temp() / "elsewhere", archive);
    finds(scene, "attempt-1.tar.zst: a link, where the archive must be");
    fs::remove(archive);
    scene.write(archive, bytes);
    finds_nothing(scene);
  }

  TEST_CASE("verify refuses run directories that are links, at every level") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path runs = scene.folder() / "runs", elsewhere = scene.temp() / "elsewhere";
    for (const char* part :
         {"add", "add/reference", "add/reference/r1", "add/reference/r1/attempt-1"}) {
      CAPTURE(part);
      fs::rename(runs / part, elsewhere);
      fs::create_symlink(elsewhere, runs / part);
      finds(scene, std::string(part) + ": a link, where the run directory must be");
      fs::remove(runs / part);
      fs::rename(elsewhere, runs / part);
      finds_nothing(scene);
    }
  }

  TEST_CASE("verify finds what lies under runs/ and is nobody's") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path runs = scene.folder() / "runs";
    const std::string nobody = ": the journal knows nothing that could have left it";
    fs::copy(runs / "add/reference/r1/attempt-1", runs / "add/reference/r1/attempt-2",
             fs::copy_options::recursive);
    finds(scene, "add/reference/r1/attempt-2" + nobody);
    fs::remove_all(runs / "add/reference/r1/attempt-2");
    for (const char* name :
         {"add/noop/r1/attempt-2.tar.zst", "add/noop/r2", "add/other", "sub/noop", "x"}) {
      fs::create_directories((runs / name).parent_path());
      scene.write(runs / name, "x");
      finds(scene, nobody);
      fs::remove_all(runs / name);
    }
    fs::remove_all(runs / "sub");
    finds_nothing(scene);
    // One of another run under this one's name, the digest in the journal changed with it.
    const fs::path one = runs / "add/reference/r1/attempt-1",
                   other = runs / "add/noop/r1/attempt-1";
    fs::remove_all(one);
    fs::copy(other, one, fs::copy_options::recursive);
    finds(scene, "its report is of run add/noop/r1");
  }

  TEST_CASE("verify finds a registration that has other bytes than were written") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path file = scene.folder() / "registration.json";
    const std::string whole = scene.read(file);
    for (const std::string& changed : {whole + "\n", " " + whole}) {
      scene.write(file, changed);
      finds(scene, "not as it was written");
    }
    scene.write(file, whole);
    finds_nothing(scene);
  }

  TEST_CASE("verify finds exports that were edited, taken away or put there") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path reports = scene.folder() / "reports";
    const std::string unlisted = ": nothing says that proctor wrote it";
    for (const char* form : {"inspect", "every-eval"}) {
      CAPTURE(form);
      REQUIRE(scene.run("report", {"--form", form}).exit_code == 0);
      std::vector<fs::path> files;
      for (const fs::directory_entry& e : fs::recursive_directory_iterator(reports / form))
        if (e.is_regular_file()) files.push_back(e.path());
      REQUIRE(!files.empty());
      for (const fs::path& file : files) {
        const std::string whole = scene.read(file);
        const std::string name = "reports/" + file.lexically_relative(reports).string();
        scene.write(file, whole + "x");
        finds(scene, name + ": edited after it was written");
        fs::remove(file);
        finds(scene, name + ": it was written, and is missing");
        scene.write(file, whole);
      }
      scene.write(reports / form / "x.json", "{}");
      finds(scene, std::string("reports/") + form + "/x.json" + unlisted);
      fs::remove(reports / form / "x.json");
      // A later report keeps the list.
      REQUIRE(scene.run("report").exit_code == 0);
      finds_nothing(scene);
    }
    for (const char* name : {"selfcheck.json", "flakiness.json", "quarantine.txt"}) {
      scene.write(reports / name, "{}");
      finds(scene, std::string("reports/") + name + unlisted);
      fs::remove(reports / name);
    }
    finds_nothing(scene);
    // A pipe stays one, and a link leads where it led.
    const fs::path pipe = scene.temp() / "pipe", link = scene.temp() / "link";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(scene.run("report", {"--form", "markdown", "--out", pipe.string()}).exit_code != 0);
    CHECK(fs::is_fifo(pipe));
    fs::create_symlink(scene.temp() / "page.md", link);
    CHECK(scene.run("report", {"--form", "markdown", "--out", link.string()}).exit_code == 0);
    CHECK(fs::is_symlink(link));
    CHECK(!scene.read(scene.temp() / "page.md").empty());
    fs::remove_all(reports);
    finds(scene, "reports/digests.json: it was written, and is missing");
    REQUIRE(scene.run("report").exit_code == 0);
    finds_nothing(scene);
  }

  TEST_CASE("verify finds what lies in reports and nobody wrote there") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path reports = scene.folder() / "reports";
    const std::string foreign = ": no report of this campaign has such a file";
    finds_nothing(scene);
    scene.write(reports / "summary.html", "100 %");
    finds(scene, "reports/summary.html" + foreign);
    fs::remove(reports / "summary.html");
    fs::create_symlink("/etc/passwd", reports / "link");
    finds(scene, "reports/link" + foreign);
    fs::remove(reports / "link");
    fs::create_directory(reports / "more");
    finds(scene, "reports/more" + foreign);
    fs::remove(reports / "more");
    REQUIRE(scene.run("report", {"--form", "inspect"}).exit_code == 0);
    finds_nothing(scene);
    // Where nothing says any more what was written, it is what the journal gives.
    const fs::path digests = reports / "digests.json";
    const std::string said = scene.read(digests);
    fs::remove(digests);
    scene.write(reports / "x", "x");
    finds(scene, "reports/x" + foreign);
    fs::remove(reports / "x");
    scene.write(digests, said);
    finds_nothing(scene);
  }

  TEST_CASE("verify finds what other users of the host may read or change") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    finds_nothing(scene);
    using P = fs::perms;
    const std::vector<std::pair<const char*, P>> rows = {
        {"runs", P::group_read},
        {"runs", P::others_exec},
        {"reports", P::others_read},
        {".proctor", P::group_exec},
        {".proctor/journal.sqlite", P::others_read},
        {".proctor/journal.sqlite", P::group_write}};
    for (const auto& [name, more] : rows) {
      CAPTURE(name);
      const fs::path path = scene.folder() / name;
      fs::permissions(path, more, fs::perm_options::add);
      finds(scene, "its owner's alone: chmod go-rwx");
      fs::permissions(path, more, fs::perm_options::remove);
    }
    finds_nothing(scene);
    fs::permissions(scene.folder(), P::others_write, fs::perm_options::add);
    finds(scene, "can put something else in the place of runs");
    fs::permissions(scene.folder(), P::others_write, fs::perm_options::remove);
    if (::geteuid() == 0) {
      constexpr uid_t kOther = 1000;
      REQUIRE(::chown((scene.folder() / "runs").c_str(), kOther, kOther) == 0);
      finds(scene, "it belongs to user 1000");
      REQUIRE(::chown((scene.folder() / "runs").c_str(), 0, 0) == 0);
    }
    finds_nothing(scene);
  }

  TEST_CASE("verify finds triggers and views in the journal that nobody of ours made") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    finds_nothing(scene);
    const std::string nobody = " that no proctor made";
    scene.sql(
        "CREATE TRIGGER cheaper AFTER UPDATE ON attempts BEGIN UPDATE attempts SET charged = 0; "
        "END");
    finds(scene, "a trigger cheaper" + nobody);
    scene.sql("DROP TRIGGER cheaper");
    scene.sql("CREATE VIEW all_is_well AS SELECT 'success' AS outcome");
    finds(scene, "a view all_is_well" + nobody);
    scene.sql("DROP VIEW all_is_well");
    // One of ours under its own name, with another content.
    const std::string balance =
        scene.sql("SELECT sql FROM sqlite_schema WHERE name = 'balance'")[0]["sql"].string();
    scene.sql("DROP VIEW balance");
    scene.sql("CREATE VIEW balance(spent) AS SELECT 0");
    finds(scene, "a view balance" + nobody);
    scene.sql("DROP VIEW balance");
    scene.sql(balance);
    finds_nothing(scene);
    scene.sql("CREATE TABLE more(x INTEGER)");
    finds(scene, "a table more" + nobody);
    scene.sql("DROP TABLE more");
    scene.sql("CREATE INDEX of_more ON attempts(state)");
    finds(scene, "an index of_more" + nobody);
    scene.sql("DROP INDEX of_more");
    finds_nothing(scene);
  }

  TEST_CASE("verify finds a run directory of another replicate") {
    CampaignShape shape = small();
    shape.methods = {"reference"};
    shape.replicates = 2;
    const CampaignScene scene(shape);
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path one = scene.folder() / "runs/add/reference/r1/attempt-1",
                   other = scene.folder() / "runs/add/reference/r2/attempt-1";
    fs::remove_all(one);
    fs::copy(other, one, fs::copy_options::recursive);
    finds(scene, "its report is of run add/reference/r2");
  }

  TEST_CASE("verify finds a run directory of another campaign, whose digests the journal has") {
    const CampaignScene scene(small()), other(small());
    for (const CampaignScene* one : {&scene, &other}) REQUIRE(one->run("run").exit_code == 0);
    const std::string at = "runs/add/reference/r1/attempt-1", archive = at + ".tar.zst";
    fs::remove_all(scene.folder() / at);
    fs::copy(other.folder() / at, scene.folder() / at, fs::copy_options::recursive);
    scene.write(scene.folder() / archive, other.read(other.folder() / archive));
    const Json theirs = other.sql(
        "SELECT run, hex(report) AS report, hex(archive) AS archive, archive_bytes AS bytes, "
        "started_ms AS started, finished_ms AS finished FROM attempts WHERE outcome = 'success'");
    REQUIRE(theirs.size() == 1);
    const auto number = [&](const char* name) {
      return std::to_string(theirs[0][name].get<std::int64_t>());
    };
    const auto digest = [&](const char* name) {
      return "X'" + theirs[0][name].get<std::string>() + "'";
    };
    scene.sql("UPDATE attempts SET report = " + digest("report") +
              ", archive = " + digest("archive") + ", archive_bytes = " + number("bytes") +
              ", started_ms = " + number("started") + ", finished_ms = " + number("finished") +
              " WHERE run = " + number("run"));
    finds(scene, "its report is of another campaign");
  }

  TEST_CASE("verify asks nothing of attempts that are under way") {
    const CampaignScene scene(gated_shape(3));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    finds_nothing(scene);
    scene.open_gate();
    for (int i = 0; i < 20 && run.running(); ++i) finds_nothing(scene);
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    finds_nothing(scene);
  }

  TEST_CASE("verify holds the journal against the host's key and says when it cannot") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    CHECK(contains(scene.run("verify").out, "\nseal: fits key "));
    const fs::path none = scene.temp() / "no.key";
    CHECK(contains(scene.run("verify", {"--seal-key", none.string()}).err, "no.key"));
    CHECK(scene.run("verify", {"--seal-key", none.string()}).exit_code != 0);
    scene.write(none, std::string(64, '0') + "\n");
    fs::permissions(none, fs::perms::owner_read);
    const CommandOutcome other = scene.run("verify", {"--seal-key", none.string()});
    CHECK_MESSAGE(other.exit_code == 1, other.out);
    CHECK_MESSAGE(contains(other.out, "not verified against the host's seal key"), other.out);
    // Everything that is not keyed is made again by the program itself.
    scene.sql("UPDATE attempts SET rationale = 'as I like it'; " + as_schema(3));
    finds(scene, "which this host made for the campaign, was taken away");
    REQUIRE(proctor::testing::proctor({"budget", "raise", scene.folder().string(), "global",
                                       "60.00", "--reason", "x", "--by", "Ada"})
                .exit_code == 0);
    finds(scene, "which this host made for the campaign, was taken away");
  }

  TEST_CASE("a head that is kept elsewhere is extended by an honest journal and by no other") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const CommandOutcome head =
        proctor::testing::proctor({"journal", "head", scene.folder().string()});
    REQUIRE(head.exit_code == 0);
    CHECK(std::ranges::count(head.out, '\n') == 1);
    const fs::path kept = scene.temp() / "heads";
    scene.write(kept, head.out);
    REQUIRE(proctor::testing::proctor({"budget", "raise", scene.folder().string(), "global",
                                       "60.00", "--reason", "x", "--by", "Ada"})
                .exit_code == 0);
    for (const std::string& given : {kept.string(), head.out}) {
      const CommandOutcome verified = scene.run("verify", {"--head", given});
      CHECK_MESSAGE(verified.exit_code == 0, verified.out << verified.err);
      CHECK_MESSAGE(contains(verified.out, ": the journal extends it, "), verified.out);
    }
    CHECK(scene.run("verify", {"--head", "proctor-head-1 x"}).exit_code == 2);
    scene.sql("UPDATE attempts SET rationale = 'as I like it' WHERE run = 0");
    const CommandOutcome found = scene.run("verify", {"--head", kept.string()});
    CHECK(found.exit_code == 1);
    CHECK_MESSAGE(contains(found.out, "the journal has other facts of before it"), found.out);
  }

  TEST_CASE("verify names each report that was edited after it was written") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path reports = scene.folder() / "reports";
    CHECK(contains(scene.run("verify").out, "\nreports: 14 files as they were written at "));
    std::vector<fs::path> files;
    for (const fs::directory_entry& e : fs::directory_iterator(reports)) files.push_back(e.path());
    REQUIRE(files.size() == 15);
    for (const fs::path& file : files) {
      CAPTURE(file);
      const std::string bytes = scene.read(file);
      std::string changed = bytes;
      const std::size_t digit = changed.find_last_of("0123456789");
      changed[digit] = changed[digit] == '9' ? '8' : '9';
      scene.write(file, changed);
      finds(scene, "reports/" + file.filename().string() + ": ");
      fs::remove(file);
      if (file.filename() != "digests.json") finds(scene, "it was written, and is missing");
      fs::create_symlink("/etc/passwd", file);
      finds(scene, "reports/" + file.filename().string() + ": ");
      fs::remove(file);
      scene.write(file, bytes);
    }
    finds_nothing(scene);
    // Who edits a report and takes the digests away meets the journal.
    fs::remove(reports / "digests.json");
    finds(scene, "reports/digests.json: it was written, and is missing");
    const std::string given = "not what journal and evidence give";
    // A page that nobody edited differs too where its evidence is gone.
    fs::rename(scene.folder() / "runs", scene.temp() / "away");
    const std::string gone = scene.run("verify").out;
    CHECK_MESSAGE(contains(gone, "reports/report.html: " + given + " now: evidence is not"), gone);
    CHECK_FALSE(contains(gone, "edited"));
    fs::rename(scene.temp() / "away", scene.folder() / "runs");
    const std::string text = scene.read(reports / "report.txt");
    scene.write(reports / "report.txt", text + "and all is well\n");
    finds(scene, "reports/report.txt: " + given + ": edited, or another version wrote it");
    // So does who makes them again without the key.
    const std::string lied = text + "and all is well\n";
    REQUIRE(scene.run("report").exit_code == 0);
    finds_nothing(scene);
    scene.write(reports / "report.txt", lied);
    std::string digests = scene.read(reports / "digests.json");
    digests.replace(digests.find(sha256(text).hex()), 64, sha256(lied).hex());
    scene.write(reports / "digests.json", digests);
    finds(scene, "reports/digests.json: it is not as this host signed it");
    finds(scene, "reports/report.txt: " + given);
    REQUIRE(scene.run("report").exit_code == 0);
    {  // Another campaign's are whole in themselves.
      const CampaignScene other(small());
      REQUIRE(other.run("run").exit_code == 0);
      fs::copy(other.folder() / "reports", reports,
               fs::copy_options::recursive | fs::copy_options::overwrite_existing);
      finds(scene, "reports/digests.json: it is of the campaign camp-");
      REQUIRE(scene.run("report").exit_code == 0);
    }
    // An older report is what it was, though the journal went on.
    REQUIRE(proctor::testing::proctor({"budget", "raise", scene.folder().string(), "global",
                                       "60.00", "--reason", "x", "--by", "Ada"})
                .exit_code == 0);
    finds_nothing(scene);
  }

  TEST_CASE("reports whose writer was stopped in the middle are not called edited") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path reports = scene.folder() / "reports", svg = reports / "success.svg";
    const std::string before = scene.read(svg), text = scene.read(reports / "report.txt");
    fs::remove(svg);
    fs::create_directory(svg);
    scene.write(svg / "in the way", "");
    CHECK(proctor::testing::proctor({"budget", "raise", scene.folder().string(), "global", "60.00",
                                     "--reason", "x", "--by", "Ada"})
              .exit_code != 0);
    CHECK(scene.read(reports / "report.txt") != text);
    fs::remove_all(svg);
    finds(scene, "reports/success.svg: it was written, and is missing");
    scene.write(svg, before);
    CHECK(contains(scene.run("verify").out, "\nreports: their writer was stopped at "));
    finds_nothing(scene);
    scene.write(svg, before + " ");
    finds(scene, "reports/success.svg: edited after it was written");
    scene.write(reports / "report.txt", text);  // as it was before
    scene.write(svg, before);
    finds_nothing(scene);
    REQUIRE(scene.run("report").exit_code == 0);
    CHECK_FALSE(contains(scene.run("verify").out, "their writer was stopped"));
    finds_nothing(scene);
  }

  TEST_CASE("reports that are being written are waited for") {
    const CampaignScene scene(small());
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path reports = scene.folder() / "reports";
    for (int i = 0; i < 10; ++i) {
      // As if it were the first report of all, which has nothing beside it yet.
      fs::remove(reports / "digests.json");
      Child writer = scene.start("report");
      REQUIRE(
          eventually([&] { return !writer.running() || fs::exists(reports / "digests.json"); }));
      finds_nothing(scene);
      CHECK(writer.wait(180s) == 0);
    }
  }
}
