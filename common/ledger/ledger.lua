-- One atomic batch of budget operations (MONEY 1-7; DISTRIBUTED B3, B6).
-- The same rules as ledger.cc; a differential test holds the two together.
--
-- KEYS  1 head    hash: epoch, token, state ("building" or "open")
--       2 scopes  hash: scope index -> "cap spent reserved"
--       3 rows    hash: reservation id -> "state ask scopes[ more]", state one of
--                 p pending | d denied, more = "scope short_by" | s settled, more = actual | v voided
--       4 shared  only of a campaign that shares an envelope: that one (shared.lua)
-- ARGV  epoch, token, batch, and with the fourth key the campaign's id and the envelope's index.
--       The batch: four MessagePack values one after the other, for n operations
--       kinds    a string of n letters: r reserve | s settle | v void | f forget
--       ids      n strings
--       amounts  n doubles: of r the ask, of s the actual, else anything
--       scopes   n strings: of r "0,1,7", else anything
-- Answers one string: "GONE", "FENCED epoch", or one line per operation:
--       g granted | d scope short_by | s [overrun] | u done; in capitals: replayed
--       n no such reservation | c conflict text | i invalid text
--       Of a shared envelope that the batch touches the first line is "o held returns": what others
--       take of it, and 1 where that may come back; a denial by it then ends with " 1" as well.
--
-- A script runs alone but is never rolled back: everything is read and judged first and written
-- last.  Numbers are doubles, exact for integers to 2^53; every sum below stays under that because
-- only differences of amounts inside one cap are formed.  Redis' time is Lua's time: what a batch
-- needs is read by one call per key and written by one, and no text is parsed or made twice.

local MAX = 9007199254740991
local format, match, gmatch, byte = string.format, string.match, string.gmatch, string.byte
if format('%d', MAX) ~= '9007199254740991' then error('this Redis has no integers of 64 bits') end

local head = redis.call('HMGET', KEYS[1], 'epoch', 'token', 'state')
if not head[1] then return 'GONE' end
local mine, stored = tonumber(ARGV[1]), tonumber(head[1])
if mine < stored or (mine == stored and head[2] ~= ARGV[2]) then return 'FENCED ' .. head[1] end
if mine > stored or head[3] ~= 'open' then return 'GONE' end

local kinds, ids, amounts, paths = cmsgpack.unpack(ARGV[3])
local n = #ids
if #kinds ~= n or 4000 < n then error('a batch of ' .. #kinds .. ' kinds and ' .. n .. ' ids') end
local kind = {byte(kinds, 1, n)}
local RESERVE, SETTLE, VOID, FORGET, PENDING = byte('rsvfp', 1, 5)

-- Rows of this batch, by id: as stored, then as they will be.  false: none.
local rows = {}
local stored_rows = redis.call('HMGET', KEYS[3], unpack(ids))
for i = 1, n do
  local id = ids[i]
  if type(id) ~= 'string' then error('an id that is no text') end
  rows[id] = stored_rows[i]
end
local function fields(id, row)
  local state, ask, names, more = match(row, '^([pdsv]) (%d+) ([%d,]+) ?(.*)$')
  if not state then error('CORRUPT row of reservation ' .. id) end
  return state, ask, names, more
end

