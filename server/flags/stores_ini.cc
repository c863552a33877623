#include "server/flags/stores_ini.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/base/utf8.h"
#include "common/tag/tag_fields.h"
#include "server/flags/comma_parts.h"

namespace firn {
namespace {

// Names that a file must not define: every server has `registry`, and programs that embed Firn may
// add `memory`.
const std::set<std::string, std::less<>>& ReservedNames() {
  static const std::set<std::string, std::less<>> names{"registry", "memory"};
  return names;
}

struct Setting {
  std::string value;
  int line = 0;
};

// A section of the file. The reader removes each setting that it knows; those that remain are
// unknown, and are refused.
class Section {
 public:
  Section(std::string name, int line, LineFaults& faults)
      : name_(std::move(name)), line_(line), faults_(faults) {}

  const std::string& name() const { return name_; }
  int line() const { return line_; }

  void Add(std::string key, std::string value, int line) {
    const auto [first, fresh] = settings_.emplace(std::move(key), Setting{std::move(value), line});
    if (!fresh) {
      faults_.Add(line, Cat(Where(first->first), "set twice, first at line ", first->second.line));
    }
  }
  void Fault(int line, const std::string& key, const std::string& what) {
    faults_.Add(line, Where(key) + what);
  }

  // Without `otherwise`, the setting is required.
  std::string Text(const std::string& key, std::optional<std::string> otherwise);
  int64_t Number(const std::string& key, int64_t otherwise, int64_t least, int64_t most);
  bool Has(const std::string& key) const { return settings_.contains(key); }
  Endpoint Address(const std::string& key);
  std::vector<Endpoint> Addresses(const std::string& key);
  // The line of a removed setting, else the section's.
  int LineOf(const std::string& key) const {
    const auto found = lines_.find(key);
    return found != lines_.end() ? found->second : line_;
  }
  void RefuseTheRest();

 private:
  std::string Where(const std::string& key) const { return Cat("[", name_, "] ", key, ": "); }
  std::optional<Setting> TakeOut(const std::string& key);

