#include "registry/operate/restore_command.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/printed_command.h"
#include "common/base/quote.h"
#include "common/tag/numbers_left.h"
#include "common/tag/tag_fields.h"
#include "common/tag/tag_name.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"
#include "registry/operate/audit_server.h"

namespace firn {
namespace {

constexpr std::string_view kNone = "none";
constexpr std::string_view kDot = "%2E";  // in a tag's name
constexpr uint32_t kAnsweredMachineMax = 65'535;

// Keys whose values are lists.
bool IsList(std::string_view key) { return key == "floor" || key == "retire" || key == "reserve"; }

// Calls `take` with each item of a list.
template <typename Take>
Status ForEach(std::string_view list, const Take& take) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    FIRN_TRY(take(item));
  }
  return {};
}

Status TakeNumber(std::string_view text, int64_t least, int64_t most, const char* what,
                  int64_t& number) {
  const auto parsed = ParseNumberWithin<int64_t>(text, least, most);
  if (!parsed) return Invalid(Cat(Quoted(text), " is not ", what));
  number = *parsed;
  return {};
}

Result<WallMs> ParseTime(std::string_view text) {
  if (const auto ms = ParseNumberWithin<int64_t>(text, 1)) return WallMs(*ms);
  const Result<WallMs> time = ParseRfc3339(text);
  return time.ok() ? time
                   : Invalid(Cat(Quoted(text), " is not a time, such as 2026-11-25T03:15:17Z"));
}

GivenTag& TagOf(const std::string& name, RestoreAnswers& answers) {
  const auto known =
      std::ranges::find(answers.tags, name, [](const auto& it) { return it.tag.name; });
  if (known != answers.tags.end()) return *known;
  answers.tags.push_back({{.name = name, .strategy = "segment"}, /*defined=*/false});
  return answers.tags.back();
}

Status TakeField(const std::string& name, std::string_view field, const std::string& value,
                 RestoreAnswers& answers) {
  if (field == "high" || field == "start") {
    int64_t number = 0;
    FIRN_TRY(TakeNumber(value, 1, INT64_MAX - 1, "a number above 0", number));
    if (field == "high") {
      answers.highs.high[name] = number + 1;
    } else {
      TagOf(name, answers).tag.start = number;
    }
    return {};
  }
  GivenTag& given = TagOf(name, answers);
  given.defined |= field == "strategy";
  return SetByKey(field, value, given.tag);
}

Status TakeSetting(std::string_view key, const std::string& value, RestoreAnswers& answers) {
  int64_t number = 0;
  if (key == "workers") {
    FIRN_TRY(TakeNumber(value, 1, kAnsweredMachineMax + 1, "a number of machine ids", number));
    answers.workers = static_cast<uint32_t>(number);
  } else if (key == "window") {
    FIRN_TRY(TakeNumber(value, 1, kWindowMax.count(),
                        "a claim window in milliseconds, at most 6 hours", number));
    answers.window = Milliseconds(number);
  } else if (key == "lease_share") {
    FIRN_TRY(TakeNumber(value, 0, 100, "a number from 0 to 100, in percent", number));
    answers.lease_share = number;
  } else if (key == "floor") {
    return ForEach(value, [&](std::string_view item) -> Status {
      FIRN_ASSIGN(const WallMs time, ParseTime(item));
      answers.floors.push_back(time);
      return {};
    });
  } else if (key == "retire") {
    return ForEach(value, [&](std::string_view item) -> Status {
      FIRN_TRY(TakeNumber(item, 0, kAnsweredMachineMax, "a machine id", number));
      answers.retired.emplace_back(static_cast<uint32_t>(number));
      return {};
    });
  } else if (key == "reserve") {
    FIRN_ASSIGN(answers.reserved, ParseReserved(value == kNone ? "" : value));
  } else if (key == "default_strategy") {
    answers.default_strategy = value == kNone ? "" : value;
    if (!IsDefaultStrategy(*answers.default_strategy)) {
      return Invalid(Cat(Quoted(value), " is neither snowflake nor none"));
    }
  } else if (key == "tags") {
    if (value != kNone) {
      return Invalid(Cat(Quoted(value),
                         " is not none; define each tag instead, as in order.strategy=segment"));
    }
    answers.no_other_tags = true;
  } else if (key == "definitions") {
    if (value != "any") return Invalid(Cat(Quoted(value), " is not any"));
    answers.any_definitions = true;
  } else if (key == "folders") {
    if (value != "all") return Invalid(Cat(Quoted(value), " is not all"));
    answers.all_folders = true;
  } else {
    return Invalid("there is no such key; see --help");
  }
  return {};
}

