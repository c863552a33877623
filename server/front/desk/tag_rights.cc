#include "server/front/desk/tag_rights.h"

#include <algorithm>
#include <utility>

#include <sys/stat.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/tag/tag_name.h"

namespace firn::front {
namespace {

constexpr size_t kBytesMax = 1 << 20;
constexpr std::string_view kAll = "*";
constexpr std::string_view kBlank = " \t\r";
constexpr size_t kLeasesMax = 100'000;

// Returns the next part of `text` up to one of `ends`, and removes both.
std::string_view Cut(std::string_view& text, std::string_view ends) {
  const size_t at = std::min(text.find_first_of(ends), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

// Whether `right` begins with `meant` in any case, like a misspelt right: `@leases`, `@lease 20`.
// As the name of a tag it would not grant that right.
bool Means(std::string_view right, std::string_view meant) {
  const std::string_view beginning = right.substr(0, meant.size());
  return std::equal(beginning.begin(), beginning.end(), meant.begin(), meant.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

// Identifies a state of the file: replacing or changing it changes inode number, size or time.
std::string StampOf(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return "none";
  return Cat(file.st_dev, ":", file.st_ino, ":", file.st_size, ":", file.st_mtim.tv_sec, ":",
             file.st_mtim.tv_nsec);
}

}  // namespace

Result<TagRights::Table> TagRights::Parse(std::string_view text) {
  Table table;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = Trimmed(Cut(text, "\n"), kBlank);
    if (line.empty() || line.front() == '#') continue;
    const std::string name(Cut(line, kBlank));
    std::string_view tags = Trimmed(line, kBlank);
    if (tags.empty())
      return Invalid(Cat("line ", number, ": neither a tag nor * follows the name"));
    const auto [place, is_new] = table.try_emplace(name);
    if (!is_new) return Invalid(Cat("line ", number, ": ", Quoted(name), " is listed twice"));
    while (!tags.empty()) {
      const std::string right(Trimmed(Cut(tags, ","), kBlank));
      FIRN_TRY(ParseRight(right, place->second).WithContext(Cat("line ", number)));
    }
  }
  return table;
}

Status TagRights::ParseRight(const std::string& right, Line& line) {
  std::string tag = right;
  const bool of_leases = tag.starts_with(kLeaseRight);
  if (of_leases && tag.size() > kLeaseRight.size() && tag[kLeaseRight.size()] == ':') {
    const auto number = ParseIndex<size_t>(std::string_view(tag).substr(kLeaseRight.size() + 1));
    if (!number || *number > kLeasesMax) {
      return Invalid(Cat(Quoted(right), " has no number from 0 to ", kLeasesMax, " behind ",
                         kLeaseRight, ":"));
    }
    if (line.leases_max) return Invalid(Cat(kLeaseRight, " has two numbers"));
    line.leases_max = number;
    tag = kLeaseRight;
  }
  if (tag != kCreateRight && Means(tag, kCreateRight)) {
    return Invalid(Cat(Quoted(right), " is not a right; write ", kCreateRight));
  }
  if (tag != kLeaseRight && Means(tag, kLeaseRight)) {
    return Invalid(Cat(Quoted(right), " is not a right; write ", kLeaseRight, ", or ", kLeaseRight,
                       ":20 for at most 20 leases of each server"));
  }
  if (tag != kAll) FIRN_TRY(CheckTagName(tag));
  line.tags.insert(std::move(tag));
  return {};
}

bool TagRights::Line::Grants(std::string_view tag) const {
  return tags.contains(kAll) || tags.contains(tag);
}

Status TagRights::Load() {
  // Taken before the file is read: a change during the reading is detected the next time.
  const std::string stamp = StampOf(file_);
  {
    const std::lock_guard lock(mutex_);
    if (stamp == stamp_) return {};
    stamp_ = stamp;
  }
  // Without the mutex, so that no call waits for the disk.
  FIRN_ASSIGN(const std::string text, ReadRegularFile(file_, kBytesMax));
  Result<Table> table = Parse(text);
  FIRN_TRY(table.status().WithContext(file_));
  auto made = std::make_shared<const Table>(*std::move(table));
  const std::lock_guard lock(mutex_);
  if (stamp != stamp_) return {};  // another thread reads a newer state
  table_.swap(made);               // the old table is freed without the mutex
  edition_.fetch_add(1, std::memory_order_release);
  return {};
}

Status TagRights::Reload() {
  {
    const std::lock_guard lock(mutex_);
    stamp_.clear();
  }
  return Load();
}

void TagRights::Reader::Refresh() {
  if (edition_ == rights_->edition_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(rights_->mutex_);
  table_ = rights_->table_;
  edition_ = rights_->edition_;
}

const TagRights::Line* TagRights::Reader::LineOf(std::string_view name) const {
  const auto found = name.empty() ? table_->end() : table_->find(name);
  return found == table_->end() ? nullptr : &found->second;
}

const TagRights::Line* TagRights::Reader::LineOfCertificate(std::string_view name) const {
  return name.starts_with(kLoginPrefix) ? nullptr : LineOf(name);
}

template <typename Grants>
bool TagRights::Reader::AnyLine(const Names& names, std::string_view user, Grants grants) {
  Refresh();
  const auto line_grants = [&](const Line* line) { return line != nullptr && grants(*line); };
  return line_grants(LineOf(user)) ||
         std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return line_grants(LineOfCertificate(name)); });
}

bool TagRights::Reader::Permit(const Names& names, std::string_view user, std::string_view tag) {
  const bool permitted = AnyLine(names, user, [tag](const Line& line) { return line.Grants(tag); });
  if (!permitted) CountRefused(names, user);
  return permitted;
}

bool TagRights::Reader::PermitCreation(const Names& names, std::string_view user) {
  return AnyLine(names, user, [](const Line& line) { return line.tags.contains(kCreateRight); });
}

std::optional<LeaseClient> TagRights::Reader::PermitLeases(const Names& names,
                                                           std::string_view user) {
  Refresh();
  std::optional<LeaseClient> most;
  const auto consider = [&most](std::string_view name, const Line* line) {
    if (line == nullptr || !line->Grants(kLeaseRight)) return;
    const bool more =
        !most || (most->leases_max && (!line->leases_max || *line->leases_max > *most->leases_max));
    if (more) most = LeaseClient{std::string(name), line->leases_max};
  };
  consider(user, LineOf(user));
  for (const std::string& name : names) consider(name, LineOfCertificate(name));
  if (!most) CountRefused(names, user);
  return most;
}

void TagRights::Reader::CountRefused(const Names& names, std::string_view user) {
  const auto is_users = [](const std::string& name) { return name.starts_with(kLoginPrefix); };
  const auto name = std::find_if_not(names.begin(), names.end(), is_users);
  const std::string_view who = user.empty() && name != names.end() ? *name : user;
  rights_->CountRefused(std::string(who));
}

void TagRights::CountRefused(std::string who) {
  const std::lock_guard lock(mutex_);
  if (refused_.size() >= kNamesCounted && !refused_.contains(who)) who = "others";
  ++refused_[who];
}

std::map<std::string, uint64_t> TagRights::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace firn::front
