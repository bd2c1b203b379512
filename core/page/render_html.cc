#include "core/page/render_html.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/json/report_json.h"
#include "core/page/page_cut.h"
#include "core/page/page_template.h"

namespace perfd {
namespace {

using Json = nlohmann::ordered_json;

Json LeftOutToJson(const LeftOut& left_out) {
  return {{"rows", left_out.rows},
          {"ranks", left_out.ranks},
          {"lines of ranks and threads", left_out.lines},
          {"call paths", left_out.stacks},
          {"notices", left_out.notices},
          {"instructions", left_out.instructions}};
}

}  // namespace

std::string JsonForScript(const Json& json) {
  constexpr bool kOnlyAscii = true;  // U+2028 and all other letters beyond ASCII as \uXXXX
  // The three letters occur nowhere in JSON but within strings, where \uXXXX means the same.
  return absl::StrReplaceAll(json.dump(-1, ' ', kOnlyAscii, Json::error_handler_t::replace),
                             {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

std::string RenderHtml(const Report& report) {
  const PageReport cut = CutForPage(report);
  Json json = ReportToJson(cut.report);
  for (size_t i = 0; i < cut.stack_seconds.size(); ++i)
    json["stacks"][i]["seconds"] = cut.stack_seconds[i];  // of the whole report
  if (cut.left_out != LeftOut{}) json["left_out"] = LeftOutToJson(cut.left_out);
  const PageTemplate page = EmbeddedPage();
  return absl::StrCat(page.before, JsonForScript(json), page.after);
}

}  // namespace perfd
