#include "registry/state/hint.h"

#include <string>

#include <gtest/gtest.h>

namespace firn {
namespace {

const Hint kHint{5, {1, 1}, "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1", "firn"};

TEST(HintTest, ReadsBackAndIsReadable) {
  const std::string text = FormatHint(kHint);
  EXPECT_EQ(*ParseHint(text), kHint);
  EXPECT_NE(text.find("\nworker=1\n"), std::string::npos) << text;
}

// Byte for byte as 0.1 and every later version wrote it: an upgraded server finds its slot.
TEST(HintTest, TheFileFormatIsUnchanged) {
  const Hint hint{5, {2, 1}, kHint.uuid, "version:1=0 time:41 machine:10 sequence:12"};
  const std::string text =
      "# Firn: which machine id to try first. Holds no permission; safe to copy or delete.\n"
      "format=2\nmachineId=5\nworker=1\nrack=2\n"
      "cluster=0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1\n"
      "layout=version\\:1\\=0 time\\:41 machine\\:10 sequence\\:12\n";
  EXPECT_EQ(FormatHint(hint), text);
  EXPECT_EQ(*ParseHint(text), hint);
}

TEST(HintTest, KeepsTheEraTheRootVersionAndTheLastIdTime) {
  Hint hint = kHint;
  hint.era = Nonce(1, 2);
  hint.root_version = -7;
  hint.last = WallMs(1'795'582'362'773);
  const std::string text = FormatHint(hint);
  EXPECT_EQ(*ParseHint(text), hint);
  for (const char* key : {"\nera=", "\nrootVersion=", "\nlastMs="}) {
    std::string spoilt = text;
    spoilt.insert(spoilt.find(key) + std::string(key).size(), "x");
    EXPECT_EQ(ParseHint(spoilt).code(), Code::kCorrupt) << spoilt;
  }
}

TEST(HintTest, KeepsTheClaimAndTheVersionOfItsSlot) {
  Hint hint = kHint;
  hint.era = Nonce(1, 2);
  hint.claim = Nonce(3, 4);
  hint.version = -7;
  hint.created_zxid = 17;
  const std::string text = FormatHint(hint);
  EXPECT_EQ(*ParseHint(text), hint);
  for (const char* key : {"\nclaim=", "\nslotVersion=", "\nslotCreated="}) {
    std::string spoilt = text;
    spoilt.insert(spoilt.find(key) + std::string(key).size(), "x");
    EXPECT_EQ(ParseHint(spoilt).code(), Code::kCorrupt) << spoilt;
  }
  hint.claim = {};
  hint.version = hint.created_zxid = 0;
  EXPECT_EQ(*ParseHint(text.substr(0, text.find("claim="))), hint) << "of an earlier version";
}

TEST(HintTest, RefusesAnIncompleteHint) {
  const std::string good = FormatHint(kHint);
  for (const std::string& text :
       {std::string(), std::string("\n\n"), good + "rack=2\n", good.substr(0, good.size() / 2),
        std::string(1 << 20, 'x'),
        std::string("format=2\nmachineId=-1\nworker=1\nrack=1\ncluster=x\nlayout=firn\n")}) {
    EXPECT_EQ(ParseHint(text).code(), Code::kCorrupt) << text.substr(0, 100);
  }
}

TEST(HintTest, IgnoresKeysOfLaterVersions) {
  EXPECT_EQ(*ParseHint(FormatHint(kHint) + "colour=blue\n"), kHint);
}

TEST(HintTest, RefusesAnotherFormatByName) {
  std::string text = FormatHint(kHint);
  text.replace(text.find("format=2\n"), 9, "");
  const auto old = ParseHint(text);
  EXPECT_EQ(old.code(), Code::kInvalid);
  EXPECT_NE(old.status().message().find("Firn 0.1"), std::string::npos) << old.status();
  EXPECT_EQ(ParseHint("format=3\n" + text).code(), Code::kInvalid);
}

}  // namespace
}  // namespace firn
