-- Breaks text into lines of at most `width` columns, between words where it can.
local M = {}

function M.wrap(text, width)
  local lines, line = {}, ""
  for word in text:gmatch("%S+") do
    while #word > width do  -- a word longer than a line is cut
      if line ~= "" then
        lines[#lines + 1], line = line, ""
      end
      lines[#lines + 1], word = word:sub(1, width), word:sub(width + 1)
    end
    if line == "" then
      line = word
    elseif #line + #word <= width then
      line = line .. " " .. word
    else
      lines[#lines + 1], line = line, word
    end
  end
  if line ~= "" then
    lines[#lines + 1] = line
  end
  return lines
end

return M
