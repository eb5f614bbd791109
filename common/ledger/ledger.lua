-- One atomic batch of budget operations (ARCHITECTURE section 5; DISTRIBUTED.md B3, B6).
-- The same rules as ledger.cc; a differential test holds the two together.
--
-- KEYS  1 head    hash: epoch, token, state ("building" or "open")
--       2 scopes  hash: scope index -> "cap spent reserved"
--       3 rows    hash: reservation id -> "state ask scopes[ more]", state one of
--                 p pending | d denied, more = "scope short_by" | s settled, more = actual | v voided
-- ARGV  epoch, token, then four per operation: kind, id, amount, scopes
--       r id ask 0,1,7 | s id actual - | v id - - | f id - -
-- Answers one string: "GONE", "FENCED epoch", or one line per operation:
--       g granted | d scope short_by | s charged overrun | u done; in capitals: replayed
--       n no such reservation | c conflict text | i invalid text
--
-- A script runs alone but is never rolled back: everything is read and judged first and written
-- last.  Numbers are doubles, exact for integers to 2^53; every sum below stays under that because
-- only differences of amounts inside one cap are formed.

local MAX = 9007199254740991
local format, match, concat = string.format, string.match, table.concat

local head = redis.call('HMGET', KEYS[1], 'epoch', 'token', 'state')
if not head[1] then return 'GONE' end
local mine, stored = tonumber(ARGV[1]), tonumber(head[1])
if mine < stored or (mine == stored and head[2] ~= ARGV[2]) then return 'FENCED ' .. head[1] end
if mine > stored or head[3] ~= 'open' then return 'GONE' end

-- The number of a canonical decimal, or nothing.
local amounts = {}
local function amount(text)
  local n = amounts[text]
  if n then return n end
  n = tonumber(text)
  if n and 0 <= n and n <= MAX and format('%.0f', n) == text then
    amounts[text] = n
    return n
  end
end

local function in_chunks(list, width, call)
  for from = 1, #list, width do call(unpack(list, from, math.min(from + width - 1, #list))) end
end

