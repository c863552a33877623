// Tests merges of backups from a cluster whose registry is rolled back repeatedly.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/cat.h"
#include "common/time/entropy.h"
#include "registry/operate/backup.h"
#include "registry/operate/restore_memory.h"

namespace firn {
namespace {

constexpr char kMergedUuid[] = "6f9619ff-8b86-4d11-b42d-00c04fc964ff";

// A cluster's history: changes, backups, and sometimes a rollback to an earlier backup.
class History {
 public:
  explicit History(uint64_t seed) : entropy_(seed) {
    now_.root.uuid = kMergedUuid;
    now_.root.layout = "firn";
    now_.root.workers = 4;
    now_.root.settings_version = 0;
  }

  std::vector<Backup> Backups(size_t count) {
    std::vector<Backup> backups;
    const Backup first = now_;
    while (backups.size() < count) {
      const uint64_t changes = 1 + entropy_.Below(12);
      for (uint64_t i = 0; i < changes; ++i) Change();
      now_.taken = time_ += Milliseconds(entropy_.Below(3));  // may be equal times
      now_.checksum = Cat("c", backups.size());
      backups.push_back(entropy_.Below(3) > 0 ? now_ : PartOf(now_));
      if (entropy_.Below(4) == 0) {  // of an earlier version
        backups.back().root.settings_version = RootSettings::kNotRecorded;
      }
      if (entropy_.Below(3) > 0) continue;
      const size_t earlier = entropy_.Below(backups.size() + 1);
      now_ = earlier < backups.size() && IsWhole(backups[earlier]) ? backups[earlier] : first;
    }
    return backups;
  }
  uint64_t Below(uint64_t limit) { return entropy_.Below(limit); }

