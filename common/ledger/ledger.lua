-- One atomic batch of budget operations (ARCHITECTURE section 5; DISTRIBUTED.md B3, B6).
-- The same rules as ledger.cc; a differential test holds the two together.
--
-- KEYS  1 head    hash: epoch, token, state ("building" or "open")
--       2 scopes  hash: scope index -> "cap spent reserved"
--       3 rows    hash: reservation id -> "state ask scopes[ more]", state one of
--                 p pending | d denied, more = "scope short_by" | s settled, more = actual | v voided
-- ARGV  epoch, token, batch: four MessagePack values one after the other, for n operations
--       kinds    a string of n letters: r reserve | s settle | v void | f forget
--       ids      n strings
--       amounts  n doubles: of r the ask, of s the actual, else anything
--       scopes   n strings: of r "0,1,7", else anything
-- Answers one string: "GONE", "FENCED epoch", or one line per operation:
--       g granted | d scope short_by | s [overrun] | u done; in capitals: replayed
--       n no such reservation | c conflict text | i invalid text
--
-- A script runs alone but is never rolled back: everything is read and judged first and written
-- last.  Numbers are doubles, exact for integers to 2^53; every sum below stays under that because
-- only differences of amounts inside one cap are formed.  Redis' time is Lua's time: what a batch
-- needs is read by one call per key and written by one, and no text is parsed or made twice.

local MAX = 9007199254740991
local format, match, byte = string.format, string.match, string.byte
if format('%d', MAX) ~= '9007199254740991' then error('this Redis has no integers of 64 bits') end

local head = redis.call('HMGET', KEYS[1], 'epoch', 'token', 'state')
if not head[1] then return 'GONE' end
local mine, stored = tonumber(ARGV[1]), tonumber(head[1])
if mine < stored or (mine == stored and head[2] ~= ARGV[2]) then return 'FENCED ' .. head[1] end
if mine > stored or head[3] ~= 'open' then return 'GONE' end

local kinds, ids, amounts, paths = cmsgpack.unpack(ARGV[3])
if #kinds ~= #ids then error('a batch of ' .. #kinds .. ' kinds and ' .. #ids .. ' ids') end
local RESERVE, SETTLE, VOID, FORGET, PENDING = byte('rsvfp', 1, 5)
local kind = {}
local function in_chunks(count, call)
  for from = 1, count, 1000 do call(from, math.min(from + 999, count)) end
end
in_chunks(#ids, function(from, to)
  local part = {byte(kinds, from, to)}
  for i = 1, #part do kind[from + i - 1] = part[i] end
end)

