#include "coordinator/cvdp/dataset/record.h"

#include <algorithm>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor::cvdp {
std::string_view to_string(Shape shape) {
  return shape == Shape::kCopilot ? "copilot" : "agentic";
}

Result<ProblemId> parse_id(std::string_view id) {
  constexpr std::size_t kIdBytes = 200;
  const auto wrong = [&](std::string_view why) { return invalid("\"{}\" {}", printable(id), why); };
  if (kIdBytes < id.size()) return wrong("is longer than 200 bytes");
  // Upstream makes a folder's name of it unlooked.
  if (!std::ranges::all_of(id, [](char c) { return is_word_byte(c) || c == '-' || c == '.'; }))
    return wrong("has characters other than letters, digits, \"_\", \"-\" and \".\"");
  const std::size_t first = id.find('_');
  const std::size_t last = id.rfind('_');
  if (first == std::string_view::npos) return wrong("has no \"_\" (upstream aborts the whole run)");
  const auto issue = whole_number<std::uint64_t>(id.substr(last + 1));
  if (!issue) return wrong("does not end in \"_\" and a number (upstream cannot prepare it)");
  ProblemId out;
  out.issue = *issue;
  out.text = id;
  const std::size_t second = id.find('_', first + 1);
  const std::string_view mode =
      id.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
  out.shape = mode == "agentic" ? Shape::kAgentic : Shape::kCopilot;
  out.heavy = id.find("cvdp_agentic_heavy") != std::string_view::npos;
  out.repository = "cvdp_" + std::string(first < last ? id.substr(first + 1, last - first - 1)
                                                      : std::string_view());
  return out;
}

int category_number(std::string_view category) {
  std::string_view digits = category;
  if (digits.starts_with("cid")) digits.remove_prefix(3);
  std::size_t from = digits.size();
  while (0 < from && is_digit(digits[from - 1])) --from;
  digits.remove_prefix(from);
  return whole_number<int>(digits).value_or(-1);
}

bool is_comprehension(int category) {
  return category == 6 || (8 <= category && category <= 10);
}

bool is_difficulty(std::string_view word) {
  return word == "easy" || word == "medium" || word == "hard";
}

Result<Shape> shape_of(const Value& record) {
  const Object* o = record.object();
  if (o == nullptr) return invalid("a record is a mapping, found {}", record.kind());
  if (value_at(object_at(o, "input"), "context") != nullptr) return Shape::kCopilot;
  if (value_at(o, "context") != nullptr && value_at(o, "patch") != nullptr) return Shape::kAgentic;
  return invalid("neither copilot (input.context) nor agentic (context and patch) in shape");
}

std::string to_string(const Finding& f) {
  std::string out = std::to_string(f.line);
  out += f.weight == Finding::Weight::kError ? ": error: " : ": warning: ";
  if (!f.field.empty()) out += printable(f.field) + ": ";
  return out + printable(f.text, 1000);
}

namespace {
// The mapping in which a record has its question ("input") or its answer ("output").
const Object* part_of(const Record& record, const char* part) {
  return record.shape == Shape::kAgentic ? record.value.object() : object_at(record.value, part);
}
}  // namespace

const Object* harness_files(const Record& record) {
  if (record.flat_harness) return &*record.flat_harness;
  const Object* harness = object_at(record.value, "harness");
  const Value* files = value_at(harness, "files");
  // A text is a file of this name.
  const bool flat =
      files == nullptr || (record.shape == Shape::kAgentic && files->string() != nullptr);
  return flat ? harness : files->object();
}

const std::string* compose_of(const Record& record) {
  return text_at(harness_files(record), "docker-compose.yml");
}

const Object* context_files(const Record& record) {
  return object_at(part_of(record, "input"), "context");
}

const Object* solution_files(const Record& record) {
  return object_at(part_of(record, "output"),
                   record.shape == Shape::kAgentic ? "patch" : "context");
}

const std::string* prompt_of(const Record& record) {
  return text_at(part_of(record, "input"), "prompt");
}

std::string_view reference_of(const Record& record) {
  const std::string* s = text_at(record.value, "subjective_reference");
  if (s == nullptr) s = text_at(object_at(record.value, "output"), "response");
  return s == nullptr ? std::string_view() : std::string_view(*s);
}

// The rules of CVDP 1.3-1.7 on one record.

namespace {
class Check {
 public:
  Check(Record& record, std::vector<Finding>& findings) : record_(record), findings_(findings) {}

