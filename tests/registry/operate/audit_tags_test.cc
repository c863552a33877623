#include <gmock/gmock.h>

#include "common/tag/obfuscated_end.h"
#include "registry/cluster/tag_node.h"
#include "tests/registry/operate/audit_fixture.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AuditTagsTest : public AuditTest {};

TEST_F(AuditTagsTest, NotesAnObfuscatedTagWhoseIdsOutgrowItsWidthWithinTenYears) {
  TagDefinition tag{.name = "order", .strategy = "snowflake", .plugins = {"obfuscate"}};
  tag.obfuscate_width = 18;
  tag.obfuscate_key = "k1";
  tag.obfuscate_check = "c6a13b";
  const std::string node = *WriteTagNode({.tag = tag});
  Put(std::string(kTagsPath), "");
  Put(TagPath("order"), node);
  const Audit audit = Read();
  EXPECT_THAT(audit.Faults(), IsEmpty());
  EXPECT_THAT(audit.Notes(), ElementsAre(HasSubstr("from 2031-07-22")));
  const WallMs end = ObfuscatedEnd(tag, Layout::Firn()).value_or(WallMs());
  const Audit late = *ReadAudit(registry_, end - std::chrono::days(100));
  EXPECT_THAT(late.Faults(), ElementsAre(HasSubstr("from 2031-07-22")));
}

TEST_F(AuditTagsTest, FindsATagWithoutNumbersAndOneNearItsEnd) {
  TagDefinition tag{.name = "order", .strategy = "segment", .plugins = {"obfuscate"}};
  tag.obfuscate_width = 8;
  tag.obfuscate_key = "k1";
  tag.obfuscate_check = "c6a13b";
  Put(std::string(kTagsPath), "");
  for (const auto& [high, urgency] : {std::pair(int64_t{99'000'000}, Urgency::kSoon),
                                      std::pair(int64_t{200'001'001}, Urgency::kRefused)}) {
    tag.high = high;
    Put(TagPath("order"), *WriteTagNode({.tag = tag}));
    const Audit audit = Read();
    ASSERT_EQ(audit.findings.size(), 1u) << high;
    EXPECT_EQ(audit.findings.front().urgency, urgency) << high;
    EXPECT_THAT(audit.findings.front().fix, HasSubstr("larger obfuscate.width"));
  }
}

}  // namespace
}  // namespace firn
