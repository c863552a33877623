#include "server/plugins/built_in.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/issue/issuer.h"
#include "server/plugins/obfuscate.h"
#include "tests/support/temp_dir.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

// A strategy that issues 1, 2, 3, ..., or refuses if a test says so.
class Counter final : public Strategy {
 public:
  std::string_view name() const override { return "counter"; }
  Status Start() override { return {}; }
  bool TryOne(Method, int64_t* id) override { return *id = next++, true; }
  Verdict Issue(IssueCall& call) override {
    if (refuses) return call.Refuse({Reason::kStoreDown, "told so", 5, false});
    call.Add({std::exchange(next, next + call.missing()), call.missing(), 1});
    return Verdict::kIssued;
  }
  int64_t count_max() const override { return 1'000'000; }
  void Close() override {}
  void Stop() override {}

  int64_t next = 1;
  bool refuses = false;
};

class IgnoreRejections final : public RejectionHandler {
 public:
  void OnRefusal(const Request&, const Refusal&) override {}
};

class BuiltInTest : public testing::Test {
 protected:
  BuiltInTest() {
    std::ofstream(dir_ / "k1.key") << "000102030405060708090a0b0c0d0e0f\n";
    std::filesystem::permissions(dir_ / "k1.key", std::filesystem::perms::owner_read);
    EXPECT_EQ(history_->Start(), Status());
    EXPECT_TRUE(catalogue_
                    .AddStrategy("counter",
                                 [this](const TagDefinition&) -> Result<std::shared_ptr<Strategy>> {
                                   return std::shared_ptr<Strategy>(counter_);
                                 })
                    .ok());
    EXPECT_EQ(AddBuiltInPlugins({clock_, rates_, history_, keys_}, catalogue_), Status());
  }

  TagDefinition Full() const {
    return {.name = "order",
            .strategy = "counter",
            .plugins = {"obfuscate", "history", "limit", "rate"},
            .limit_per_second = 10,
            .obfuscate_width = 9,
            .obfuscate_key = "k1",
            .obfuscate_check = "c6a13b"};
  }

  void Serve(const TagDefinition& tag) {
    ASSERT_EQ(CheckTag(tag), Status());
    Result<TagBinding> binding = catalogue_.Bind(tag);
    ASSERT_TRUE(binding.ok()) << binding.status();
    ASSERT_EQ(issuer_.Set(*std::move(binding)), Status());
  }

  Verdict Ask(int64_t count, Form form = Form::kNumbers) {
    const Tag* tag = issuer_.Resolve("order");
    call_.Begin(*tag, {.tag = "order", .count = count, .form = form});
    return issuer_.Issue(call_);
  }

  TempDir dir_;
  VirtualClock clock_{WallMs(1'732'185'600'000)};
  std::shared_ptr<RateBoard> rates_ = std::make_shared<RateBoard>();
  std::shared_ptr<History> history_ =
      std::make_shared<History>(clock_, History::Options{.file = {.path = dir_ / "history"}});
  std::shared_ptr<KeyRing> keys_ = std::make_shared<KeyRing>(dir_.path());
  std::shared_ptr<Counter> counter_ = std::make_shared<Counter>();
  Catalogue catalogue_;
  IgnoreRejections ignore_;
  Issuer issuer_{ignore_};
  IssueCall call_;
};

TEST_F(BuiltInTest, ThePluginsRunInTheirOrder) {
  Serve(Full());
  ASSERT_EQ(Ask(4), Verdict::kIssued);
  const auto plugin = *ObfuscatePlugin::Make(*keys_->Cipher("k1"), "order", 9);
  int64_t expected = 1;
  call_.runs().ForEach([&](int64_t id) { EXPECT_EQ(*plugin->Reveal(id), expected++); });
  EXPECT_EQ(expected, 5);
  EXPECT_EQ(rates_->Read(clock_.Boot())[0].ids, 4);
  history_->Stop();
  std::ifstream file(dir_ / "history");
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "1732185600000 order 1 4 1 embedded -") << "the history has ids as issued";
}

