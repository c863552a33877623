#include "server/flags/stores_ini.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

namespace firn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kGood = R"(# stores of the shop
[main]
kind = mysql
address = db.example:3306
database = ids
table = shop.leaf_alloc     ; as it is
form = leaf
credentials_file = "/etc/firn/main cred"
timeout_ms = 2500

[cache]
kind = redis
address = [::1]:6379
database = 3

[ledgers]
kind = postgres
address = pg.example:5432
database = ids
credentials_file = /etc/firn/pg.cred

[fast]
durable = main
front = cache
kind = tiered
)";

// A file that is installed with the server.
std::string Packaged(const std::string& name) {
  std::ifstream file(std::string(FIRN_SOURCE_DIR "/tools/package/") + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Faults(std::string_view text) {
  std::vector<std::string> faults;
  for (const LineFault& fault : ParseStoresIni(text).faults) {
    faults.push_back(std::to_string(fault.line) + ": " + fault.what);
  }
  return faults;
}

TEST(StoresIniTest, ReadsEveryKindOfStore) {
  const StoresIni ini = ParseStoresIni(kGood);
  ASSERT_EQ(ini.status(), Status());
  ASSERT_EQ(ini.stores.size(), 4u);
  const auto& main = std::get<TableDefinition>(ini.Find("main")->what);
  EXPECT_EQ(main.place.address.ToString(), "db.example:3306");
  EXPECT_EQ(main.place.database, "ids");
  EXPECT_EQ(main.place.credentials_file, "/etc/firn/main cred");
  EXPECT_EQ(main.place.time_limit, Milliseconds(2500));
  EXPECT_EQ(main.table.form(), TableForm::kLeaf);
  EXPECT_EQ(main.table.name(), "`shop`.`leaf_alloc`");
  const auto& ledgers = std::get<TableDefinition>(ini.Find("ledgers")->what);
  EXPECT_EQ(ledgers.table.dialect(), SqlDialect::kPostgres);
  EXPECT_EQ(ledgers.table.form(), TableForm::kFirn);
  EXPECT_EQ(ledgers.table.name(), "\"firn_tag\"");
  const auto& cache = std::get<RedisDefinition>(ini.Find("cache")->what);
  EXPECT_EQ(cache.place.address.ToString(), "[::1]:6379");
  EXPECT_EQ(cache.place.database, 3);
  EXPECT_EQ(cache.prefix, "firn:");
  EXPECT_EQ(cache.place.credentials_file, "");
  const auto& fast = std::get<TieredDefinition>(ini.Find("fast")->what);
  EXPECT_EQ(fast.front, "cache");
  EXPECT_EQ(fast.durable, "main");
  EXPECT_EQ(ini.Find("slow"), nullptr);
}

TEST(StoresIniTest, AnEmptyFileHasNoStoresAndNoFaults) {
  EXPECT_EQ(ParseStoresIni("").status(), Status());
  EXPECT_EQ(ParseStoresIni("\xEF\xBB\xBF# nothing\r\n\r\n").status(), Status());
}

TEST(StoresIniTest, ReportsEveryFaultWithItsLine) {
  EXPECT_THAT(
      Faults("kind = mysql\n"
             "[main]\n"
             "kind = mysql\n"
             "address = db.example\n"
             "table = a b\n"
             "form = oracle\n"
             "timeout_ms = soon\n"
             "prefix = x\n"
             "form = leaf\n"
             "nonsense\n"
             "[cache]\n"
             "kind = redis\n"
             "address =\n"
             "database = -1\n"
             "[registry]\n"
             "kind = mysql\n"
             "[Main]\n"
             "[fast]\n"
             "kind = tiered\n"
             "front = main\n"
             "durable = cache\n"
             "[cache]\n"
             "kind = oracle\n"
             "[last]\n"),
      ElementsAre("1: a setting before the first [store]", "2: [main] database: missing",
                  "2: [main] credentials_file: missing", HasSubstr("4: [main] address: "),
                  "5: [main] table: 'a b' is not a table name",
                  "6: [main] form: must be firn, leaf or tinyid",
                  "7: [main] timeout_ms: 'soon' is not a number from 100 to 60000",
                  "8: [main] prefix: no such setting of this kind of store",
                  "9: [main] form: set twice, first at line 6",
                  "10: neither [store], nor key = value, nor a comment",
                  "13: [cache] address: has no value",
                  "14: [cache] database: '-1' is not a number from 0 to 1000000",
                  "15: [registry] is reserved by Firn", HasSubstr("17: 'Main' is not a store name"),
                  "18: [fast] front: there is no store 'main' of kind redis",
                  "18: [fast] durable: there is no store 'cache' of kind mysql, "
                  "postgres or mongo",
                  "22: [cache] is defined twice, first at line 11",
                  "23: [cache] kind: must be mysql, postgres, mongo, redis or tiered",
                  "24: [last] kind: missing"));
}

TEST(StoresIniTest, ReadsTlsSettings) {
  const std::string base =
      "[a]\nkind = postgres\naddress = h:1\ndatabase = d\ncredentials_file = c\n";
  const auto tls = [&](const std::string& settings) {
    const StoresIni ini = ParseStoresIni(base + settings);
    EXPECT_EQ(ini.status(), Status());
    return std::get<TableDefinition>(ini.stores.at(0).what).place.tls;
  };
  EXPECT_EQ(tls("").mode, TlsMode::kPrefer);
  EXPECT_EQ(tls("tls = off\n").mode, TlsMode::kOff);
  EXPECT_EQ(tls("tls_ca = ca\n").mode, TlsMode::kVerifyFull);
  EXPECT_EQ(tls("tls = verify-ca\ntls_ca = ca\n").mode, TlsMode::kVerifyCa);
  const StoreTls own = tls("tls = require\ntls_cert = crt\ntls_key = key\n");
  EXPECT_EQ(own.mode, TlsMode::kRequire);
  EXPECT_EQ(own.cert_file, "crt");
  EXPECT_EQ(own.key_file, "key");
  EXPECT_THAT(Faults(base + "tls = on\n"),
              ElementsAre("6: [a] tls: must be off, prefer, require, verify-ca or verify-full"));
  EXPECT_THAT(Faults(base + "tls = verify-full\n"), ElementsAre(HasSubstr("requires tls_ca")));
  EXPECT_THAT(Faults(base + "tls = require\ntls_ca = ca\n"),
              ElementsAre(HasSubstr("7: [a] tls_ca: is not used with tls = require")));
  EXPECT_THAT(Faults(base + "tls = require\ntls_key = key\n"),
              ElementsAre("7: [a] tls_key: set both tls_cert and tls_key"));
  EXPECT_THAT(Faults(base + "tls_cert = crt\ntls_key = key\n"),
              ElementsAre(HasSubstr("6: [a] tls_cert: is not used with tls = prefer")));
}

TEST(StoresIniTest, SeveralAddressesAreForDatabasesThatReplicate) {
  const std::string table = "kind = mysql\ndatabase = d\ncredentials_file = c\n";
  const StoresIni ini = ParseStoresIni("[a]\n" + table + "address = a:1,b:2\n");
  ASSERT_EQ(ini.status(), Status());
  const auto& both = std::get<TableDefinition>(ini.stores[0].what).addresses;
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1].ToString(), "b:2");
  EXPECT_THAT(Faults("[a]\n" + table + "address = a:1,b\n"),
              ElementsAre(HasSubstr("5: [a] address: ")));
  EXPECT_THAT(Faults("[a]\nkind = redis\naddress = a:1,b:2\n"),
              ElementsAre("3: [a] address: this kind of store has one address"));
  EXPECT_THAT(Faults("[a]\nkind = mongo\ndatabase = d\naddress = a:1,b:2\n"),
              ElementsAre("4: [a] address: several addresses require replica_set"));
}

