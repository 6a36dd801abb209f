-- Resolves a record that is unknown or abandoned (T17).
-- KEYS[1] the record
-- ARGV    'C' (it was applied) or 'R' (it was not); fence; retention in ms, at least; for C the result
-- Returns 1 if it was done, 0 if the record is gone, has another fence, or is neither unknown nor abandoned.
local key = KEYS[1]

--#include record.lua

local head = redis.pcall('GETRANGE', key, 0, 62)
if type(head) == 'table' then
  return unreadable(head)
end
if head == '' and redis.call('EXISTS', key) == 0 then
  return 0
end
local damage = corrupt(head)
if damage then
  return damage
end
local state = string.sub(head, 2, 2)
if state ~= 'P' and state ~= 'T' and state ~= 'U' then
  return 0
end
if struct.unpack('>I4', head, 3) ~= tonumber(ARGV[2]) or (state ~= 'U' and lease_left(key, head) > 0) then
  return 0
end
-- A late owner must learn that somebody else has decided: it is not the owner of this result.
local owner = ARGV[1] == 'C' and string.rep('\0', 16) or string.sub(head, 7, 22)
local value = '\2' .. ARGV[1] .. string.sub(head, 3, 6) .. owner .. string.sub(head, 23, 54) .. (ARGV[4] or '')
-- What is known of an ID is not forgotten earlier for being resolved; a record whose time to live was removed stays so.
local ttl = redis.call('PTTL', key)
local millis = math.max(ttl, tonumber(ARGV[3]))
-- Never refused for lack of memory: see write.lua.
local touched = redis.pcall('PEXPIRE', key, millis)
if type(touched) == 'table' then
  return touched
end
local set = ttl < 0 and redis.pcall('SET', key, value) or redis.pcall('SET', key, value, 'PX', millis)
return set.err and set or 1