Status Take(const std::string& key, const std::string& value, RestoreAnswers& answers) {
  const size_t dot = key.find('.');
  if (dot == key.npos) return TakeSetting(key, value, answers);
  std::string encoded = key.substr(0, dot);
  for (size_t at = 1; (at = encoded.find(kDot, at)) != encoded.npos;) {
    encoded.replace(at, kDot.size(), ".");
  }
  FIRN_ASSIGN(const std::string name, DecodeTagName(encoded));
  return TakeField(name, std::string_view(key).substr(dot + 1), value, answers);
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

std::string ServerRestoreCommand(RestoreArguments place, const std::string& uuid,
                                 const std::optional<UnsavedSettings>& unsaved,
                                 const RestoreMemory* unfinished) {
  if (unfinished != nullptr) {
    place.from.clear();
    return UnfinishedCommand(*unfinished, uuid, std::move(place));
  }
  std::vector<std::string>& flags = place.flags;
  flags.push_back("--uuid=" + uuid);
  if (unsaved && !unsaved->layout.empty()) flags.push_back("--layout=" + unsaved->layout);
  if (unsaved && unsaved->rack_bits > 0) flags.push_back(Cat("--rack_bits=", unsaved->rack_bits));
  if (unsaved) {
    const Milliseconds window = std::max(unsaved->window, ClaimOptions().window);
    flags.push_back(Cat("--set=window=", window.count()));
  }
  return RestoreCommand(place);
}

std::string UnfinishedCommand(const RestoreMemory& unfinished, const std::string& uuid,
                              RestoreArguments place) {
  for (const auto& document : unfinished.documents) {
    place.from += Cat(place.from.empty() ? "" : ",", document.path);
  }
  place.flags.push_back("--uuid=" + uuid);  // a folder may contain several clusters
  const bool here = place.from.empty() || unfinished.host == place.host;
  return Cat(here ? "" : Cat("on ", unfinished.host, ": "), RestoreCommand(place));
}

std::string RepairCommand(const Audit& audit, RestoreArguments place) {
  if (audit.Losses() == 0 || !audit.meta) return {};
  if (audit.unfinished) {
    return UnfinishedCommand(*audit.unfinished, audit.meta->uuid, std::move(place));
  }
  // This cluster may have replaced the one that its servers miss, or has lost a tag that they know.
  const auto foreign = [&audit](const auto& server) { return IsForeign(server.report, audit); };
  if (std::ranges::any_of(audit.providers, foreign)) return {};
  for (const auto& [name, seen] : audit.lost_tags) {
    const auto knows = [&name](const auto& server) { return server.report.high.contains(name); };
    if (std::ranges::any_of(audit.providers, knows)) return {};
    place.from = "DOCUMENT";  // has the tag's form, and numbers of it
    place.flags.push_back("--set=" + AnswerOf(name, "strategy", "STRATEGY"));
    place.flags.push_back("--set=" + AnswerOf(name, "start", "NUMBER"));
  }
  return RestoreCommand(place);
}

std::string RestoreCommand(const RestoreArguments& words) {
  std::vector<std::string> arguments{Cat("--registry=", words.registry)};
  if (!words.auth_file.empty()) arguments.push_back("--registry_auth_file=" + words.auth_file);
  if (!words.from.empty()) arguments.push_back("--from=" + words.from);
  arguments.insert(arguments.end(), words.flags.begin(), words.flags.end());
  return PrintCommand(PrintedCommand::kRestore, arguments);
}

const GivenTag* RestoreAnswers::Find(const std::string& tag) const {
  const auto found = std::ranges::find(tags, tag, [](const auto& it) { return it.tag.name; });
  return found == tags.end() ? nullptr : &*found;
}

Result<RestoreAnswers> ParseAnswers(const std::vector<std::string>& said) {
  std::map<std::string, std::string> values;
  for (const std::string& one : said) {
    const size_t equals = one.find('=', 1);  // encoded names may begin with one
    if (equals == one.npos) return Invalid(Cat("--set: ", Quoted(one), " is not KEY=VALUE"));
    const std::string key = one.substr(0, equals), value = one.substr(equals + 1);
    const auto [known, is_new] = values.emplace(key, value);
    if (is_new || known->second == value) continue;
    if (!IsList(key)) return Invalid(Cat("--set: ", Quoted(key), " has two values"));
    known->second += "," + value;
  }
  RestoreAnswers answers;
  for (const auto& [key, value] : values) {
    const Status taken = Take(key, value, answers);
    if (!taken.ok()) return Invalid(taken.message()).WithContext(Cat("--set: ", key));
    answers.said.push_back(Cat(key, "=", value));
  }
  for (const GivenTag& given : answers.tags) {
    const Status checked = CheckTag(given.tag);
    if (!checked.ok()) return Invalid(checked.message()).WithContext("--set");
    // Its other fields would silently have their defaults.
    TagDefinition number{.name = given.tag.name, .strategy = "segment", .start = given.tag.start};
    if (given.defined || given.tag == number) continue;
    return Invalid(
        Cat("--set: a lost tag is defined by its strategy and all its fields as they were; add ",
            AnswerOf(given.tag.name, "strategy", "STRATEGY")));
  }
  return answers;
}

std::string AnswerOf(const std::string& tag, const std::string& key, const std::string& value) {
  std::string name;
  for (const char c : EncodeTagName(tag)) name += c == '.' ? kDot : std::string_view(&c, 1);
  return Cat(name, ".", key, "=", value);
}

}  // namespace firn
