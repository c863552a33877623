#include "tools/firn/tag_changes.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/cat.h"
#include "common/base/near_names.h"
#include "common/base/quote.h"
#include "common/id/layout.h"
#include "common/tag/obfuscated_end.h"
#include "common/time/clock.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/servers/provider.h"

namespace firn {
namespace {

using Kind = TagChange::Kind;

// Adds the lift of the ledger to the change. DiffTags does not show it, because the ledger is not a
// field of the tag.
void ShowLift(int64_t before, const TagDefinition& after, TagChange& change) {
  if (after.high <= before) return;
  if (change.kind == Kind::kSame) change.kind = Kind::kEdit;
  change.lines.push_back(Cat("high: ", before, " -> ", after.high));
}

Status PutTag(TagStore& store, const StoredTag* old, const TagDefinition& tag) {
  if (old == nullptr) {
    FIRN_TRY(store.Create(tag));
  } else if (WithLedgerOf(old->tag(), tag) != old->tag()) {
    FIRN_TRY(store.Edit(*old, tag));
  }
  if (tag.high <= (old == nullptr ? 0 : old->tag().high)) return {};
  Status lifted = Conflict("not tried");
  for (int tries = 0; lifted.code() == Code::kConflict && tries < TagStore::kEditTriesMax;
       ++tries) {
    FIRN_ASSIGN(const StoredTag now, store.Read(tag.name));
    lifted = store.Lift(now, tag.high);
  }
  return lifted;
}

// Adds the intended changes and the tags already written to the status of a failed write.
Status Stopped(const Status& why, const std::string& diff, const std::vector<std::string>& done,
               const std::string& at) {
  std::string so_far = "done: none";
  for (size_t i = 0; i < done.size(); ++i) so_far = (i == 0 ? "done: " : so_far + ", ") + done[i];
  return why.WithContext(diff + so_far + "\nnot done: " + at + " and all after it");
}

struct Reporting {
  std::string address;
  ProviderReport report;
};

// The listed servers: the reports of those that list their stores, and the addresses of the others.
struct Listed {
  std::vector<Reporting> reports{};
  std::vector<std::string> silent{};
};

Result<Listed> ReadReports(BlockingCoordinator& registry) {
  Listed listed;
  const auto names = registry.List(std::string(kProvidersPath));
  if (names.code() == Code::kNotFound) return listed;
  if (!names.ok()) return names.status().WithContext("listing the servers");
  for (const std::string& name : *names) {
    const auto provider = ParseProviderNodeName(name);
    const auto node = registry.Read(std::string(kProvidersPath) + "/" + name);
    // Foreign, or the server has just stopped.
    if (!provider.ok() || node.code() == Code::kNotFound) continue;
    auto report = node.ok() ? ParseReport(node->data) : node.status();
    if (report.ok() && !report->stores.empty()) {
      listed.reports.push_back({provider->address, *std::move(report)});
    } else {
      listed.silent.push_back(provider->address);
    }
  }
  return listed;
}

std::string NamesOf(const std::set<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += Cat(all.empty() ? "" : ", ", name);
  return all;
}

// `names`: empty where the server's version does not report them.
Status CheckName(std::string_view what, const std::string& name,
                 const std::set<std::string>& names) {
  if (names.empty() || names.contains(name)) return {};
  return Invalid(Cat(what, " ", Quoted(name), " is not available, only ", NamesOf(names)));
}

Status CheckStore(const ProviderReport& report, const TagDefinition& tag) {
  if (tag.strategy != "segment") return {};
  const std::string store = "store " + Quoted(tag.store);
  const auto found = report.stores.find(tag.store);
  if (found == report.stores.end()) {
    std::set<std::string> known;
    for (const auto& [name, permits_no_buffer] : report.stores) known.insert(name);
    const std::vector<std::string_view> all(known.begin(), known.end());
    return Invalid(
        Cat(store, " is not configured, only ", NamesOf(known), DidYouMean(tag.store, all)));
  }
  if (!found->second && tag.buffer == TagBuffer::kNone) {
    return Invalid(store + " does not permit buffer = none");
  }
  if (found->second && tag.store != "registry" && tag.buffer == TagBuffer::kOwner) {
    return Invalid(store + " is tiered: take buffer = none");
  }
  if (tag.when_store_is_away != StoreAway::kLedger) return {};
  // A store that permits `buffer = none` is tiered. Older server versions do not report which
  // stores permit `ledger`.
  if (found->second) {
    return Invalid(store + " is tiered, so when_store_is_away = ledger is not possible");
  }
  const bool reports_stand_ins = !report.strategies.empty();
  if (reports_stand_ins && !report.stand_ins.contains(tag.store)) {
    return Invalid(store + " does not permit when_store_is_away = ledger");
  }
  return {};
}

// Returns the setting of the tag that version 0.1 does not know; empty: none.
std::string SettingSince02(const TagDefinition& tag) {
  constexpr int64_t kWidthMax = 18;  // of version 0.1
  if (tag.buffer == TagBuffer::kOwner) return Cat("buffer = ", BufferName(tag.buffer));
  if (tag.obfuscate_width > kWidthMax) return Cat("obfuscate.width = ", tag.obfuscate_width);
  const auto has = [&tag](const char* item) { return tag.text.find(item) != tag.text.npos; };
  if (has("{id:uuid7}")) return "{id:uuid7} in a text";
  if (has("{count}") && !has("{period}")) return "{count} without {period} in a text";
  return {};
}

Status CheckTagOn(const ProviderReport& report, const TagDefinition& tag) {
  // Version 0.1 reports no strategies.
  if (const std::string setting = SettingSince02(tag);
      report.strategies.empty() && !setting.empty()) {
    return Invalid(Cat("its version does not support ", setting, "; upgrade it first"));
  }
  FIRN_TRY(CheckName("strategy", tag.strategy, report.strategies));
  for (const std::string& plugin : tag.plugins) {
    FIRN_TRY(CheckName("plugin", plugin, report.plugins));
  }
  return CheckStore(report, tag);
}

// Returns whether the edit gives an owner to a tag whose numbers may have been issued.
bool GetsOwner(const std::vector<StoredTag>& present, const TagDefinition& tag) {
  return tag.buffer == TagBuffer::kOwner &&
         std::ranges::any_of(present, [&tag](const StoredTag& stored) {
           const TagDefinition& before = stored.tag();
           return before.name == tag.name && before.buffer != tag.buffer && before.MayHaveIssued();
         });
}

// Returns a note for a segment tag whose text contains a date: its counter does not restart.
std::string DateNote(const TagDefinition& tag) {
  if (tag.strategy != "segment" || tag.text.find("{date") == std::string::npos) return {};
  return Cat("tag '", tag.name,
             "': its numbers do not restart when the date in its text changes; for a counter that "
             "does, use strategy=dated");
}

}  // namespace

Output ShowChanges(const std::vector<TagChange>& changes) {
  Output output{.json = Json{{"changes", Json::array()}, {"done", false}},
                .text = DiffText(changes)};
  for (const TagChange& change : changes) {
    if (change.kind != Kind::kAdd && change.kind != Kind::kEdit) continue;
    output.json["changes"].push_back(Json{{"tag", change.name},
                                          {"kind", change.kind == Kind::kAdd ? "add" : "edit"},
                                          {"lines", change.lines},
                                          {"refused", change.status.message()}});
  }
  return output;
}

Result<Output> Done(Output output) {
  output.json["done"] = true;
  return output;
}

Status CheckServable(BlockingCoordinator& registry, const std::vector<StoredTag>& present,
                     const std::vector<TagDefinition>& tags) {
  FIRN_ASSIGN(const Listed listed, ReadReports(registry));
  const auto& [reports, silent] = listed;
  bool unchecked = false;
  for (const TagDefinition& tag : tags) {
    const bool gets_owner = GetsOwner(present, tag);
    if (gets_owner && !silent.empty()) {
      return Invalid(Cat("tag ", Quoted(tag.name), ": server ", silent.front(),
                         " does not report whether it supports buffer = owner; try again, "
                         "upgrade or stop that server, or skip this check with --force"));
    }
    const bool as_before =
        std::any_of(present.begin(), present.end(), [&tag](const StoredTag& stored) {
          const TagDefinition& before = stored.tag();
          return before.name == tag.name && before.store == tag.store &&
                 before.buffer == tag.buffer && before.strategy == tag.strategy &&
                 before.text == tag.text && before.obfuscate_width == tag.obfuscate_width &&
                 before.plugins == tag.plugins && before.disabled == tag.disabled &&
                 before.when_store_is_away == tag.when_store_is_away;
        });
    if (as_before || (tag.disabled && !gets_owner)) continue;
    unchecked |= reports.empty() && (tag.store != "registry" || !tag.plugins.empty());
    for (const auto& [address, report] : reports) {
      const Status servable = CheckTagOn(report, tag);
      if (servable.ok()) continue;
      return Invalid(Cat("tag ", Quoted(tag.name), ": server ", address,
                         " would refuse it: ", servable.message(), "; --force skips this check"));
    }
  }
  if (unchecked) {
    std::cerr << "NOTE: no server has reported, so nothing has checked the stores and plugins; the "
                 "audit does once servers run\n";
  }
  return {};
}

Result<Output> PutTags(TagStore& store, const TagListing& present,
                       const std::vector<TagDefinition>& tags, bool dry_run) {
  std::map<std::string, const StoredTag*> stored;
  std::vector<TagDefinition> before;
  for (const StoredTag& tag : present.tags) {
    stored[tag.tag().name] = &tag;
    before.push_back(tag.tag());
  }
  std::vector<TagChange> changes = DiffTags(before, tags);
  std::map<std::string, const TagDefinition*> wanted;
  for (const TagDefinition& tag : tags) wanted[tag.name] = &tag;
  for (TagChange& change : changes) {
    const auto old = stored.find(change.name);
    const auto tag = wanted.find(change.name);
    if (tag == wanted.end()) continue;
    ShowLift(old == stored.end() ? 0 : old->second->tag().high, *tag->second, change);
  }

  Output output = ShowChanges(changes);
  for (const TagChange& change : changes) {
    if (!change.status.ok()) return Invalid("nothing was done:\n" + output.text);
  }
  if (dry_run) return output;
  std::vector<std::string> done;
  for (const TagDefinition& tag : tags) {
    const auto old = stored.find(tag.name);
    const Status put = PutTag(store, old == stored.end() ? nullptr : old->second, tag);
    if (!put.ok()) return Stopped(put, output.text, done, tag.name);
    done.push_back(tag.name);
  }
  return Done(std::move(output));
}

Status AddTagNotes(BlockingCoordinator& registry, const std::vector<TagDefinition>& tags,
                   Output& output) {
  FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(registry));
  FIRN_ASSIGN(const Layout layout, Layout::Parse(meta.meta.layout));
  output.json["notes"] = Json::array();
  const WallMs now = SystemClock().Wall();
  for (const TagDefinition& tag : tags) {
    for (const std::string& note : {DateNote(tag), ObfuscatedEndNote(tag, layout, now)}) {
      if (note.empty()) continue;
      output.json["notes"].push_back(note);
      output.text += "NOTE: " + note + "\n";
    }
  }
  return {};
}

}  // namespace firn
