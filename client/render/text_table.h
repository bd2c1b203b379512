// client/render/text_table.h - columns that are as wide as their widest cell.
#ifndef CLIENT_RENDER_TEXT_TABLE_H_
#define CLIENT_RENDER_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace perfd::client {

class TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;  // numbers
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells are empty, surplus cells are dropped; control characters are cleaned.
  void Add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // Every line indented by two spaces and without trailing blanks.
  std::string Render() const;

 private:
  std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace perfd::client

#endif  // CLIENT_RENDER_TEXT_TABLE_H_