TEST(StoresIniTest, ReadsSentinelsInPlaceOfAnAddress) {
  const StoresIni ini = ParseStoresIni("[a]\nkind = redis\nsentinels = s:1,t:2\nmaster = ids\n");
  ASSERT_EQ(ini.status(), Status());
  const RedisPlace& place = std::get<RedisDefinition>(ini.stores[0].what).place;
  ASSERT_EQ(place.sentinels.size(), 2u);
  EXPECT_EQ(place.sentinels[1].ToString(), "t:2");
  EXPECT_EQ(place.master, "ids");
  EXPECT_THAT(Faults("[a]\nkind = redis\nsentinels = s:1\naddress = a:1\n"),
              ElementsAre("1: [a] master: missing",
                          "4: [a] address: no such setting of this kind of store"));
}

TEST(StoresIniTest, ATieredStoreUsesTheRegistryByDefault) {
  const StoresIni ini = ParseStoresIni(
      "[fast]\nkind = tiered\nfront = cache\n[cache]\nkind = redis\naddress = h:1\n");
  ASSERT_EQ(ini.status(), Status());
  EXPECT_EQ(std::get<TieredDefinition>(ini.Find("fast")->what).durable, "registry");
}

TEST(StoresIniTest, RefusesHostileTextWithBoundedWork) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "[a" + std::to_string(i) + "]\nkind = nothing\n";
  EXPECT_EQ(ParseStoresIni(many).faults.size(), LineFaults::kMost);
  EXPECT_EQ(ParseStoresIni(std::string(kStoresIniBytesMax + 1, '[')).faults.size(), 1u);
  EXPECT_THAT(Faults("[a]\nk\x01 = 1\n"), ElementsAre(HasSubstr("1: [a] kind"), HasSubstr("2: ")));
}

