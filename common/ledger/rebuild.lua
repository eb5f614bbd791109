-- Rebuilds one campaign's envelopes from the coordinator's journal under its epoch, and shows them.
-- KEYS as in ledger.lua.  ARGV: command, epoch, token, arguments
--   begin             compare-and-set of the epoch; everything older is deleted
--   scopes i text ... "cap spent reserved" by index
--   rows id text ...  pending reservations
--   open              from here on ledger.lua answers
--   snapshot          the scopes hash (needs no epoch)
--   read              all hashes at one instant, for an auditor (needs no epoch); with KEYS[4] the
--                     shared envelope too
-- Answers "OK", "FENCED epoch", "GONE" or, for snapshot, a list of index and text; for read one
-- such list a key.

local command = ARGV[1]
if command == 'read' then
  local out = {}
  for i = 1, #KEYS do out[i] = redis.call('HGETALL', KEYS[i]) end
  return out
end
local head = redis.call('HMGET', KEYS[1], 'epoch', 'token', 'state')

if command == 'snapshot' then
  if head[3] ~= 'open' then return 'GONE' end
  return redis.call('HGETALL', KEYS[2])
end

local mine, stored = tonumber(ARGV[2]), tonumber(head[1] or '-1')
if mine < stored or (mine == stored and head[2] ~= ARGV[3]) then return 'FENCED ' .. head[1] end

if command == 'begin' then
  redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'token', ARGV[3], 'state', 'building')
  redis.call('UNLINK', KEYS[2], KEYS[3])
  return 'OK'
end
if mine ~= stored or head[3] ~= 'building' then return 'GONE' end
if command == 'open' then
  redis.call('HSET', KEYS[1], 'state', 'open')
  return 'OK'
end
local key = KEYS[3]
if command == 'scopes' then key = KEYS[2] end
for i = 4, #ARGV, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
return 'OK'