  const std::string name_;
  const int line_;
  LineFaults& faults_;
  std::map<std::string, Setting> settings_;
  std::map<std::string, int> lines_;  // of the settings taken out
};

std::optional<Setting> Section::TakeOut(const std::string& key) {
  const auto found = settings_.find(key);
  if (found == settings_.end()) return std::nullopt;
  Setting setting = std::move(found->second);
  settings_.erase(found);
  lines_[key] = setting.line;
  if (setting.value.empty()) Fault(setting.line, key, "has no value");
  return setting;
}

std::string Section::Text(const std::string& key, std::optional<std::string> otherwise) {
  if (auto setting = TakeOut(key)) return std::move(setting->value);
  if (!otherwise) Fault(line_, key, "missing");
  return otherwise.value_or("");
}

int64_t Section::Number(const std::string& key, int64_t otherwise, int64_t least, int64_t most) {
  const auto setting = TakeOut(key);
  if (!setting || setting->value.empty()) return otherwise;
  if (const auto number = ParseNumberWithin(setting->value, least, most)) return *number;
  Fault(setting->line, key,
        Cat(Quoted(setting->value), " is not a number from ", least, " to ", most));
  return otherwise;
}

Endpoint Section::Address(const std::string& key) {
  const std::vector<Endpoint> addresses = Addresses(key);
  if (addresses.size() > 1) Fault(LineOf(key), key, "this kind of store has one address");
  return addresses.empty() ? Endpoint() : addresses.front();
}

std::vector<Endpoint> Section::Addresses(const std::string& key) {
  std::vector<Endpoint> addresses;
  const std::string text = Text(key, std::nullopt);
  if (text.empty()) return addresses;
  for (const std::string_view part : CommaParts(text)) {
    Result<Endpoint> address = Endpoint::Parse(part);
    if (address.ok() && address->port == 0) address = Invalid("needs a port");
    if (!address.ok()) Fault(LineOf(key), key, address.status().message());
    addresses.push_back(address.value_or({}));
  }
  return addresses;
}

void Section::RefuseTheRest() {
  for (const auto& [key, setting] : settings_) {
    Fault(setting.line, key, "no such setting of this kind of store");
  }
}

// --- the kinds of stores ------------------------------------------------------------------------

Milliseconds Timeout(Section& section, Milliseconds otherwise) {
  return Milliseconds(section.Number("timeout_ms", otherwise.count(), 100, 60'000));
}

// `otherwise`: the mode if these settings are absent; `key_apart`: the key has its own file.
StoreTls ReadTls(Section& section, TlsMode otherwise, bool key_apart = true) {
  StoreTls tls;
  tls.ca_file = section.Text("tls_ca", "");
  tls.cert_file = section.Text("tls_cert", "");
  tls.key_file = key_apart ? section.Text("tls_key", "") : tls.cert_file;
  const TlsMode unset = tls.ca_file.empty() ? otherwise : TlsMode::kVerifyFull;
  const std::string word = section.Text("tls", std::string(TlsModeWord(unset)));
  const bool prefers = otherwise == TlsMode::kPrefer;
  const auto fault = [&](const std::string& key, const std::string& what) {
    section.Fault(section.LineOf(key), key, what);
  };
  const std::optional<TlsMode> mode = ParseTlsMode(word);
  if (!mode || (*mode == TlsMode::kPrefer && !prefers)) {
    fault("tls",
          Cat("must be off, ", prefers ? "prefer, " : "", "require, verify-ca or verify-full"));
    return tls;
  }
  tls.mode = *mode;
  if (tls.verifies() && tls.ca_file.empty()) {
    fault("tls", word + " requires tls_ca; Debian's file of public authorities is " +
                     "/etc/ssl/certs/ca-certificates.crt");
  }
  if (!tls.verifies() && !tls.ca_file.empty()) {
    fault("tls_ca", "is not used with tls = " + word + "; set verify-ca or verify-full");
  }
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    fault(tls.cert_file.empty() ? "tls_key" : "tls_cert", "set both tls_cert and tls_key");
  } else if (!tls.cert_file.empty() && tls.mode < TlsMode::kRequire) {
    fault("tls_cert", "is not used with tls = " + word + "; set require, verify-ca or verify-full");
  }
  return tls;
}

TableDefinition ReadTable(Section& section, SqlDialect dialect) {
  DatabasePlace place;
  std::vector<Endpoint> addresses = section.Addresses("address");
  if (!addresses.empty()) place.address = addresses.front();
  place.database = section.Text("database", std::nullopt);
  place.credentials_file = section.Text("credentials_file", std::nullopt);
  place.tls = ReadTls(section, TlsMode::kPrefer);
  place.time_limit = Timeout(section, place.time_limit);
  const std::string word = section.Text("form", "firn");
  const std::optional<TableForm> form = ParseTableForm(word);
  if (!form) section.Fault(section.LineOf("form"), "form", "must be firn, leaf or tinyid");
  const std::string name = section.Text("table", "firn_tag");
  const auto table = RangeTable::Make(dialect, form.value_or(TableForm::kFirn), name);
  if (!table.ok()) section.Fault(section.LineOf("table"), "table", table.status().message());
  return {std::move(place), std::move(addresses),
          table.value_or(*RangeTable::Make(dialect, TableForm::kFirn, "firn_tag"))};
}

RedisDefinition ReadRedis(Section& section) {
  RedisPlace place;
  if (section.Has("sentinels")) {
    place.sentinels = section.Addresses("sentinels");
    place.master = section.Text("master", std::nullopt);
  } else {
    place.address = section.Address("address");
  }
  place.database = static_cast<int>(section.Number("database", 0, 0, 1'000'000));
  place.credentials_file = section.Text("credentials_file", "");
  place.tls = ReadTls(section, TlsMode::kOff);
  place.time_limit = Timeout(section, place.time_limit);
  return {std::move(place), section.Text("prefix", "firn:")};
}

MongoDefinition ReadMongo(Section& section) {
  MongoPlace place;
  place.addresses = section.Addresses("address");
  place.replica_set = section.Text("replica_set", "");
  if (place.addresses.size() > 1 && place.replica_set.empty()) {
    section.Fault(section.LineOf("address"), "address", "several addresses require replica_set");
  }
  place.database = section.Text("database", std::nullopt);
  place.collection = section.Text("collection", place.collection);
  place.credentials_file = section.Text("credentials_file", "");
  place.auth_database = section.Text("auth_database", place.auth_database);
  place.tls = ReadTls(section, TlsMode::kOff, false);
  place.time_limit = Timeout(section, place.time_limit);
  return {std::move(place)};
}

TieredDefinition ReadTiered(Section& section) {
  std::string front = section.Text("front", std::nullopt);
  return {std::move(front), section.Text("durable", "registry")};
}

class Parser {
 public:
  void Line(std::string_view text);
  void Fault(std::string what) { faults_.Add(line_, std::move(what)); }
  StoresIni Take();

 private:
  void Open(const Result<std::string>& name);
  void Set(const IniLine& line);
  void Close();
  void CheckTiers(const StoreDefinition& store);

  int line_ = 0;
  bool any_section_ = false;
  LineFaults faults_;
  std::optional<Section> section_;
  std::map<std::string, int> lines_;  // of sections, by name
  StoresIni ini_;
};

void Parser::Line(std::string_view text) {
  ++line_;
  const IniLine line = ReadIniLine(text);
  switch (line.kind) {
    case IniLine::Kind::kNothing:
      return;
    case IniLine::Kind::kNeither:
      return Fault("neither [store], nor key = value, nor a comment");
    case IniLine::Kind::kSection:
      Close();
      return Open(line.text);
    case IniLine::Kind::kSetting:
      return Set(line);
  }
}

void Parser::Open(const Result<std::string>& name) {
  any_section_ = true;
  if (lines_.size() == kStoresMax) return Fault(Cat("more than ", kStoresMax, " stores"));
  if (!name.ok()) return Fault(name.status().message());
  const std::string& word = name.value();
  if (!IsTagWord(word)) {
    return Fault(Quoted(word) +
                 " is not a store name: use a lower-case letter, then lower-case letters, "
                 "digits, - or _");
  }
  if (ReservedNames().contains(word)) return Fault("[" + word + "] is reserved by Firn");
  const auto [first, fresh] = lines_.emplace(word, line_);
  if (!fresh) {
    Fault(Cat("[", word, "] is defined twice, first at line ", first->second));
  }
  section_.emplace(word, line_, faults_);
}

void Parser::Set(const IniLine& line) {
  if (!section_) {
    if (!any_section_) Fault("a setting before the first [store]");
    return;  // its section's name was a fault
  }
  if (!IsPrintableUtf8(line.key)) return Fault("a key that is not printable UTF-8");
  if (!line.text.ok()) return section_->Fault(line_, line.key, line.text.status().message());
  const std::string& value = line.text.value();
  if (!IsPrintableUtf8(value)) return section_->Fault(line_, line.key, "is not printable UTF-8");
  section_->Add(line.key, value, line_);
}

void Parser::Close() {
  if (!section_) return;
  const std::string kind = section_->Text("kind", std::nullopt);
  const std::string& name = section_->name();
  if (kind == "mysql") {
    ini_.stores.push_back({name, ReadTable(*section_, SqlDialect::kMysql)});
  } else if (kind == "postgres") {
    ini_.stores.push_back({name, ReadTable(*section_, SqlDialect::kPostgres)});
  } else if (kind == "redis") {
    ini_.stores.push_back({name, ReadRedis(*section_)});
  } else if (kind == "mongo") {
    ini_.stores.push_back({name, ReadMongo(*section_)});
  } else if (kind == "tiered") {
    ini_.stores.push_back({name, ReadTiered(*section_)});
  } else if (!kind.empty()) {
    section_->Fault(section_->LineOf("kind"), "kind",
                    "must be mysql, postgres, mongo, redis or tiered");
  }
  if (!kind.empty()) section_->RefuseTheRest();
  section_.reset();
}

void Parser::CheckTiers(const StoreDefinition& store) {
  const auto* const tiered = std::get_if<TieredDefinition>(&store.what);
  if (tiered == nullptr) return;
  const auto fault = [&](const std::string& what) {
    faults_.Add(lines_[store.name], "[" + store.name + "] " + what);
  };
  const StoreDefinition* const front = ini_.Find(tiered->front);
  if (!tiered->front.empty() &&
      (front == nullptr || !std::holds_alternative<RedisDefinition>(front->what))) {
    fault("front: there is no store " + Quoted(tiered->front) + " of kind redis");
  }
  const StoreDefinition* const durable = ini_.Find(tiered->durable);
  const bool is_durable =
      durable != nullptr && (std::holds_alternative<TableDefinition>(durable->what) ||
                             std::holds_alternative<MongoDefinition>(durable->what));
  if (tiered->durable != "registry" && !is_durable) {
    fault("durable: there is no store " + Quoted(tiered->durable) +
          " of kind mysql, postgres or mongo");
  }
}

StoresIni Parser::Take() {
  Close();
  for (const StoreDefinition& store : ini_.stores) CheckTiers(store);
  ini_.faults = std::move(faults_).Take();
  return std::move(ini_);
}

}  // namespace

const StoreDefinition* StoresIni::Find(std::string_view name) const {
  const auto found = std::find_if(stores.begin(), stores.end(),
                                  [&](const StoreDefinition& store) { return store.name == name; });
  return found == stores.end() ? nullptr : &*found;
}

StoresIni ParseStoresIni(std::string_view text) {
  if (text.size() > kStoresIniBytesMax) {
    return {{}, {{1, Cat("the file is larger than ", kStoresIniBytesMax, " bytes")}}};
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Parser parser;
  while (!text.empty()) parser.Line(TakeIniLine(text));
  return parser.Take();
}

}  // namespace firn
