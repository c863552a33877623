#include "server/issue/catalogue.h"

#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/issue/plugin_rig.h"

namespace firn {
namespace {

using testing::HasSubstr;

class CatalogueTest : public testing::Test {
 protected:
  CatalogueTest() {
    EXPECT_EQ(catalogue_.AddStrategy("counting", [this](const TagDefinition&) { return shared_; }),
              Status());
    EXPECT_EQ(
        catalogue_.AddPlugin("spy",
                             [this](const TagDefinition& tag) -> Result<std::shared_ptr<Plugin>> {
                               return std::shared_ptr<Plugin>(
                                   std::make_shared<ScriptedPlugin>(tag.name, 0, &log_));
                             }),
        Status());
  }
  static TagDefinition Tag(std::string strategy, std::vector<std::string> plugins = {}) {
    TagDefinition tag;
    tag.name = "order";
    tag.strategy = std::move(strategy);
    tag.plugins = std::move(plugins);
    return tag;
  }

  std::vector<std::string> log_;
  std::shared_ptr<Strategy> shared_ = std::make_shared<CountingStrategy>();
  Catalogue catalogue_;
};

TEST_F(CatalogueTest, BindsATagToItsStrategyAndPlugins) {
  const Result<TagBinding> binding = catalogue_.Bind(Tag("counting", {"spy"}));
  ASSERT_TRUE(binding.ok()) << binding.status();
  EXPECT_EQ(binding->name, "order");
  EXPECT_EQ(binding->strategy, shared_);
  ASSERT_EQ(binding->plugins.size(), 1u);
  EXPECT_EQ(binding->plugins[0]->name(), "order") << "the maker saw the tag";
}

TEST_F(CatalogueTest, TextsShowFieldsByTheClustersLayout) {
  Catalogue catalogue(Layout::Twitter());
  ASSERT_TRUE(
      catalogue.AddStrategy("snowflake", [this](const TagDefinition&) { return shared_; }).ok());
  TagDefinition tag = Tag("snowflake");
  tag.text = "{id:fields}";
  const Result<TagBinding> binding = catalogue.Bind(tag);
  ASSERT_TRUE(binding.ok()) << binding.status();
  EXPECT_EQ(binding->text->Format(1169786042799259000, WallMs(0)), "20190906013500834-0039-3448");
}

TEST_F(CatalogueTest, RefusesATagWhoseStrategyItLacks) {
  const Result<TagBinding> binding = catalogue_.Bind(Tag("segment"));
  EXPECT_EQ(binding.code(), Code::kNotFound);
  EXPECT_THAT(binding.status().message(),
              HasSubstr("this server has no strategy 'segment', only: counting"));
}

TEST_F(CatalogueTest, ListsItsStrategiesAndPlugins) {
  EXPECT_EQ(catalogue_.StrategyNames(), std::set<std::string>{"counting"});
  EXPECT_EQ(catalogue_.PluginNames(), std::set<std::string>{"spy"});
}

TEST_F(CatalogueTest, RefusesATagWhosePluginItLacks) {
  EXPECT_EQ(catalogue_.Bind(Tag("counting", {"spy", "limit"})).code(), Code::kNotFound);
}

TEST_F(CatalogueTest, NamesTheTagThatAFactoryRefused) {
  ASSERT_EQ(catalogue_.AddPlugin("sad",
                                 [](const TagDefinition&) -> Result<std::shared_ptr<Plugin>> {
                                   return Invalid("no key");
                                 }),
            Status());
  EXPECT_EQ(catalogue_.Bind(Tag("counting", {"sad"})).status(), Invalid("no key"));
}

TEST_F(CatalogueTest, AnExceptionOfAFactoryRefusesOnlyItsTag) {
  const auto said = [this](std::string name, Catalogue::PluginMaker maker) {
    EXPECT_EQ(catalogue_.AddPlugin(name, std::move(maker)), Status());
    return catalogue_.Bind(Tag("counting", {name})).status();
  };
  using Made = Result<std::shared_ptr<Plugin>>;
  EXPECT_EQ(said("angry", [](const TagDefinition&) -> Made { throw std::runtime_error("oops"); }),
            Internal("making the plugin 'angry' threw: oops"));
  EXPECT_EQ(said("odd", [](const TagDefinition&) -> Made { throw 1; }),
            Internal("making the plugin 'odd' threw"));
  EXPECT_EQ(said("lazy", [](const TagDefinition&) -> Made { return {nullptr}; }),
            Internal("the maker of the plugin 'lazy' returned null"));
}

TEST_F(CatalogueTest, RefusesToAddAPluginTwice) {
  const auto maker = [this](const TagDefinition&) { return shared_; };
  EXPECT_EQ(catalogue_.AddStrategy("counting", maker).code(), Code::kConflict);
}

}  // namespace
}  // namespace firn