TEST_F(BuiltInTest, ACallThatTheStrategyRefusesDoesNotUseTheLimit) {
  Serve(Full());
  counter_->refuses = true;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(Ask(10), Verdict::kRefused);
    EXPECT_EQ(call_.refusal().reason, Reason::kStoreDown);
  }
  counter_->refuses = false;
  EXPECT_EQ(Ask(10), Verdict::kIssued);
  EXPECT_EQ(Ask(1), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kRejected);
}

TEST_F(BuiltInTest, ARefusedFormUsesNoIdAndNoLimit) {
  Serve(Full());
  EXPECT_EQ(Ask(10, Form::kRuns), Verdict::kRefused);
  EXPECT_EQ(counter_->next, 1);
  EXPECT_EQ(Ask(10), Verdict::kIssued);
}

TEST_F(BuiltInTest, RefusesATagWhosePartsTheProgramLacks) {
  Catalogue bare;
  ASSERT_EQ(AddBuiltInPlugins({clock_, rates_}, bare), Status());
  ASSERT_TRUE(bare.AddStrategy("counter",
                               [this](const TagDefinition&) {
                                 return Result<std::shared_ptr<Strategy>>(counter_);
                               })
                  .ok());
  TagDefinition tag = Full();
  tag.plugins = {"history"};
  EXPECT_THAT(bare.Bind(tag).status().message(), HasSubstr("keeps no history"));
  tag.plugins = {"obfuscate"};
  EXPECT_THAT(bare.Bind(tag).status().message(), HasSubstr("has no keys"));
}

TEST_F(BuiltInTest, RefusesATagWhoseKeyIsMissingOrReadableByOthers) {
  TagDefinition tag = Full();
  tag.obfuscate_key = "k2";
  EXPECT_THAT(catalogue_.Bind(tag).status().message(), HasSubstr("k2.key"));
  std::ofstream(dir_ / "k2.key") << "000102030405060708090a0b0c0d0e0f\n";
  std::filesystem::permissions(dir_ / "k2.key", std::filesystem::perms(0644));
  EXPECT_THAT(catalogue_.Bind(tag).status().message(), HasSubstr("chmod 600"));
  std::filesystem::permissions(dir_ / "k2.key", std::filesystem::perms(0600));
  EXPECT_TRUE(catalogue_.Bind(tag).ok());
}

TEST_F(BuiltInTest, RefusesATagUnderAnotherKeyOfTheSameId) {
  TagDefinition tag = Full();
  tag.obfuscate_check = KeyCheck(**keys_->Cipher("k1"));
  EXPECT_EQ(tag.obfuscate_check, "c6a13b");
  EXPECT_TRUE(catalogue_.Bind(tag).ok());
  tag.obfuscate_check = "c6a13c";
  EXPECT_THAT(catalogue_.Bind(tag).status().message(), HasSubstr("its check is c6a13b"));
}

TEST_F(BuiltInTest, TagsWithOneKeyShareItsCipher) {
  EXPECT_EQ(*keys_->Cipher("k1"), *keys_->Cipher("k1"));
}

TEST_F(BuiltInTest, RefusesToAddAPluginTwice) {
  EXPECT_EQ(AddBuiltInPlugins({clock_, rates_}, catalogue_).code(), Code::kConflict);
}

TEST(ShowsIdsAsIssued, UnlessAPluginMayChangeThem) {
  TagDefinition tag{.name = "order", .strategy = "snowflake"};
  EXPECT_TRUE(ShowsIdsAsIssued(tag));
  tag.plugins = {"limit", "rate", "history"};
  EXPECT_TRUE(ShowsIdsAsIssued(tag));
  for (const char* plugin : {"obfuscate", "a-users-own"}) {
    tag.plugins = {"limit", plugin};
    EXPECT_FALSE(ShowsIdsAsIssued(tag)) << plugin;
  }
}

}  // namespace
}  // namespace firn