TEST(StoresIniTest, ThePackagesExampleIsValid) {
  const std::string text = Packaged("stores.ini");
  EXPECT_THAT(Faults(text), IsEmpty());
  const StoresIni ini = ParseStoresIni(text);
  ASSERT_EQ(ini.stores.size(), 5u);
  const auto& main = std::get<TableDefinition>(ini.stores[0].what);
  EXPECT_EQ(main.table.form(), TableForm::kLeaf);
  EXPECT_EQ(main.addresses.size(), 2u);
  EXPECT_EQ(main.place.tls.mode, TlsMode::kVerifyFull);
  EXPECT_EQ(std::get<TableDefinition>(ini.stores[1].what).table.dialect(), SqlDialect::kPostgres);
  const MongoPlace& mongo = std::get<MongoDefinition>(ini.stores[2].what).place;
  EXPECT_EQ(mongo.addresses.size(), 3u);
  EXPECT_EQ(mongo.replica_set, "rs0");
  EXPECT_EQ(mongo.collection, "firn_tag");
  EXPECT_EQ(std::get<RedisDefinition>(ini.stores[3].what).prefix, "firn:");
  EXPECT_EQ(std::get<TieredDefinition>(ini.stores[4].what).durable, "main");
}

TEST(StoresIniTest, ThePackagesTablesEqualFirnsOwn) {
  EXPECT_THAT(Packaged("firn_tag.sql"),
              testing::EndsWith("\n" + FirnTableSql(SqlDialect::kMysql, "firn_tag") + ";\n"));
  EXPECT_THAT(Packaged("firn_tag_postgres.sql"),
              testing::EndsWith("\n" + FirnTableSql(SqlDialect::kPostgres, "firn_tag") + ";\n"));
}

// MySQL 8 and MariaDB have few binary collations in common.
TEST(StoresIniTest, ThePackagesTableUsesACollationOfMysqlAndMariaDb) {
  const std::string sql = Packaged("firn_tag.sql");
  const size_t at = sql.find("COLLATE ");
  ASSERT_NE(at, sql.npos);
  EXPECT_THAT(sql.substr(at), testing::StartsWith("COLLATE utf8mb4_bin "));
  EXPECT_EQ(sql.find("COLLATE", at + 1), sql.npos);
}

}  // namespace
}  // namespace firn
