#include "client/render/text_table.h"

#include <algorithm>
#include <utility>

#include "client/render/text_style.h"

namespace perfd::client {

void TextTable::Add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = Clean(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::Line(const std::vector<std::string>& cells,
                            const std::vector<size_t>& widths) const {
  std::string line = " ";
  for (size_t i = 0; i < cells.size(); ++i) {
    line += " ";
    line += columns_[i].right ? PadLeft(cells[i], widths[i]) : PadRight(cells[i], widths[i]);
    line += " ";
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string TextTable::Render() const {
  std::vector<size_t> widths;
  std::vector<std::string> titles;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(Columns(column.title));
  }
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  std::string text = Line(titles, widths);
  for (const auto& row : rows_) text += Line(row, widths);
  return text;
}

}  // namespace perfd::client