 private:
  static bool IsWhole(const Backup& backup) {
    return backup.settings_known && backup.tags_known && !backup.root.layout.empty();
  }
  // Returns the part of a backup that a server's state folder can contain.
  Backup PartOf(Backup whole) {
    if (entropy_.Below(2) == 0) {
      RootSettings root{.uuid = whole.root.uuid};
      if (entropy_.Below(2) == 0) root.layout = whole.root.layout;
      whole.root = std::move(root);
      whole.settings_known = false;
    }
    if (entropy_.Below(2) == 0) {
      whole.tags.clear();
      whole.tags_known = false;
    }
    whole.composed = true;
    whole.reached = {WallMs(static_cast<int64_t>(entropy_.Below(1'000)))};
    return whole;
  }
  void Change() {
    time_ += Milliseconds(1 + entropy_.Below(1'000));
    RootSettings& root = now_.root;
    switch (entropy_.Below(9)) {
      case 0:
        return Grant();
      case 1:  // a restore
        root.era = Nonce::Draw(entropy_);
        root.era_began = time_;
        root.floor = std::max(root.floor, time_) + Milliseconds(entropy_.Below(5'000));
        return;
      case 2:
        root.window = std::max(root.window, Milliseconds(600'000 + entropy_.Below(1'000)));
        root.workers += static_cast<uint32_t>(entropy_.Below(2));
        return;
      case 3:
        root.ids_since = WallMs(1 + static_cast<int64_t>(entropy_.Below(100)));
        root.lease_share = static_cast<int64_t>(entropy_.Below(101));
        ++root.settings_version;
        return;
      case 4:
        return Withdraw();
      default:
        return ChangeTag();
    }
  }
  void Grant() {
    const MachineId machine(static_cast<uint32_t>(entropy_.Below(6)));
    const auto at = std::ranges::lower_bound(now_.bounds, machine, {},
                                             [](const auto& bound) { return bound.first; });
    const WallMs bound = time_ + Milliseconds(entropy_.Below(5'000));
    if (at != now_.bounds.end() && at->first == machine) {
      at->second = std::max(at->second, bound);
    } else {
      now_.bounds.emplace(at, machine, bound);
    }
  }
  // Reserves or retires machine ids above all earlier ones, in order.
  void Withdraw() {
    RootSettings& root = now_.root;
    const MachineId machine(static_cast<uint32_t>(8 + entropy_.Below(8)));
    const bool is_known = std::ranges::any_of(root.reserved, [&](const ReservedIds& range) {
      return range.first <= machine && machine <= range.last;
    });
    if (is_known || std::ranges::count(root.retired, machine) > 0) return;
    if (entropy_.Below(2) == 0) {
      root.retired.push_back(machine);
      std::ranges::sort(root.retired);
    } else {
      const std::string system = Cat("system ", machine.value());  // ranges do not grow together
      root.reserved.push_back({machine, machine, system});
      std::ranges::sort(root.reserved, {}, &ReservedIds::first);
    }
  }
  void ChangeTag() {
    const std::string name = Cat("tag", entropy_.Below(3));
    const auto at = std::ranges::lower_bound(
        now_.tags, name, {},
        [](const TagNode& node) -> const std::string& { return node.tag.name; });
    if (at == now_.tags.end() || at->tag.name != name) {
      TagNode node{.tag = {.name = name, .strategy = "segment"}};
      if (entropy_.Below(2) == 0) node.tag.text = "n{id}";  // another form, after a rollback
      now_.tags.insert(at, node);
      return;
    }
    switch (entropy_.Below(5)) {
      case 0:
        at->tag.step = 1 + static_cast<int64_t>(entropy_.Below(1'000));
        return;
      case 3:
        at->others = WithMade(at->others, "plan", static_cast<int64_t>(entropy_.Below(9)));
        at->stand_in.store = "main";
        at->stand_in.picked = static_cast<int64_t>(entropy_.Below(9));
        return;
      case 1:
        at->tag.start = std::max<int64_t>(at->tag.start.value_or(1),
                                          1 + static_cast<int64_t>(entropy_.Below(9'000)));
        return;
      case 2:
        if (at->tag.high < 20) return;
        at->tag.high -= 10;
        at->returned += 10;
        return;
      default:
        at->tag.high = at->tag.NextBegin() + static_cast<int64_t>(entropy_.Below(1'000));
    }
  }

  SeededEntropy entropy_;
  WallMs time_{1'750'000'000'000};
  Backup now_{};
};

Result<Backup> MergeAll(const std::vector<Backup>& backups) {
  Result<Backup> merged = backups.front();
  for (const Backup& backup : backups) {
    if (merged.ok()) merged = MergeBackups(*merged, backup);
  }
  return merged;
}

// The shares and definitions that the merged backup contains.
std::vector<ShareAsSeen> SharesIn(const Backup& backup) {
  std::vector<ShareAsSeen> shares = backup.other_shares;
  const RootSettings& root = backup.root;
  shares.push_back({root.era, root.settings_version, root.lease_share});
  return shares;
}
bool HasDefinition(const Backup& backup, TagDefinition tag) {
  tag.high = 0;
  tag.start.reset();
  return std::ranges::any_of(backup.DefinitionsOf(tag.name), [&tag](TagDefinition one) {
    one.high = 0;
    one.start.reset();
    return one == tag;
  });
}

// Returns whether the share of `one` is in the merged backup, or a later one is.
bool HasShareOf(const Backup& one, const Backup& merged) {
  const ShareAsSeen seen = SharesIn(one).back();
  return std::ranges::any_of(SharesIn(merged), [&seen](const ShareAsSeen& kept) {
    const bool later = seen.era == kept.era && seen.version != RootSettings::kNotRecorded &&
                       seen.version < kept.version;
    return kept == seen || later;
  });
}

void ExpectAbove(const Backup& merged, const Backup& one) {
  EXPECT_GE(merged.taken, one.taken);
  EXPECT_TRUE(std::ranges::includes(merged.reached, one.reached));
  EXPECT_GE(merged.settings_known, one.settings_known);
  EXPECT_GE(merged.tags_known, one.tags_known);
  EXPECT_TRUE(one.root.layout.empty() || merged.root.layout == one.root.layout);
  EXPECT_GE(merged.root.window, one.root.window);
  EXPECT_GE(merged.root.workers, one.root.workers);
  EXPECT_GE(merged.root.floor, one.root.floor);
  for (const int64_t after : {0, 1, 1'000, 1'000'000}) {
    const WallMs now = merged.taken + Milliseconds(after);
    EXPECT_GE(merged.root.IdsBy(now), one.root.IdsBy(now));
  }
  if (one.root.ids_since != WallMs()) {
    EXPECT_LE(merged.root.ids_since, one.root.ids_since);
  }
  for (const auto& [machine, bound] : one.bounds) {
    const auto same =
        std::ranges::find(merged.bounds, machine, &std::pair<MachineId, WallMs>::first);
    ASSERT_NE(same, merged.bounds.end());
    EXPECT_GE(same->second, bound);
  }
  for (const MachineId machine : one.root.retired) {
    EXPECT_EQ(std::ranges::count(merged.root.retired, machine), 1);
  }
  for (const TagNode& node : one.tags) {
    const TagNode* const same = merged.Find(node.tag.name);
    ASSERT_NE(same, nullptr);
    EXPECT_GE(same->tag.NextBegin(), node.tag.NextBegin());
    EXPECT_GE(same->ledger_sum(), node.ledger_sum());
    const std::vector<TagDefinition> all = merged.DefinitionsOf(node.tag.name);
    const bool has_form = std::ranges::any_of(
        all, [&](const TagDefinition& tag) { return FormOf(tag) == FormOf(node.tag); });
    EXPECT_TRUE(has_form || !node.tag.MayHaveIssued());
    // A definition is replaced only by one with a higher ledger, or with ids.
    const bool is_last = std::ranges::all_of(all, [&](const TagDefinition& tag) {
      return tag.MayHaveIssued() == node.tag.MayHaveIssued() &&
             tag.NextBegin() <=
                 std::max(static_cast<int64_t>(node.ledger_sum()), node.tag.NextBegin());
    });
    EXPECT_TRUE(!is_last || HasDefinition(merged, node.tag)) << node.tag.name;
  }
  EXPECT_TRUE(!one.settings_known || HasShareOf(one, merged));
}

TEST(BackupMergeTest, ContainsTheFactsOfEachBackupInAnyOrder) {
  int merges = 0, shares = 0, definitions = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(Cat("seed ", seed));
    History history(seed);
    std::vector<Backup> backups = history.Backups(2 + history.Below(6));
    const Result<Backup> merged = MergeAll(backups);
    for (size_t i = backups.size() - 1; i > 0; --i) {
      std::swap(backups[i], backups[history.Below(i + 1)]);
    }
    // Merging must be associative: merges two parts separately, then their results.
    const auto middle = backups.begin() + 1 + static_cast<long>(history.Below(backups.size() - 1));
    const Result<Backup> one = MergeAll({backups.begin(), middle});
    const Result<Backup> other = MergeAll({middle, backups.end()});
    const Result<Backup> grouped = !one.ok()     ? one
                                   : !other.ok() ? other
                                                 : MergeBackups(*one, *other);
    ASSERT_EQ(grouped.ok(), merged.ok()) << merged.status() << grouped.status();
    ASSERT_TRUE(merged.ok()) << merged.status();
    ++merges;
    shares += merged->other_shares.empty() ? 0 : 1;
    definitions += merged->other_tags.empty() ? 0 : 1;
    ASSERT_EQ(*grouped, *merged);
    for (const Backup& backup : backups) {
      ExpectAbove(*merged, backup);
      EXPECT_EQ(*MergeBackups(*merged, backup), *merged);
      EXPECT_EQ(*MergeBackups(backup, *merged), *merged);
      EXPECT_EQ(*MergeBackups(backup, backup), backup);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(shares, 5) << "different shares of one version";
  EXPECT_GT(definitions, 5) << "two definitions of one version, or forms in which ids may exist";
  EXPECT_GT(merges, shares + 20);
}

// A copied folder, and the document of a disconnected server, have a later time without newer
// contents.
TEST(BackupMergeTest, IgnoresALaterTimeWithoutNewerContents) {
  Backup fresh{.taken = WallMs(5)};
  fresh.root = {.uuid = kMergedUuid, .layout = "firn", .lease_share = 70, .version = 3};
  fresh.tags = {{.tag = {.name = "order", .strategy = "segment", .step = 50, .high = 1'000}}};
  Backup old = fresh;
  old.taken = WallMs(9);
  old.root.lease_share = 20;
  old.root.version = 2;
  old.tags.front().tag.step = 7;
  old.tags.front().tag.high = 900;
  const Backup merged = MergeBackups(fresh, old).value();
  EXPECT_EQ(merged.root.lease_share, 70);
  EXPECT_EQ(merged.tags.front().tag.step, 50);
  old.root.version = 3;
  old.tags.front().tag.high = 1'000;
  fresh.composed = old.composed = true;
  const Backup tied = MergeBackups(fresh, old).value();
  EXPECT_EQ(tied.tags.size(), 1u);
  ASSERT_EQ(tied.other_tags.size(), 1u) << "equal versions with different contents";
  EXPECT_EQ(tied.tags[0].tag.step + tied.other_tags[0].tag.step, 57);
  ASSERT_EQ(tied.other_shares.size(), 1u);
  EXPECT_EQ(tied.root.lease_share + tied.other_shares[0].share, 90);
  const Result<Backup> copied = ParseBackup(FormatBackup(tied));
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(copied->tags, tied.tags);
  EXPECT_EQ(copied->other_tags, tied.other_tags);
  EXPECT_EQ(copied->other_shares, tied.other_shares);

  fresh.root.settings_version = 2;
  EXPECT_EQ(MergeBackups(fresh, old)->other_shares.size(), 1u) << "one version is not recorded";
  old.root.settings_version = 1;
  const Backup changed = MergeBackups(fresh, old).value();
  EXPECT_EQ(changed.root.lease_share, 70);
  EXPECT_TRUE(changed.other_shares.empty());
  old.tags.front().tag.high = 1'001;
  EXPECT_EQ(MergeBackups(fresh, old)->tags.front().tag.step, 7);
  EXPECT_TRUE(MergeBackups(fresh, old)->other_tags.empty());
}

// A restore makes a tag again with a start, and no ledger until its first range.
TEST(BackupMergeTest, ATagThatARestoreHasMadeAgainIsLater) {
  Backup lost{.composed = true};
  lost.root = {.uuid = kMergedUuid, .layout = "firn"};
  lost.tags = {{.tag = {.name = "order", .strategy = "segment", .step = 50, .high = 5'000}}};
  Backup made = lost;
  made.tags = {{.tag = {.name = "order", .strategy = "segment", .start = 6'000, .step = 70}}};
  const Backup merged = MergeBackups(lost, made).value();
  EXPECT_EQ(merged.tags.front().tag.step, 70);
  EXPECT_TRUE(merged.other_tags.empty());
  made.tags.front().tag.text = "n{id}";
  EXPECT_EQ(MergeBackups(lost, made)->other_tags.size(), 1u) << "ids may exist in both forms";
}

// The tag was re-created in another form while the server was stopped.
TEST(BackupMergeTest, AServersDocumentKeepsBothFormsOfATag) {
  Backup kept{.composed = true};
  kept.root = {.uuid = kMergedUuid, .layout = "firn"};
  kept.tags = {{.tag = {.name = "order", .strategy = "segment", .step = 7, .high = 900}},
               {.tag = {.name = "user", .strategy = "segment", .text = "u{id}", .high = 500}}};
  kept.bounds = {{MachineId(3), WallMs(7)}};
  Backup known{.composed = true};
  known.root = kept.root;
  known.tags = {{.tag = {.name = "order", .strategy = "segment", .step = 50, .high = 900}},
                {.tag = {.name = "user", .strategy = "segment", .high = 40}}};
  const Backup both = AddKept(known, kept);
  EXPECT_EQ(both.bounds, kept.bounds);
  ASSERT_EQ(both.tags.size(), 2u);
  EXPECT_EQ(both.tags[0].tag.step, 50) << "it has read the edit";
  EXPECT_EQ(both.tags[1].tag.high, 500);
  ASSERT_EQ(both.other_tags.size(), 1u);
  EXPECT_NE(both.tags[1].tag.text, both.other_tags[0].tag.text);

  TagDefinition& user = known.tags[1].tag;
  user.text = "u{id}", user.buffer = TagBuffer::kOwner;
  EXPECT_TRUE(AddKept(known, kept).other_tags.empty()) << "it has read that the tag got an owner";
  user.high = 0;
  EXPECT_EQ(AddKept(known, kept).tags[1].tag.buffer, TagBuffer::kDouble) << "the used form";
  user = {.name = "user", .strategy = "segment", .high = 40};

  known.root.default_strategy = "snowflake";
  EXPECT_EQ(AddKept(known, kept).tags, both.tags) << "contradictory settings";
  EXPECT_EQ(AddKept(known, kept).root.default_strategy, "snowflake");
  kept.root.uuid[0] = '7';
  EXPECT_EQ(AddKept(known, kept), known) << "another cluster";
}

// The cluster may have got more tags than a server reads, after another server had stopped.
TEST(BackupMergeTest, AnIncompleteListOfTagsMakesACompleteOneUnreliable) {
  Backup whole{.composed = true};
  whole.root = {.uuid = kMergedUuid, .layout = "firn"};
  whole.tags = {{.tag = {.name = "order", .strategy = "segment"}}};
  Backup cut = whole, settings = whole;
  cut.tags_known = settings.tags_known = false;
  settings.tags.clear();
  EXPECT_TRUE(MergeBackups(whole, settings)->tags_known);
  EXPECT_FALSE(MergeBackups(whole, cut)->tags_known);
  EXPECT_FALSE(MergeBackups(cut, whole)->tags_known);
  EXPECT_FALSE(AddKept(cut, whole).tags_known);
  EXPECT_FALSE(AddKept(cut, settings).tags_known);
  EXPECT_TRUE(AddKept(whole, settings).tags_known);
}

TEST(BackupMergeTest, RefusesAnotherCluster) {
  History history(1);
  const std::vector<Backup> backups = history.Backups(2);
  for (const auto& change : std::vector<void (*)(RootSettings&)>{
           [](RootSettings& root) { root.uuid[0] = '7'; },
           [](RootSettings& root) { root.rack_bits = 1; },
           [](RootSettings& root) { root.default_strategy = "snowflake"; }}) {
    Backup other = backups[1];
    change(other.root);
    const Status refused = MergeBackups(backups[0], other).status();
    EXPECT_EQ(refused.code(), Code::kConflict);
    const bool is_named = refused.message().find("different clusters") != std::string::npos;
    EXPECT_EQ(is_named, other.root.uuid != backups[0].root.uuid) << refused;
  }
}

}  // namespace
}  // namespace firn
