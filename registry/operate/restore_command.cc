#include "registry/operate/restore_command.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/printed_command.h"
#include "common/base/quote.h"
#include "common/base/url_encoding.h"
#include "common/tag/numbers_left.h"
#include "common/tag/tag_fields.h"
#include "common/tag/tag_name.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"
#include "registry/operate/audit_server.h"

namespace firn {
namespace {

using Arguments = std::vector<std::string>;

void AddFlag(const char* name, const std::string& value, Arguments& arguments) {
  if (!value.empty()) arguments.push_back(Cat("--", name, "=", value));
}

void AddField(std::string_view key, std::string_view value, std::string& word) {
  word.append(",").append(key).append("=").append(UrlEncode(value));
}

// Adds a flag as it was said, in place of one that was added before.
void AddSaid(const std::string& flag, Arguments& arguments) {
  const std::string name = flag.substr(0, flag.find('=') + 1);
  std::erase_if(arguments, [&name](const std::string& one) { return one.starts_with(name); });
  arguments.push_back(flag);
}

// Stands for the number of a tag of which only lower numbers are known.
std::string StartAbove(const TagDefinition& tag) {
  return tag.high > 1 ? Cat("START_ABOVE_", tag.high - 1) : "START";
}

// `start` is empty if it is unknown.
std::string WordOf(const TagDefinition& tag, std::optional<int64_t> start) {
  const bool known = !tag.strategy.empty();
  const bool segment = !known || tag.strategy == "segment";
  std::string word =
      EncodeTagName(tag.name) + "=" + (start ? std::to_string(*start) : StartAbove(tag));
  for (const TagField& field : TagFields()) {
    if (field.key == "start" || IsDefault(field, tag)) continue;
    if (field.key == "strategy" && segment) continue;  // added below if there are no other fields
    AddField(field.key, FieldText(field, tag), word);
  }
  for (const auto& [key, value] : tag.options) AddField(key, value, word);
  if (known && !SaysFields(word)) AddField("strategy", tag.strategy, word);
  return word;
}

Result<int64_t> ParseStart(std::string_view digits) {
  if (const auto start = ParseNumberWithin<int64_t>(digits, 0)) return *start;
  return Invalid("START must be a number above all that were issued, as in order=5001");
}

Result<TagDefinition> ParseWord(std::string_view word) {
  TagDefinition tag;
  tag.strategy = "segment";
  const size_t equals = std::min(word.find('='), word.size());
  FIRN_ASSIGN(tag.name, DecodeTagName(word.substr(0, equals)));
  word.remove_prefix(std::min(equals + 1, word.size()));
  FIRN_ASSIGN(const int64_t start, ParseStart(word.substr(0, word.find(','))));
  for (size_t comma = word.find(','); comma != std::string_view::npos;) {
    word.remove_prefix(comma + 1);
    comma = word.find(',');
    const std::string_view field = word.substr(0, comma);
    const size_t at = field.find('=');
    if (at == std::string_view::npos) return Invalid(Quoted(field) + " is not key=value");
    FIRN_ASSIGN(const std::string value, UrlDecode(field.substr(at + 1)));
    FIRN_TRY(SetByKey(field.substr(0, at), value, tag));
  }
  if (tag.HasLedger() && start == 0)
    return Invalid("the start of a tag with a ledger must be at least 1");
  if (start > 0) tag.start = start;
  FIRN_TRY(CheckTag(tag));
  return tag;
}

// Adds to `known` what a server may not know otherwise. `root` is the newest known; null: none.
//
//  * How far ids run ahead since the last restore: a bound of this server may be older.
//  * The bounds of a server without a claim. That of its leases replaces none.
//  * Ledgers: a tag that `known` contains gets the saved one if that is higher. If `tags_lost`, the
//    other saved tags are added.
void AddKept(const KeptCluster& kept, const RootSettings* root, bool tags_lost,
             KnownCluster& known) {
  const auto held = [](const auto& bound) { return bound.first && bound.second > WallMs(); };
  if (std::ranges::none_of(known.bounds, held)) {
    known.bounds.insert(known.bounds.end(), kept.last.begin(), kept.last.end());
  }
  if (root != nullptr) known.bounds.emplace_back(std::nullopt, root->IdsBy(known.now));
  for (const auto& [name, saved] : kept.tags) {
    const auto tag = tags_lost ? known.tags.emplace(name, saved).first : known.tags.find(name);
    if (tag != known.tags.end()) tag->second.high = std::max(tag->second.high, saved.high);
  }
}

}  // namespace

int64_t SumOrMax(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

int64_t GapOf(const TagDefinition& tag, int64_t wanted) {
  const int64_t range = std::max(tag.step, tag.step_max);
  return std::max(wanted, SumOrMax(range, range));
}

int64_t LiftTo(const TagDefinition& tag, int64_t known, int64_t wanted, std::optional<WallMs> now) {
  const std::optional<DatedNumbers> numbers = tag.Dated();
  if (!numbers) return SumOrMax(known, GapOf(tag, wanted));
  const TimeZone zone = TimeZone::Load(tag.zone).value_or(TimeZone::Utc());
  const int64_t seen = known > 1 ? numbers->PeriodOf(known - 1) : 0;
  const int64_t period = std::max(seen, now ? numbers->PeriodAt(*now, zone) : 0);
  if (period == 0) return 1;
  const int64_t most = numbers->scale(), range = std::max(tag.step, most / 100);
  return std::min(SumOrMax(std::max(known, numbers->First(period)), std::max(2 * range, most / 10)),
                  numbers->End(period));
}

void AddAudit(const Audit& audit, RestoreArguments& words) {
  if (!audit.meta) return;
  words.uuid = audit.meta->uuid;
  words.layout = audit.meta->layout;
  words.rack_bits = audit.meta->rack_bits;
  words.default_strategy = audit.meta->default_strategy;
  words.ids_since = audit.meta->ids_since;
  words.lease_share = audit.settings.LeaseShareUnder(*audit.meta);
  words.window = std::max(words.window, audit.settings.window);
}

std::string RepairCommand(const Audit& audit, RestoreArguments place) {
  if (audit.Losses() == 0 || !audit.meta) return {};
  if (audit.unfinished) {
    for (const auto& document : audit.unfinished->documents) {
      place.from += Cat(place.from.empty() ? "" : ",", document.path);
    }
    return RestoreCommand(place);
  }
  // This cluster may have replaced the one that its servers miss.
  const auto foreign = [&audit](const auto& server) { return IsForeign(server.report, audit); };
  if (std::ranges::any_of(audit.providers, foreign)) return {};
  AddAudit(audit, place);
  for (const auto& [name, seen] : audit.lost_tags) {
    TagDefinition& tag = place.tags.emplace_back();
    tag.name = name;
    tag.high = seen;
  }
  return RestoreCommand(place);
}

std::string FormatTagArgument(const TagDefinition& tag) {
  if (!tag.strategy.empty() && !tag.HasLedger()) return WordOf(tag, 0);
  const int64_t start = LiftTo(tag, tag.NextBegin(), kTagGap);
  return WordOf(tag, start < NumbersEnd(tag) ? std::optional(start) : std::nullopt);
}

bool SaysFields(std::string_view word) { return word.find(',') != word.npos; }

Result<TagDefinition> ParseTagArgument(std::string_view word) {
  Result<TagDefinition> tag = ParseWord(word);
  if (tag.ok()) return tag;
  return Invalid(tag.status().message()).WithContext(Quoted(word));
}

void AddSettings(const RootSettings& settings, RestoreArguments& words) {
  words.uuid = settings.uuid;
  words.layout = settings.layout;
  words.rack_bits = settings.rack_bits;
  words.workers = settings.workers;
  words.default_strategy = settings.default_strategy;
  words.ids_since = settings.ids_since;
  words.lease_share = settings.lease_share;
  words.window = std::max(words.window, settings.window);
  words.reserved = settings.reserved;
  words.retired.insert(words.retired.end(), settings.retired.begin(), settings.retired.end());
}

void AddKnown(const KnownCluster& known, RestoreArguments& words) {
  for (const auto& [machine, bound] : known.bounds) {
    const bool absurd = bound - known.now > kPoisonAhead;
    if (absurd && machine) {
      words.retired.push_back(*machine);
    } else if (!absurd && bound > WallMs()) {
      words.bound = std::max(words.bound.value_or(bound), bound);
    }
  }
  std::ranges::sort(words.retired);
  const auto again = std::ranges::unique(words.retired);
  words.retired.erase(again.begin(), again.end());
  for (auto [name, tag] : known.tags) {
    const auto high = known.highest.find(name);
    const bool read = high != known.highest.end();
    if (read) tag.high = std::max(tag.high, high->second);
    (read || !tag.HasLedger() ? words.tags : words.unread).push_back(std::move(tag));
  }
}

std::string ServerRestoreCommand(RestoreArguments words, const RootSettings* root,
                                 const KeptCluster& kept, bool tags_read, KnownCluster known) {
  if (root != nullptr && root->uuid != words.uuid) root = nullptr;
  words.root_unread = root == nullptr;
  if (root != nullptr) AddSettings(*root, words);
  AddKept(kept, root, !tags_read, known);
  words.tags_unread = !tags_read && known.tags.empty();
  AddKnown(known, words);
  return RestoreCommand(words);
}

bool HasUnread(std::string_view command) {
  return command.find(Cat("=", kUnreadSetting)) != command.npos ||
         command.find(Cat(" ", kUnreadTags)) != command.npos;
}

std::string RestoreCommand(const RestoreArguments& words) {
  Arguments arguments;
  AddFlag("registry", words.registry, arguments);
  AddFlag("registry_auth_file", words.auth_file, arguments);
  AddFlag("uuid", words.uuid, arguments);
  AddFlag("layout", words.layout, arguments);
  if (words.rack_bits) AddFlag("rack_bits", std::to_string(*words.rack_bits), arguments);
  if (words.workers > 0) AddFlag("workers", std::to_string(words.workers), arguments);
  if (words.window > ClaimOptions().window) {
    AddFlag("claim_window_ms", std::to_string(words.window.count()), arguments);
  }
  if (words.default_strategy || words.root_unread) {
    arguments.push_back("--default_strategy=" + words.default_strategy.value_or(kUnreadSetting));
  }
  if (words.ids_since != WallMs()) {
    AddFlag("ids_since", FormatRfc3339(words.ids_since), arguments);
  }
  if (words.lease_share != ClusterMeta::kLeaseShare) {
    AddFlag("lease_share", std::to_string(words.lease_share), arguments);
  }
  if (words.reserved || words.root_unread) {
    arguments.push_back("--reserve=" +
                        (words.reserved ? FormatReserved(*words.reserved) : kUnreadSetting));
  }
  if (words.bound) AddFlag("bound_ms", std::to_string(words.bound->ms()), arguments);
  std::string retired;
  for (const MachineId machine : words.retired) {
    retired += Cat(retired.empty() ? "" : ",", machine.value());
  }
  AddFlag("retire", retired, arguments);
  AddFlag("from", words.from, arguments);
  for (const std::string& flag : words.said_flags) AddSaid(flag, arguments);
  std::vector<std::string> tags = words.said_tags;
  for (const TagDefinition& tag : words.tags) tags.push_back(FormatTagArgument(tag));
  for (const TagDefinition& tag : words.unread) tags.push_back(WordOf(tag, std::nullopt));
  if (words.tags_unread) tags.emplace_back(kUnreadTags);
  bool flags_ended = false;
  for (std::string& word : tags) {
    if (word.starts_with('-') && !std::exchange(flags_ended, true)) arguments.push_back("--");
    arguments.push_back(std::move(word));
  }
  return PrintCommand(PrintedCommand::kRestore, arguments);
}

}  // namespace firn