-- Envelopes touched by this batch, by index text:
-- {cap, spent, reserved, index, cap as text, spent as stored, reserved as stored}.
-- Lists of them by their text, "0,1,7"; or what is wrong with such a list.
local scopes, touched, lists = {}, {}, {}
local n_touched = 0
local function split(names)
  local a, b, c = match(names, '^(%d+),(%d+),(%d+)$')  -- the usual number of them
  local list = {a, b, c}
  if not a then
    for index in gmatch(names, '[^,]+') do list[#list + 1] = index end
  end
  for i = 1, #list do
    local index = list[i]
    if scopes[index] == nil then
      scopes[index] = false
      n_touched = n_touched + 1
      touched[n_touched] = index
    end
  end
  lists[names] = list
end
local at = 0
local function in_chunks(list, call)
  for from = 1, #list, 4000 do call(unpack(list, from, math.min(from + 3999, #list))) end
end
-- What operation i finds in its pending row, as long as the row is the stored one; else nothing.
-- Made as long as they will be: a list that Lua lets grow from its middle is a slow one.
local ask_of, names_of = {unpack(ids)}, {unpack(ids)}
for i = 1, n do
  local k, names = kind[i], nil
  if k == RESERVE then
    names = paths[i]
  elseif k ~= FORGET then
    local row = stored_rows[i]
    if row then
      ask_of[i], names = match(row, '^p (%d+) (.+)$')
      names_of[i] = names
    end
  end
  if names and not lists[names] then split(names) end
end
in_chunks(touched, function(...)
  local found = redis.call('HMGET', KEYS[2], ...)
  for i = 1, #found do
    local text = found[i]
    at = at + 1
    if text then
      local index = touched[at]
      local cap, spent, reserved = match(text, '^(%d+) (%d+) (%d+)$')
      if not cap then error('CORRUPT scope ' .. index) end
      local c, u, r = cap + 0, spent + 0, reserved + 0
      if c < u + r then error('CORRUPT scope ' .. index) end
      scopes[index] = {c, u, r, index, cap, u, r}
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

-- What the other members take of the shared envelope, and what this one's limit leaves out.
local shared, first_line = nil, nil
local function read_shared()
  local held, returns, limit, grows = 0, false, nil, false
  local used, members = {}, {}
  local flat = redis.call('HGETALL', KEYS[4])
  for i = 1, #flat, 2 do
    local kind_of, id = match(flat[i], '^([mu]):(.+)$')
    if kind_of == 'm' then members[id] = flat[i + 1] elseif kind_of == 'u' then used[id] = flat[i + 1] end
  end
  for id, text in pairs(members) do
    local state, ceiling, most = match(text, '^([awl]) (%d+) (%d+) %d+ %d+$')
    local spent, reserved = match(used[id] or '', '^(%d+) (%d+)$')
    if not state or not spent then error('CORRUPT member ' .. id) end
    if id == ARGV[4] then
      if state == 'a' then limit, grows = most + 0, most + 0 < ceiling + 0 end
    elseif state == 'w' then
      held, returns = held + ceiling, true
    else
      held = held + spent + reserved
      returns = returns or reserved ~= '0'
    end
  end
  return held, returns, limit, grows
end
if KEYS[4] then
  local held, returns, limit, grows = read_shared()
  if not limit then return 'GONE' end
  local s = scopes[ARGV[5]]
  if s then
    -- Its own limit is what binds: others giving back would not help.
    if held < s[1] - limit then held, returns = s[1] - limit, grows end
    if MAX < held then held = MAX end
    shared = s
    s[8], s[9] = held, returns
    first_line = format('o %d %d', held, returns and 1 or 0)
  end
end

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
    if s == shared then free = math.max(0, free - s[8]) end
    if free < ask then
      local why = s[4] .. format(' %d', ask - free)
      if s == shared and s[9] then why = why .. ' 1' end
      rows[id] = 'd ' .. text .. ' ' .. names .. ' ' .. why
      return 'd ' .. why
    end
  end
  for i = 1, #list do
    local s = list[i]
    s[3] = s[3] + ask
  end
  rows[id] = 'p ' .. text .. ' ' .. names
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
  if row ~= stored_rows[i] or not names then state, ask_text, names, more = fields(id, row) end
  if state == 'd' then return 'c was denied' end
  if state == 'v' then return 'c was voided' end
  local text = format('%d', actual)
  if state == 's' and more ~= text then return 'c was settled with another amount' end
  local ask, charged, overrun = ask_text + 0, actual, ''
  if ask < actual then charged, overrun = ask, format(' %d', actual - ask) end
  if state == 's' then return 'S' .. overrun end
  local list = list_of(id, names)
  for k = 1, #list do
    local s = list[k]
    s[2], s[3] = s[2] + charged, s[3] - ask
  end
  rows[id] = 's ' .. ask_text .. ' ' .. names .. ' ' .. text
  return 's' .. overrun
end

local function cancel(id, _, i)
  local row = rows[id]
  if not row then return 'n' end
  local state, ask_text, names = 'p', ask_of[i], names_of[i]
  if row ~= stored_rows[i] or not names then state, ask_text, names = fields(id, row) end
  if state == 'd' then return 'c was denied' end
  if state == 's' then return 'c was settled' end
  if state == 'v' then return 'u' end
  local list, ask = list_of(id, names), ask_text + 0
  for k = 1, #list do
    local s = list[k]
    s[3] = s[3] - ask
  end
  rows[id] = 'v ' .. ask_text .. ' ' .. names
  return 'u'
end

local function forget(id)
  local row = rows[id]
  if not row then return 'u' end
  if byte(row) == PENDING then return 'c is still pending' end
  rows[id] = false
  return 'u'
end

local out = {}
for i = 1, n do
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
local n_sets, n_dels = 0, 0
local shared_part = nil
for i = 1, n do
  local id = ids[i]
  local row = rows[id]
  if row ~= stored_rows[i] then
    rows[id] = stored_rows[i]  -- an id that stands twice in the batch is written once
    if row then
      sets[n_sets + 1], sets[n_sets + 2] = id, row
      n_sets = n_sets + 2
    else
      n_dels = n_dels + 1
      dels[n_dels] = id
    end
  end
end
for i = 1, #touched do
  local s = scopes[touched[i]]
  if s and (s[2] ~= s[6] or s[3] ~= s[7]) then
    if s[2] < 0 or s[3] < 0 or s[1] < s[2] + s[3] then error('CORRUPT scope ' .. s[4]) end
    counters[#counters + 1] = s[4]
    counters[#counters + 1] = format('%s %d %d', s[5], s[2], s[3])
    if s == shared then shared_part = format('%d %d', s[2], s[3]) end
  end
end
in_chunks(sets, function(...) redis.call('HSET', KEYS[3], ...) end)
in_chunks(counters, function(...) redis.call('HSET', KEYS[2], ...) end)
if shared_part then redis.call('HSET', KEYS[4], 'u:' .. ARGV[4], shared_part) end
in_chunks(dels, function(...) redis.call('HDEL', KEYS[3], ...) end)
if first_line then table.insert(out, 1, first_line) end
return table.concat(out, '\n')
