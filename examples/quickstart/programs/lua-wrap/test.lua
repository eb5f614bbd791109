local wrap = require("wrap").wrap

local rows = {
  {"a short line stays", "one two", 10, "one two"},
  {"a long line is broken between words", "one two three", 8, "one two|three"},
  {"a line may be exactly full", "one two", 7, "one two"},
  {"the space counts", "one two", 6, "one|two"},
  {"a long word is cut", "abcdefgh", 3, "abc|def|gh"},
  {"nothing stays nothing", "  ", 5, ""},
}

print("1.." .. #rows)
local failed = 0
for number, row in ipairs(rows) do
  local found = table.concat(wrap(row[2], row[3]), "|")
  local good = found == row[4]
  print((good and "ok " or "not ok ") .. number .. " - " .. row[1])
  if not good then
    print("# found " .. found)
    failed = failed + 1
  end
end
os.exit(failed == 0)
