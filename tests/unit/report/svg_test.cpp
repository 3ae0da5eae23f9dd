// SPDX-License-Identifier: Apache-2.0
// Text made fit for XML, whatever it holds.
#include "report/svg.h"

#include <gtest/gtest.h>

namespace gpuwatch::report {
namespace {

std::string xml(std::string_view bytes, std::size_t columns = 1000) {
  std::string out;
  append_xml(out, bytes, columns);
  return out;
}

TEST(Svg, MarkupBecomesEntities) {
  EXPECT_EQ(xml("<a href=\"x\">'&amp;"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;amp;");
}

TEST(Svg, ControlBytesBrokenUtf8AndNonCharactersAreGone) {
  EXPECT_EQ(xml(std::string_view("a\0b\x1b\n\xff", 6)), "a\\x00b\\x1b\\x0a\\xff");
  EXPECT_EQ(xml("\xef\xbf\xbe"), "\xef\xbf\xbd");
  EXPECT_EQ(xml("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // turns the reading direction
}

TEST(Svg, LongTextEndsWithAnEllipsisAndIsNeverCutInsideACharacter) {
  EXPECT_EQ(xml("abcdef", 6), "abcdef");
  EXPECT_EQ(xml("abcdefg", 6), "abcde\xe2\x80\xa6");
  EXPECT_EQ(xml("<<<<", 3), "&lt;&lt;\xe2\x80\xa6");
  EXPECT_EQ(xml("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f", 3), "\xc3\xa4\xc3\xb6\xe2\x80\xa6");
}

TEST(Svg, CoordinatesHaveOneDecimalAndNoExponent) {
  std::string out;
  for (const double value : {0.0, 12.34, -3.0, 1e9, 99.96}) {
    append_coordinate(out, value);
    out += ' ';
  }
  EXPECT_EQ(out, "0 12.3 -3 10000000 100 ");
}

}  // namespace
}  // namespace gpuwatch::report