-- Rows of this batch, by id: as stored, then as they will be.  false: none.
local rows = {}
in_chunks(#ids, function(from, to)
  local found = redis.call('HMGET', KEYS[3], unpack(ids, from, to))
  for i = 1, #found do
    local id = ids[from + i - 1]
    if type(id) ~= 'string' then error('an id that is no text') end
    rows[id] = found[i]
  end
end)
local changed, order = {}, {}
local function put(id, row)
  rows[id] = row
  if not changed[id] then
    changed[id] = true
    order[#order + 1] = id
  end
end
local function corrupt(id) error('CORRUPT row of reservation ' .. id) end
local function fields(id, row)
  local state, ask, names, more = match(row, '^([pdsv]) (%d+) ([%d,]+) ?(.*)$')
  if not state then corrupt(id) end
  return state, ask, names, more
end

-- Envelopes touched by this batch, by index text: {cap, spent, reserved, index, cap as text}.
-- Lists of them by their text, "0,1,7"; or what is wrong with such a list.
local scopes, touched, lists = {}, {}, {}
local function split(names)
  if lists[names] then return end
  local list = {}
  for index in string.gmatch(names, '[^,]+') do
    list[#list + 1] = index
    if scopes[index] == nil then
      scopes[index] = false
      touched[#touched + 1] = index
    end
  end
  lists[names] = list
end
-- What the pending rows of this batch hold: ask and scopes of operation i, while its row is row_of[i].
local row_of, ask_of, names_of = {}, {}, {}
for i = 1, #ids do
  local k = kind[i]
  if k == RESERVE then
    split(paths[i])
  elseif k ~= FORGET then
    local row = rows[ids[i]]
    if row and byte(row) == PENDING then
      local ask, names = match(row, '^p (%d+) ([%d,]+)$')
      if not ask then corrupt(ids[i]) end
      row_of[i], ask_of[i], names_of[i] = row, ask, names
      split(names)
    end
  end
end
in_chunks(#touched, function(from, to)
  local found = redis.call('HMGET', KEYS[2], unpack(touched, from, to))
  for i = 1, #found do
    local index, text = touched[from + i - 1], found[i]
    if text then
      local cap, spent, reserved = match(text, '^(%d+) (%d+) (%d+)$')
      if not cap then error('CORRUPT scope ' .. index) end
      scopes[index] = {tonumber(cap), tonumber(spent), tonumber(reserved), index, cap}
    end
  end
end)
local function resolve(list)
  if #list == 0 then return 'no scope' end
  if #list > 8 then return 'more than 8 scopes' end
  for i = 1, #list do
    local s = scopes[list[i]]
    if not s then return 'unknown scope' end
    for j = 1, i - 1 do
      if list[j] == s then return 'a scope stands twice' end
    end
    list[i] = s
  end
  return list
end
for names, list in pairs(lists) do lists[names] = resolve(list) end

local function is_amount(n) return 0 <= n and n <= MAX and n % 1 == 0 end

local function reserve(id, ask, names)
  if not is_amount(ask) then return 'i the ask is not between 0 and 2^53 - 1 micro-dollars' end
  local list = lists[names]
  if type(list) == 'string' then return 'i ' .. list end
  local text = format('%d', ask)
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
    local s = list[i]
    local free = s[1] - s[2] - s[3]
    if free < ask then
      local why = s[4] .. format(' %d', ask - free)
      put(id, 'd ' .. text .. ' ' .. names .. ' ' .. why)
      return 'd ' .. why
    end
  end
  for i = 1, #list do
    local s = list[i]
    s[3] = s[3] + ask
  end
  put(id, 'p ' .. text .. ' ' .. names)
  return 'g'
end

local function list_of(id, names)
  local list = lists[names]
  if type(list) ~= 'table' then error('CORRUPT row of reservation ' .. id .. ': ' .. (list or names)) end
  return list
end

local function settle(id, actual, i)
  if not is_amount(actual) then return 'i the amount is not between 0 and 2^53 - 1 micro-dollars' end
  local row = rows[id]
  if not row then return 'n' end
  local state, ask_text, names, more = 'p', ask_of[i], names_of[i], nil
  if row ~= row_of[i] then state, ask_text, names, more = fields(id, row) end
  if state == 'd' then return 'c was denied' end
  if state == 'v' then return 'c was voided' end
  local text = format('%d', actual)
  if state == 's' and more ~= text then return 'c was settled with another amount' end
  local ask, charged, overrun = tonumber(ask_text), actual, ''
  if ask < actual then charged, overrun = ask, format(' %d', actual - ask) end
  if state == 's' then return 'S' .. overrun end
  local list = list_of(id, names)
  for k = 1, #list do
    local s = list[k]
    s[2], s[3] = s[2] + charged, s[3] - ask
  end
  put(id, 's ' .. ask_text .. ' ' .. names .. ' ' .. text)
  return 's' .. overrun
end

local function cancel(id, _, i)
  local row = rows[id]
  if not row then return 'n' end
  local state, ask_text, names = 'p', ask_of[i], names_of[i]
  if row ~= row_of[i] then state, ask_text, names = fields(id, row) end
  if state == 'd' then return 'c was denied' end
  if state == 's' then return 'c was settled' end
  if state == 'v' then return 'u' end
  local list, ask = list_of(id, names), tonumber(ask_text)
  for k = 1, #list do
    local s = list[k]
    s[3] = s[3] - ask
  end
  put(id, 'v ' .. ask_text .. ' ' .. names)
  return 'u'
end

local function forget(id)
  local row = rows[id]
  if not row then return 'u' end
  if byte(row) == PENDING then return 'c is still pending' end
  put(id, false)
  return 'u'
end

local out = {}
for i = 1, #ids do
  local k, id = kind[i], ids[i]
  if k == RESERVE then
    out[i] = reserve(id, amounts[i], paths[i])
  elseif k == SETTLE then
    out[i] = settle(id, amounts[i], i)
  elseif k == FORGET then
    out[i] = forget(id)
  elseif k == VOID then
    out[i] = cancel(id, nil, i)
  else
    out[i] = 'i unknown operation'
  end
end

-- Nothing was written so far.  HSET comes first: under maxmemory it is refused before any effect,
-- and after the first write a script is let to its end.
local sets, dels, counters = {}, {}, {}
for i = 1, #order do
  local id = order[i]
  if rows[id] then
    sets[#sets + 1] = id
    sets[#sets + 1] = rows[id]
  else
    dels[#dels + 1] = id
  end
end
if #order > 0 then
  for i = 1, #touched do
    local s = scopes[touched[i]]
    if s then
      if s[2] < 0 or s[3] < 0 or s[1] < s[2] + s[3] then error('CORRUPT scope ' .. s[4]) end
      counters[#counters + 1] = s[4]
      counters[#counters + 1] = format('%s %d %d', s[5], s[2], s[3])
    end
  end
end
local function write(command, key, list)
  in_chunks(#list, function(from, to) redis.call(command, key, unpack(list, from, to)) end)
end
write('HSET', KEYS[3], sets)
write('HSET', KEYS[2], counters)
write('HDEL', KEYS[3], dels)
return table.concat(out, '\n')
