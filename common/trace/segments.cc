#include "common/trace/segments.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {

constexpr std::size_t kHex = 64;
constexpr std::size_t kIndexBytes = std::size_t{64} << 20;

std::size_t whole_lines(std::string_view text) {
  const std::size_t end = text.rfind('\n');
  return end == std::string_view::npos ? 0 : end + 1;
}

bool write_at(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return true;
}

}  // namespace

Result<SegmentIndex> parse_segment_index(std::string_view text) {
  SegmentIndex out;
  std::uint64_t end = 0;
  text = text.substr(0, whole_lines(text));
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    std::string_view line = take_until(text, '\n');
    const auto wrong = [&](const char* what) {
      return Error{Errc::kCorrupt, "line " + std::to_string(number) + ": " + what};
    };
    const std::string_view digest = line.substr(0, std::min(line.size(), kHex));
    if (!Digest::from_hex(digest).ok()) return wrong("no digest");
    line.remove_prefix(digest.size());
    SegmentPlace place;
    if (!take_word(line, " ") || !take_number(line, place.offset) || !take_word(line, " ") ||
        !take_number(line, place.bytes) || !line.empty())
      return wrong("expected DIGEST OFFSET LENGTH");
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
    if (place.offset != end || place.bytes == 0 || kMost < place.bytes)
      return wrong("does not follow the line before");
    end += place.bytes;
    if (kSegmentsMax <= out.size()) return wrong("too many");
    if (!out.emplace(digest, place).second) return wrong("a digest for the second time");
  }
  return out;
}

Result<SegmentWriter> SegmentWriter::open(fs::path run_dir, std::uint64_t bytes_max) {
  SegmentWriter out(std::move(run_dir), bytes_max);
  std::error_code ec;
  if (!fs::exists(out.dir_ / kSegmentIndexFile, ec)) return out;
  PROCTOR_TRY(const std::string text, read_file(out.dir_ / kSegmentIndexFile, kIndexBytes));
  PROCTOR_TRY(out.known_, parse_segment_index(text));
  out.index_end_ = whole_lines(text);
  for (const auto& [digest, place] : out.known_)
    out.end_ = std::max(out.end_, place.offset + place.bytes);
  return out;
}

bool SegmentWriter::begin() {
  if (segments_.valid()) return true;
  if (!make_dirs(dir_ / kSaidDir).ok()) return false;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  constexpr mode_t kMode = 0644;
  UniqueFd segments(::open((dir_ / kSegmentsFile).c_str(), kFlags, kMode));
  UniqueFd index(::open((dir_ / kSegmentIndexFile).c_str(), kFlags, kMode));
  if (!segments.valid() || !index.valid()) return false;
  if (::ftruncate(segments.get(), static_cast<off_t>(end_)) != 0 ||
      ::ftruncate(index.get(), static_cast<off_t>(index_end_)) != 0)
    return false;
  segments_ = std::move(segments);
  index_ = std::move(index);
  return true;
}

bool SegmentWriter::put(const std::string& digest, std::string_view bytes) {
  if (known_.contains(digest)) return true;
  if (bytes.empty() || kSegmentsMax <= known_.size() || bytes_max_ < end_ + bytes.size())
    return false;
  if (!begin() || !write_at(segments_.get(), bytes, end_)) return false;
  std::string line = digest;
  line += ' ';
  line += std::to_string(end_);
  line += ' ';
  line += std::to_string(bytes.size());
  line += '\n';
  if (!write_at(index_.get(), line, index_end_)) return false;
  known_.emplace(digest, SegmentPlace{end_, bytes.size()});
  end_ += bytes.size();
  index_end_ += line.size();
  return true;
}

Result<SegmentReader> SegmentReader::open(const fs::path& run_dir) {
  const fs::path index = run_dir / kSegmentIndexFile;
  std::error_code ec;
  if (!fs::exists(index, ec)) return SegmentReader({}, {});
  PROCTOR_TRY(const std::string text, read_file(index, kIndexBytes));
  Result<SegmentIndex> known = parse_segment_index(text);
  if (!known.ok()) return in_context(kSegmentIndexFile, known.error());
  UniqueFd fd(::open((run_dir / kSegmentsFile).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return errno_error(kSegmentsFile, errno);
  std::uint64_t end = 0;
  for (const auto& [digest, place] : *known) end = std::max(end, place.offset + place.bytes);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(kSegmentsFile, errno);
  if (static_cast<std::uint64_t>(status.st_size) < end)
    return Error{Errc::kCorrupt, std::string(kSegmentsFile) + ": shorter than its index says"};
  return SegmentReader(std::move(fd), std::move(known).value());
}

Result<std::string> SegmentReader::read(std::string_view digest) const {
  const auto it = index_.find(digest);
  if (it == index_.end())
    return Error{Errc::kNotFound, "no piece " + printable(digest, kHex) + " is kept"};
  std::string out(static_cast<std::size_t>(it->second.bytes), '\0');
  for (std::size_t at = 0; at < out.size();) {
    const ssize_t n = ::pread(fd_.get(), out.data() + at, out.size() - at,
                              static_cast<off_t>(it->second.offset + at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Error{Errc::kCorrupt, std::string(kSegmentsFile) + ": ends within a piece"};
    at += static_cast<std::size_t>(n);
  }
  if (sha256(out).hex() != digest)
    return Error{Errc::kCorrupt, std::string(kSegmentsFile) + ": a piece is not what its digest " +
                                     std::string(digest) + " says"};
  return out;
}

}  // namespace proctor
