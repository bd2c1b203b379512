// core/page/page_template.h - the page of a report without the report, put together by compose.cmake.
//
// Shape    the report's JSON goes between `before` and `after`, inside a script element that is data.
// Threads  thread-safe (constants).
#ifndef CORE_PAGE_PAGE_TEMPLATE_H_
#define CORE_PAGE_PAGE_TEMPLATE_H_

#include "absl/strings/string_view.h"

namespace perfd {

struct PageTemplate {
  absl::string_view before;
  absl::string_view after;
};

PageTemplate EmbeddedPage();

}  // namespace perfd

#endif  // CORE_PAGE_PAGE_TEMPLATE_H_