  void run() {
    const Object* top = record_.value.object();
    if (top == nullptr) {
      error("", fmt::format("a record is a mapping, found {}", record_.value.kind()));
      record_.value = Object();
      return;
    }
    id(*top);
    categories(value_at(top, "categories"));
    const Result<Shape> shape = shape_of(record_.value);
    if (!shape.ok()) return missing_shape(*top, shape.error().detail);
    record_.shape = *shape;
    if (!record_.id.text.empty() && record_.shape != record_.id.shape)
      warn("id",
           fmt::format(
               "says {}, the record is {} in shape: upstream goes by the id of the first record",
               to_string(record_.id.shape), to_string(record_.shape)));
    if (record_.shape == Shape::kCopilot)
      copilot(*top);
    else
      agentic(*top);
    if (const Value* s = value_at(top, "subjective_reference");
        s != nullptr && s->string() == nullptr)
      warn("subjective_reference", not_text(*s) + ": taken as absent");
    redaction();
  }

 private:
  void add(Finding::Weight weight, std::string field, std::string text) {
    findings_.push_back({weight, record_.line, std::move(field), std::move(text)});
  }
  void error(std::string field, std::string text) {
    add(Finding::Weight::kError, std::move(field), std::move(text));
  }
  void warn(std::string field, std::string text) {
    add(Finding::Weight::kWarning, std::move(field), std::move(text));
  }

  static std::string is_not(const Value& v, std::string_view kind) {
    return fmt::format("is {}, not {}", v.kind(), kind);
  }
  static std::string not_text(const Value& v) { return is_not(v, "text"); }

  void id(const Object& top) {
    const Value* v = value_at(&top, "id");
    if (v == nullptr) return error("id", "is missing");
    if (v->string() == nullptr) return error("id", not_text(*v));
    Result<ProblemId> id = parse_id(*v->string());
    if (!id.ok()) return error("id", id.error().detail);
    record_.id = std::move(*id);
  }

  void categories(const Value* v) {
    if (v == nullptr) return error("categories", "is missing (upstream waits for ever)");
    const Array* a = v->array();
    if (a == nullptr) return error("categories", is_not(*v, "a list"));
    if (a->size() < 2)
      return error("categories",
                   fmt::format("has {} elements, a category and a difficulty are expected "
                               "(upstream waits for ever)",
                               a->size()));
    if (2 < a->size()) warn("categories", "has more than two elements: upstream ignores the rest");
    const std::string* category = (*a)[0].string();
    const std::string* difficulty = (*a)[1].string();
    if (category == nullptr || category_number(*category) < 0) {
      error("categories[0]", "a category like \"cid003\" is expected");
    } else {
      record_.category = *category;
      const int n = category_number(*category);
      if (!category->starts_with("cid"))
        warn("categories[0]", "\"" + printable(*category, 40) + "\" is no \"cid\" and a number");
      else if (n == 1 || n == 11 || n == 15 || n < 1 || 16 < n)
        warn("categories[0]", "upstream asks no model for category " + std::to_string(n));
    }
    if (difficulty == nullptr || !is_difficulty(*difficulty))
      error("categories[1]",
            "easy, medium or hard is expected (upstream fails when it writes the report)");
    else
      record_.difficulty = *difficulty;
  }

  void missing_shape(const Object& top, const std::string& why) {
    const Value* input = value_at(&top, "input");
    if (input != nullptr && input->object() == nullptr)
      return error("input", is_not(*input, "a mapping"));
    if (input != nullptr) return error("input.context", "is missing");
    error("", why);
  }

  // A map of paths to texts.  `what_null` says what upstream does with null.
  void files(const Value* v, const std::string& field, const std::string& what_null,
             std::string_view absent = "is missing") {
    if (v == nullptr) {
      if (!absent.empty()) error(field, std::string(absent));
      return;
    }
    const Object* o = v->object();
    if (o == nullptr) return error(field, is_not(*v, "a mapping"));
    constexpr std::size_t kFilesMax = 10'000;
    if (kFilesMax < o->size())
      return error(field, std::to_string(o->size()) + " files, at most 10000");
    for (const Member& m : *o) {
      const std::string name = field + "." + printable(m.key);
      if (!is_safe_relative(m.key))
        error(name, "is no path inside the problem's folder (upstream would write there)");
      if (m.value.is_null())
        warn(name, "is null: " + what_null);
      else if (m.value.string() == nullptr)
        error(name, not_text(m.value));
      else if (m.value.string()->find('\0') != std::string::npos)
        warn(name, "holds NUL bytes");
    }
  }

