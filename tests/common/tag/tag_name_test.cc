#include "common/tag/tag_name.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/support/fuzz/random_tag.h"

namespace firn {
namespace {

TEST(TagNameTest, AcceptsCommonNames) {
  for (const std::string& name :
       {std::string("order"), std::string("a b"), std::string("it's \"it\""),
        std::string("a/b/../c"), std::string("Müller & Söhne"), std::string("."), std::string(".."),
        std::string("="), std::string(kTagNameMax, '/'), std::string(kTagNameMax, 'x')}) {
    EXPECT_EQ(CheckTagName(name), Status()) << name;
    const std::string form = EncodeTagName(name);
    EXPECT_EQ(*DecodeTagName(form), name);
    EXPECT_EQ(form.find_first_of("/ \"'"), form.npos) << form;
    EXPECT_NE(form.front(), '.');
  }
}

TEST(TagNameTest, RefusesNamesThatBreakFilesAndLogs) {
  for (const std::string& name :
       {std::string(), std::string(kTagNameMax + 1, 'x'), std::string(" a"), std::string("a "),
        std::string("a\nb"), std::string("a\0b", 3), std::string("\x7F"), std::string("\xC3")}) {
    EXPECT_EQ(CheckTagName(name).code(), Code::kInvalid) << testing::PrintToString(name);
  }
}

TEST(TagNameTest, PlainWordsStayReadableInPaths) {
  EXPECT_EQ(EncodeTagName("order-2.x_Y"), "order-2.x_Y");
  EXPECT_EQ(EncodeTagName("a/b c"), "a%2Fb+c");
  EXPECT_EQ(EncodeTagName(".hidden"), "%2Ehidden");
  EXPECT_EQ(EncodeTagName(".."), "%2E.");
  EXPECT_EQ(EncodeTagName("=a"), "%3Da");
}

TEST(TagNameTest, LongFormsAreBoundedToo) {
  for (size_t size = 1; size <= kTagNameMax; ++size) {
    for (const char c : {'/', 'x'}) {
      const std::string name(size, c);
      const std::string form = EncodeTagName(name);
      EXPECT_LE(form.size(), 173u);
      EXPECT_EQ(*DecodeTagName(form), name);
    }
  }
}

TEST(TagNameTest, NoTwoComponentsDecodeToOneTag) {
  const std::string slashes(100, '/');
  std::string by_url;
  for (size_t i = 0; i < slashes.size(); ++i) by_url += "%2F";
  for (const std::string& form : {std::string(),
                                  std::string("%"),
                                  std::string("%2"),
                                  std::string("%zz"),
                                  std::string("a%2fb"),
                                  std::string("%61"),
                                  std::string("a b"),
                                  std::string("a/b"),
                                  std::string("a%20b"),
                                  std::string(".a"),
                                  std::string(".."),
                                  std::string("=YQ"),
                                  std::string("=YR"),
                                  std::string("=YQ=="),
                                  std::string("="),
                                  std::string("=!"),
                                  std::string("%00"),
                                  std::string("%C3"),
                                  by_url,
                                  std::string(300, 'x'),
                                  std::string(1 << 20, '%')}) {
    EXPECT_EQ(DecodeTagName(form).code(), Code::kCorrupt) << form.substr(0, 40);
  }
}

TEST(TagNameTest, RandomNamesDecodeAndStayDistinct) {
  SeededEntropy entropy(20261121);
  std::set<std::string> names, forms;
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = RandomTagName(entropy);
    if (!CheckTagName(name).ok()) continue;
    const std::string form = EncodeTagName(name);
    ASSERT_EQ(*DecodeTagName(form), name) << form;
    names.insert(name);
    forms.insert(form);
  }
  EXPECT_EQ(names.size(), forms.size());
}

}  // namespace
}  // namespace firn