-- Rows of this batch, by id: as stored, then as they will be.  false: none.
local rows, ids = {}, {}
for i = 4, #ARGV, 4 do
  local id = ARGV[i]
  if rows[id] == nil then
    rows[id] = false
    ids[#ids + 1] = id
  end
end
local at = 0
in_chunks(ids, 1000, function(...)
  local found = redis.call('HMGET', KEYS[3], ...)
  for i = 1, #found do rows[ids[at + i]] = found[i] end
  at = at + #found
end)
local changed = {}
local function put(id, row)
  rows[id] = row
  changed[id] = true
end
local function fields(id, row)
  local state, ask, scopes, more = match(row, '^([pdsv]) (%d+) ([%d,]+) ?(.*)$')
  if not state then error('CORRUPT row of reservation ' .. id) end
  return state, ask, scopes, more
end

-- Envelopes touched by this batch, by index text: {cap, spent, reserved}.
local scopes, touched = {}, {}
local function scope(index)
  local s = scopes[index]
  if s == nil then
    local text = redis.call('HGET', KEYS[2], index)
    if not text then
      s = false
    else
      local cap, spent, reserved = match(text, '^(%d+) (%d+) (%d+)$')
      if not cap then error('CORRUPT scope ' .. index) end
      s = {tonumber(cap), tonumber(spent), tonumber(reserved)}
      touched[#touched + 1] = index
    end
    scopes[index] = s
  end
  return s
end

-- "0,1,7" as a list of its envelopes; the second result says what is wrong with it.
local lists = {}
local function list_of(text)
  local known = lists[text]
  if known then return known end
  local list, seen = {}, {}
  for index in string.gmatch(text, '[^,]+') do
    if #list == 8 then return nil, 'more than 8 scopes' end
    local s = scope(index)
    if not s then return nil, 'unknown scope' end
    if seen[index] then return nil, 'a scope stands twice' end
    seen[index] = true
    list[#list + 1] = {index, s}
  end
  if #list == 0 then return nil, 'no scope' end
  lists[text] = list
  return list
end

local function reserve(id, text, names)
  local ask = amount(text)
  if not ask then return 'i the ask is not between 0 and 2^53 - 1 micro-dollars' end
  local list, wrong = list_of(names)
  if not list then return 'i ' .. wrong end
  local row = rows[id]
  if row then
    local state, old_ask, old_names, more = fields(id, row)
    if old_ask ~= text or old_names ~= names then
      return 'c exists with another ask or other scopes'
    end
    if state == 'd' then return 'D ' .. more end
    return 'G'
  end
  for i = 1, #list do
    local s = list[i][2]
    local free = s[1] - s[2] - s[3]
    if free < ask then
      local why = list[i][1] .. ' ' .. format('%.0f', ask - free)
      put(id, 'd ' .. text .. ' ' .. names .. ' ' .. why)
      return 'd ' .. why
    end
  end
  for i = 1, #list do
    local s = list[i][2]
    s[3] = s[3] + ask
  end
  put(id, 'p ' .. text .. ' ' .. names)
  return 'g'
end

local function settle(id, text)
  local actual = amount(text)
  if not actual then return 'i the amount is not between 0 and 2^53 - 1 micro-dollars' end
  local row = rows[id]
  if not row then return 'n' end
  local state, ask_text, names, more = fields(id, row)
  if state == 'd' then return 'c was denied' end
  if state == 'v' then return 'c was voided' end
  if state == 's' and more ~= text then return 'c was settled with another amount' end
  local ask = tonumber(ask_text)
  local charged = math.min(actual, ask)
  local answer = format(' %.0f %.0f', charged, actual - charged)
  if state == 's' then return 'S' .. answer end
  local list, wrong = list_of(names)
  if not list then error('CORRUPT row of reservation ' .. id .. ': ' .. wrong) end
  for i = 1, #list do
    local s = list[i][2]
    s[2], s[3] = s[2] + charged, s[3] - ask
  end
  put(id, 's ' .. ask_text .. ' ' .. names .. ' ' .. text)
  return 's' .. answer
end

local function cancel(id)
  local row = rows[id]
  if not row then return 'n' end
  local state, ask_text, names = fields(id, row)
  if state == 'd' then return 'c was denied' end
  if state == 's' then return 'c was settled' end
  if state == 'v' then return 'u' end
  local list, wrong = list_of(names)
  if not list then error('CORRUPT row of reservation ' .. id .. ': ' .. wrong) end
  local ask = tonumber(ask_text)
  for i = 1, #list do
    local s = list[i][2]
    s[3] = s[3] - ask
  end
  put(id, 'v ' .. ask_text .. ' ' .. names)
  return 'u'
end

local function forget(id)
  local row = rows[id]
  if not row then return 'u' end
  if string.sub(row, 1, 1) == 'p' then return 'c is still pending' end
  put(id, false)
  return 'u'
end

local kinds = {r = reserve, s = settle, v = cancel, f = forget}
local out = {}
for i = 3, #ARGV, 4 do
  local act = kinds[ARGV[i]]
  out[#out + 1] = act and act(ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]) or 'i unknown operation'
end

-- Nothing was written so far.  HSET comes first: under maxmemory it is refused before any effect,
-- and after the first write a script is let to its end.
local sets, dels = {}, {}
for _, id in ipairs(ids) do
  if changed[id] then
    if rows[id] then
      sets[#sets + 1] = id
      sets[#sets + 1] = rows[id]
    else
      dels[#dels + 1] = id
    end
  end
end
local counters = {}
for _, index in ipairs(touched) do
  local s = scopes[index]
  if s[2] < 0 or s[3] < 0 or s[1] < s[2] + s[3] then error('CORRUPT scope ' .. index) end
  counters[#counters + 1] = index
  counters[#counters + 1] = format('%.0f %.0f %.0f', s[1], s[2], s[3])
end
in_chunks(sets, 2000, function(...) redis.call('HSET', KEYS[3], ...) end)
if #sets > 0 then
  in_chunks(counters, 2000, function(...) redis.call('HSET', KEYS[2], ...) end)
end
in_chunks(dels, 2000, function(...) redis.call('HDEL', KEYS[3], ...) end)
return concat(out, '\n')