  void prompt(const Value* v, const std::string& field) {
    if (v == nullptr || v->string() == nullptr)
      error(field, v == nullptr ? "is missing" : not_text(*v));
  }

  void copilot(const Object& top) {
    const Object* input = object_at(&top, "input");
    prompt(value_at(input, "prompt"), "input.prompt");
    files(value_at(input, "context"), "input.context", "upstream leaves an empty file");
    const Value* output = value_at(&top, "output");
    static constexpr std::string_view kUnavailable =
        " (upstream: \"not available in the provided dataset\")";
    if (output == nullptr || output->object() == nullptr) {
      error("output",
            fmt::format("is {}{}", output == nullptr ? "missing" : output->kind(), kUnavailable));
    } else {
      const Object* o = output->object();
      const Value* context = value_at(o, "context");
      files(context != nullptr && context->is_null() ? nullptr : context, "output.context",
            "upstream leaves an empty file", "is missing" + std::string(kUnavailable));
      if (const Value* r = value_at(o, "response"); r != nullptr && r->string() == nullptr)
        warn("output.response", not_text(*r) + ": taken as absent");
    }
    harness(top);
  }

  void agentic(const Object& top) {
    prompt(value_at(&top, "prompt"), "prompt");
    if (const Value* s = value_at(&top, "system_message"); s != nullptr && s->string() == nullptr)
      warn("system_message", not_text(*s) + "; it is never used");
    files(value_at(&top, "context"), "context", "upstream leaves an empty file");
    files(value_at(&top, "patch"), "patch", "upstream cannot apply it in golden mode");
    harness(top);
    const Object* context = object_at(&top, "context");
    if (!record_.id.heavy || context == nullptr) return;
    for (const char* key : {"repo", "commit"})
      if (context->find(key) == nullptr)
        warn("context." + std::string(key),
             "is missing: a heavy record names both, or --repo-url and --commit-hash do");
  }

  // Paths to texts, at the top or under `files`; or folders in folders, which become paths.
  void harness(const Object& top) {
    const Value* given = value_at(&top, "harness");
    if (given == nullptr || given->object() == nullptr) return files(given, "harness", "");
    std::string field = "harness";
    const Value* inner = given->object()->find("files");
    const bool agentic = record_.shape == Shape::kAgentic;
    if (inner != nullptr && (!agentic || inner->string() == nullptr)) {
      field += ".files";
      if (agentic)
        warn(field,
             "upstream finds no docker-compose.yml in an agentic record's harness of this "
             "form, and the problem fails; its files are taken");
      given = inner;
    }
    if (const Object* o = given->object();
        o != nullptr &&
        std::ranges::any_of(*o, [](const Member& m) { return m.value.object() != nullptr; })) {
      warn(field, "holds mappings: taken as folders (upstream fails)");
      Object flat;
      flatten(*given->object(), field, "", flat);
      record_.flat_harness = std::move(flat);
    }
    const Value paths = record_.flat_harness ? Value(*record_.flat_harness) : Value();
    files(record_.flat_harness ? &paths : given, field, "upstream leaves an empty file");
    compose();
  }

  // The reader bounds how deep it goes.
  void flatten(const Object& from, const std::string& field, const std::string& folder,
               Object& to) {
    for (const Member& m : from) {
      const std::string path = folder + m.key;
      if (m.value.object() != nullptr)
        flatten(*m.value.object(), field, path + "/", to);
      else if (to.find(path) != nullptr)
        error(field + "." + printable(path), "comes twice");
      else
        to.append(path, m.value);
    }
  }

  void compose() {
    const Object* harness = harness_files(record_);
    const bool graded_by_text = is_comprehension(category_number(record_.category));
    const Value* file = value_at(harness, "docker-compose.yml");
    if (file == nullptr && !(graded_by_text && (harness == nullptr || harness->empty())))
      warn("harness", "has no docker-compose.yml: upstream records a failure without running");
  }

  void redaction() {
    const Object* solution = solution_files(record_);
    if (solution == nullptr || solution->empty()) return;
    record_.redacted = std::all_of(solution->begin(), solution->end(), [](const Member& m) {
      return m.value.is_null() || (m.value.string() != nullptr && m.value.string()->empty());
    });
  }

  Record& record_;
  std::vector<Finding>& findings_;
};
}  // namespace

Record check_record(Value value, std::uint64_t line, std::vector<Finding>& findings) {
  Record record;
  record.line = line;
  record.value = std::move(value);
  Check(record, findings).run();
  return record;
}
}  // namespace proctor::cvdp
