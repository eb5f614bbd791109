// cvdp.transform_records_per_s and cvdp.bleu_speedup (docs/cvdp.md).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "common/base/files.h"
#include "common/base/subprocess.h"
#include "coordinator/cvdp/dataset/dataset.h"
#include "coordinator/cvdp/dataset/transform.h"
#include "coordinator/cvdp/pycompat/python_text.h"
#include "coordinator/cvdp/report/results.h"

using namespace proctor;
using namespace proctor::cvdp;

namespace {

// Deterministic chance.
std::uint64_t next_random(std::uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return state >> 33U;
}

// Of the processor: other work on the machine does not count.
double seconds(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::string code(std::uint64_t& state, std::size_t lines) {
  std::string out;
  for (std::size_t i = 0; i < lines; ++i)
    out += "  assign out[" + std::to_string(next_random(state) % 64) + "] = in_" +
           std::to_string(next_random(state) % 1000) + " & \"x\";\n";
  return out;
}

// Like the published problems: a prompt of 2 kB, a context of 40 lines of which a few change, a new
// file, a harness of 3 kB.  About 11 kB a record.
std::string dataset(std::size_t records) {
  std::uint64_t state = 7;
  std::string out;
  for (std::size_t i = 0; i < records; ++i) {
    const std::string before = code(state, 40);
    std::string after = before;
    after.insert(after.size() / 2, code(state, 3));
    Object context;
    context.append("rtl/a.sv", before);
    Object input;
    input.append("prompt", code(state, 50));
    input.append("context", std::move(context));
    Object solution;
    solution.append("rtl/a.sv", after);
    solution.append("rtl/b.sv", code(state, 20));
    Object output;
    output.append("response", "");
    output.append("context", std::move(solution));
    Object files;
    files.append("docker-compose.yml", "services:\n  direct:\n    image: x\n");
    files.append("src/test.py", code(state, 70));
    Object harness;
    harness.append("files", std::move(files));
    Object record;
    record.append("id", "cvdp_copilot_bench_" + std::to_string(i));
    record.append("categories", Array{Value("cid004"), Value("easy")});
    record.append("input", std::move(input));
    record.append("output", std::move(output));
    record.append("harness", std::move(harness));
    write_json(out, Value(std::move(record)));
    out += '\n';
  }
  return out;
}

void bench_transform() {
  constexpr std::size_t kRecords = 10'000;
  const std::string bytes = dataset(kRecords);
  std::size_t made = 0;
  std::size_t written = 0;
  const double t = seconds([&] {
    LineFeed lines(std::size_t{1} << 28);
    std::string out;
    lines.feed(bytes, [&](const LineFeed::Line& line) {
      auto value = read_json(line.text);
      auto changed = transform(std::move(*value), Shape::kAgentic);
      write_json(out, changed->value);
      made += changed->changed ? 1U : 0U;
      written += out.size();
      out.clear();
    });
  });
  std::printf("%zu records of %zu bytes in %.3f s, %zu bytes written\n", made, bytes.size() / made,
              t, written);
  std::printf("figure cvdp.transform_records_per_s %.0f records/s\n",
              static_cast<double>(made) / t);
  DatasetReader reader([](const Record&) {}, [](const Finding&) {});
  const double check = seconds([&] {
    reader.feed(bytes);
    reader.finish();
  });
  std::printf("figure cvdp.check_mb_per_s %.0f MB/s\n",
              static_cast<double>(bytes.size()) / 1e6 / check);
}

std::string words(std::uint64_t& state, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i)
    out += (i == 0 ? "w" : " w") + std::to_string(next_random(state) % 60);
  return out;
}

int bench_bleu() {
  constexpr std::size_t kPairs = 10'000;
  std::uint64_t state = 11;
  std::string file;
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i < kPairs; ++i) {
    pairs.emplace_back(words(state, 60 + i % 40), words(state, 80));
    file += pairs.back().first + "\n" + pairs.back().second + "\n";
  }
  double sum = 0;
  const double ours = seconds([&] {
    for (const auto& [candidate, reference] : pairs) sum += bleu2(candidate, reference);
  });
  const auto dir = TempDir::create();
  if (!dir.ok() || !write_file(dir->path() / "pairs", file).ok()) return 1;
  const auto out = run_for_output({{"python3", PROCTOR_BLEU_SCRIPT, dir->path() / "pairs"},
                                   {},
                                   std::nullopt,
                                   {},
                                   std::chrono::minutes(5)});
  if (!out.ok()) {
    std::fprintf(stderr, "%s\n", out.error().detail.c_str());
    return 1;
  }
  char name[16] = {};
  double theirs = 0;
  double their_sum = 0;
  if (std::sscanf(out->c_str(), "%15s %lf %lf", name, &theirs, &their_sum) != 3) return 1;
  if (1e-9 < std::fabs(sum - their_sum)) {
    std::fprintf(stderr, "scores differ: %.17g, %s %.17g\n", sum, name, their_sum);
    return 1;
  }
  std::printf("%zu pairs: ours %.4f s, %s Python %.3f s\n", kPairs, ours, name, theirs);
  std::printf("figure cvdp.bleu_speedup %.1f x\n", theirs / ours);
  return 0;
}

}  // namespace

int main() {
  bench_transform();
  return bench_bleu();
}
