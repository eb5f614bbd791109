-- One envelope that several campaigns share: who its members are (ledger.h has the rules).
-- KEYS  1 to 3 of the campaign, as in ledger.lua; 4 the envelope, a hash:
--         server       run_id of the Redis that it was filled on: another one holds an old copy
--         cap          micro-dollars, the largest that a member has
--         change       counts what all journals must know: a new member, a higher ceiling, a leave
--         m:ID         "state ceiling limit since noted", state one of
--                      a heard of | w known from another's journal, not heard of | l left
--         u:ID         "spent reserved"; of w nothing that counts
--         s:ID  n:ID   Unix milliseconds when it was last here; its name for people
-- ARGV  command, then of all but found, left and view: epoch, token, ID; then
--   found   server cap [others]                a person says that there is no such envelope yet
--   report  server cap limit ceiling spent reserved ms name which [others]
--           its own part, while its envelopes are being rebuilt; which cap: equal, not lower, any
--   tend    noted limit ms                     it is here; answers as view
--   leave   ms                                 nothing of it is open any more, nor will be
--   view    all of it (needs no epoch)
--   left    server ID held name ms             its journal says so, which no coordinator has open
--   others: ID state ceiling spent name each, of the journal
-- Answers "OK", "FENCED epoch", "GONE", "EMPTY" (no such envelope), "CAP n", "HELD" or, of tend and
-- view, a list of field and text.

local command = ARGV[1]
local key = KEYS[4]
local format = string.format
local function whole(text)
  local n = tonumber(text)
  if not n or n < 0 or n % 1 ~= 0 then error('CORRUPT number ' .. tostring(text)) end
  return n
end
local function get(field) return redis.call('HMGET', key, field)[1] end
local function row_of(id)
  local text = get('m:' .. id)
  if not text then return nil end
  local state, ceiling, limit, since, noted =
      string.match(text, '^([awl]) (%d+) (%d+) (%d+) (%d+)$')
  if not state then error('CORRUPT member ' .. id) end
  return {state = state, ceiling = whole(ceiling), limit = whole(limit), since = whole(since),
          noted = whole(noted)}
end
local function put(id, row)
  redis.call('HSET', key, 'm:' .. id, format('%s %d %d %d %d', row.state, row.ceiling, row.limit,
                                              row.since, row.noted))
end
local function next_change()
  local n = whole(get('change') or '0') + 1
  redis.call('HSET', key, 'change', format('%d', n))
  return n
end
-- What a journal knows of others, from ARGV[from] on: nobody who is there already is lowered.
local function add_others(from, me)
  for i = from, #ARGV, 5 do
    local id, state, ceiling, spent, name = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
    local row = row_of(id)
    if id ~= me and (not row or (row.state == 'w' and state == 'l')) then
      put(id, {state = state, ceiling = whole(ceiling), limit = 0, since = next_change(), noted = 0})
      redis.call('HSET', key, 'u:' .. id, spent .. ' 0', 'n:' .. id, name, 's:' .. id, '0')
    end
  end
end
local function create(server, cap)
  redis.call('UNLINK', key)
  redis.call('HSET', key, 'server', server, 'cap', cap, 'change', '0')
end

if command == 'view' then return redis.call('HGETALL', key) end
if command == 'found' then
  if get('server') == ARGV[2] then return 'HELD' end
  create(ARGV[2], ARGV[3])
  add_others(4, '')
  return 'OK'
end
if command == 'left' then
  if get('server') ~= ARGV[2] then return 'EMPTY' end
  local id, held = ARGV[3], whole(ARGV[4])
  local row = row_of(id)
  if row and row.state == 'l' and get('u:' .. id) == ARGV[4] .. ' 0' then return 'OK' end
  put(id, {state = 'l', ceiling = held, limit = 0, since = next_change(), noted = 0})
  redis.call('HSET', key, 'u:' .. id, ARGV[4] .. ' 0', 'n:' .. id, ARGV[5], 's:' .. id, ARGV[6])
  return 'OK'
end

local head = redis.call('HMGET', KEYS[1], 'epoch', 'token', 'state')
if not head[1] then return 'GONE' end
local mine, stored = tonumber(ARGV[2]), tonumber(head[1])
if mine < stored or (mine == stored and head[2] ~= ARGV[3]) then return 'FENCED ' .. head[1] end
if mine > stored then return 'GONE' end
local id = ARGV[4]

if command == 'report' then
  local server, cap, limit, ceiling = ARGV[5], whole(ARGV[6]), whole(ARGV[7]), whole(ARGV[8])
  local held = redis.call('HMGET', key, 'server', 'cap')
  if held[1] ~= server then
    if limit == 0 then return 'EMPTY' end
    create(server, ARGV[6])
  elseif whole(held[2]) ~= cap then
    local lower = cap < whole(held[2])
    if ARGV[13] == 'equal' or (ARGV[13] == 'not lower' and lower) then return 'CAP ' .. held[2] end
    if not lower then redis.call('HSET', key, 'cap', ARGV[6]) end
  end
  local row = row_of(id)
  if not row or row.state == 'l' or row.ceiling < ceiling then
    row = {since = next_change(), noted = 0}
  elseif row.state == 'w' then
    row.noted = 0
  end
  row.state, row.ceiling, row.limit = 'a', ceiling, limit
  put(id, row)
  redis.call('HSET', key, 'u:' .. id, ARGV[9] .. ' ' .. ARGV[10], 's:' .. id, ARGV[11], 'n:' .. id,
             ARGV[12])
  if limit > 0 then add_others(14, id) end
  return 'OK'
end

if head[3] ~= 'open' then return 'GONE' end
local row = row_of(id)
if not row or row.state ~= 'a' then return 'GONE' end
if command == 'leave' then
  local spent, reserved = string.match(get('u:' .. id) or '', '^(%d+) (%d+)$')
  if reserved ~= '0' then return 'HELD' end
  row.state, row.ceiling, row.limit, row.since = 'l', whole(spent), 0, next_change()
  put(id, row)
  redis.call('HSET', key, 's:' .. id, ARGV[5])
  return 'OK'
end
row.noted, row.limit = whole(ARGV[5]), whole(ARGV[6])
put(id, row)
redis.call('HSET', key, 's:' .. id, ARGV[7])
return redis.call('HGETALL', key)
