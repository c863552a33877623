#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/id/layout.h"
#include "common/tag/numbers_left.h"
#include "common/tag/obfuscated_end.h"
#include "common/text/dated_numbers.h"
#include "common/text/time_zone.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/auditor.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

using TagsByName = std::map<std::string, const TagNode*>;

// Empty if the tag's ledger is, or has risen above, what the server saw.
std::string FaultOf(const TagsByName& tags, const std::string& tag, int64_t seen) {
  const auto found = tags.find(tag);
  if (found == tags.end()) return "reports numbers of tag " + Quoted(tag) + ", which is missing";
  const TagNode& node = *found->second;
  if (node.ledger_sum() >= static_cast<uint64_t>(seen) || node.tag.NextBegin() >= seen) return {};
  return Cat("has seen the ledger of tag ", Quoted(tag), " at ", seen, ", but it is at ",
             node.tag.high, ": the registry went back in time");
}

// The UTC date of a day ahead is at or after the current date of every time zone.
std::string DatedAhead(const TagDefinition& tag, WallMs now) {
  const std::optional<DatedNumbers> numbers = tag.Dated();
  if (!numbers || tag.high <= 1) return {};
  const int64_t period = numbers->PeriodOf(tag.high - 1);
  const int64_t latest = numbers->PeriodAt(now + std::chrono::days(1), TimeZone::Utc());
  if (!numbers->IsPeriod(period) || period <= latest) return {};
  return Cat("tag ", Quoted(tag.name), " has numbers dated ", period,
             ", which is in the future: the registry's clock was wrong; the tag keeps this date "
             "until it has come");
}

void NoteObfuscatedEnd(const TagDefinition& tag, const Layout& layout, WallMs now, Audit& audit) {
  const std::optional<WallMs> end = ObfuscatedEnd(tag, layout);
  std::string note = ObfuscatedEndNote(tag, layout, now);
  if (note.empty()) return;
  const bool soon = *end - now < kObfuscatedLeast;
  audit.findings.push_back({soon ? Urgency::kSoon : Urgency::kNote, std::move(note),
                            soon ? "create a tag with a larger obfuscate.width for new ids" : ""});
}

}  // namespace

Status Auditor::ReadTags() {
  FIRN_ASSIGN(const TagListing listing, TagStore(registry_).ReadAll());
  for (const std::string& fault : listing.faults) Loss(fault);
  for (const std::string& tag : listing.unreadable) audit_.lost_tags.emplace(tag, 0);
  const Result<Layout> layout = Layout::Parse(audit_.meta ? audit_.meta->layout : "");
  if (audit_.unfinished) audit_.made = MadeTags(listing, audit_.unfinished->plan);
  TagsByName tags;
  for (const StoredTag& stored : listing.tags) {
    const std::string& name = stored.tag().name;
    tags.emplace(name, &stored.node);
    audit_.tags.push_back(stored.tag());
    NoteOwned(stored);
    if (std::string ahead = DatedAhead(stored.tag(), now_); !ahead.empty()) {
      Fault(Urgency::kSoon, std::move(ahead),
            "correct the registry's clock; the date stays until then");
    }
    if (auto note = NoteNumbersLeft(stored.tag(), now_)) {
      Fault(note->none ? Urgency::kRefused : Urgency::kSoon, std::move(note->what),
            std::move(note->fix));
    }
    if (layout.ok()) NoteObfuscatedEnd(stored.tag(), *layout, now_, audit_);
    if (stored.stat.version != kUnguardedVersion) continue;
    Loss(UnguardedVersionFault("the node of tag " + Quoted(name)));
  }
  const std::set<std::string> deleted(listing.deleted.begin(), listing.deleted.end());
  for (const auto& [provider, report] : audit_.providers) {
    for (const auto& [tag, seen] : report.high) {
      if (seen == 0 && deleted.contains(tag)) continue;
      const std::string fault = FaultOf(tags, tag, seen);
      if (fault.empty()) continue;
      Loss(provider.address + " " + fault);
      if (tags.contains(tag)) continue;
      int64_t& known = audit_.lost_tags[tag];
      known = std::max(known, seen);
    }
  }
  return {};
}

}  // namespace firn
